package rest

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// aged makes every answer say that it is so old.
func (s *service) aged(seconds string) {
	s.before = func(w http.ResponseWriter, _ url.Values) bool {
		if seconds != "" {
			w.Header().Set("Age", seconds)
		}
		return false
	}
}

func TestAnswersOutOfACacheSettleNothingAndCountForNothing(t *testing.T) {
	for age, comes := range map[string]bool{"60": true, "600": false} {
		t.Run(age, func(t *testing.T) {
			s := newService(t)
			s.now = clockAt("2026-11-20T12:00:00Z")
			s.products = append(oneDay(1, 30, "2026-11-15"), oneDay(100, 30, "2026-11-20")...)
			s.aged(age)
			src := s.fresh()
			got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
			if err != nil {
				t.Fatal(err)
			}
			if got.settled != schemas.MinInstant || got.done.Complete || got.done.Started != schemas.MinInstant ||
				!strings.Contains(got.done.Delayed, "out of a cache") || !strings.Contains(got.done.Delayed, "no-cache") {
				t.Errorf("settled %s, done %+v", got.settled, got.done)
			}
			if comes && got.age < time.Minute {
				t.Errorf("rows that may be a minute old are said to be %s old", got.age)
			}
			if comes != (len(got.rows) == len(s.products)) || !comes && len(got.rows) > 0 {
				t.Errorf("%d rows came", len(got.rows))
			}
			for _, r := range []poller.Request{
				{Kind: poller.Full, From: schemas.MinInstant},
				{Kind: poller.Lookup, Suspects: []poller.Suspect{
					{ID: 1, UpdatedAt: schemas.MinInstant, CreatedAt: schemas.InstantOf(s.products[0].created)}}},
			} {
				_, err := readAll(t.Context(), src, r)
				if err == nil || !strings.Contains(err.Error(), "out of a cache") {
					t.Errorf("%+v: %v", r, err)
				}
			}
			s.aged("")
			clear(src.days)
			if got, err = readAll(t.Context(), src, pass(schemas.MinInstant)); err != nil {
				t.Fatal(err)
			}
			got.has(t, s.products)
			got.completely(t)
		})
	}
}

func TestEveryRequestAsksForAFreshAnswer(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = someProducts(3)
	asked := 0
	s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; !strings.Contains(r.Header.Get("Cache-Control"), "no-cache") ||
			r.Header.Get("Pragma") != "no-cache" {
			t.Errorf("%s: %v", r.URL, r.Header)
		}
		s.ServeHTTP(w, r)
	})
	if _, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant)); err != nil || asked < 3 {
		t.Error(asked, err)
	}
}

// A cheap poll that came out of a cache has not met what changed.
func TestACheapPollOutOfACacheCountsForNothing(t *testing.T) {
	s := newService(t)
	now := at("2026-11-20T20:00:00Z")
	clock := func() time.Time { return now }
	s.now, s.order = clock, newestFirst
	s.products = oneDay(1, 7000, "2026-11-20")
	src := s.source(s.client(client.Config{Now: clock}))
	from := midnight("2026-11-20")
	if got, err := readAll(t.Context(), src, pass(from)); err != nil || !got.done.Complete {
		t.Fatal(err, got.done)
	}
	poll := poller.Request{Kind: poller.Pass, From: from, Started: 1}
	s.aged("600")
	now = now.Add(time.Minute)
	got, err := readAll(t.Context(), src, poll)
	if err != nil || got.done.Started != schemas.MinInstant || got.done.Complete ||
		!strings.Contains(got.done.Delayed, "out of a cache") {
		t.Errorf("%+v, %v", got.done, err)
	}
	s.products[100].updated = now
	s.aged("")
	now = now.Add(time.Minute)
	got, err = readAll(t.Context(), src, poll)
	if err != nil || got.done.Started != 1 || got.done.Delayed != "" {
		t.Errorf("%+v, %v", got.done, err)
	}
	got.has(t, s.products[100:101])
}

// Our clock is two hours fast, and one Date is two hours ahead: today is not over. Nor does one that is two
// hours back stop anything for longer than the next pass.
func TestOneDateThatIsFarOffClosesNothingAndStopsNothing(t *testing.T) {
	for _, off := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		for n := range 25 {
			s := newService(t)
			begin := at("2026-11-20T23:30:00Z")
			if off < 0 {
				begin = at("2026-11-21T00:30:00Z")
			}
			now := begin
			s.products = append(oneDay(1, 30, "2026-11-19"), oneDay(100, 30, "2026-11-20")...)
			s.now = func() time.Time {
				now = now.Add(time.Second)
				if s.requests == n {
					return now.Add(off)
				}
				return now
			}
			ours := func() time.Time { return now.Add(2 * time.Hour) }
			src := s.source(s.client(client.Config{Now: ours}))
			settled := schemas.MinInstant
			for range 8 {
				got, err := readAll(t.Context(), src, pass(settled))
				if err != nil {
					t.Fatal(err)
				}
				settled = max(settled, got.settled)
				maps.DeleteFunc(src.days, func(_ day, is pastDay) bool { return !is.closed }) // it is time again
			}
			if want := dayOf(schemas.InstantOf(begin)); settled != startOf(want) {
				t.Errorf("answer %d is %s off: settled %s, want %s", n, off, settled, startOf(want))
			}
		}
	}
}

// Yesterday is closed, and the service's clock is set back into it: what changes now has yesterday's stamp.
func TestAServiceWhoseClockIsSetBackIntoASettledDayIsReadFromThatDayAgain(t *testing.T) {
	s := newService(t)
	now, off := at("2026-11-21T00:30:00Z"), time.Duration(0)
	s.now = func() time.Time { now = now.Add(2 * time.Second); return now.Add(off) }
	s.products = append(oneDay(1, 30, "2026-11-19"), oneDay(100, 30, "2026-11-20")...)
	c := s.client(client.Config{Now: func() time.Time { return now }})
	got, err := readAll(t.Context(), s.source(c), pass(schemas.MinInstant))
	if err != nil || got.settled != midnight("2026-11-21") {
		t.Fatal(got.settled, err)
	}
	off = -time.Hour
	settled, src := got.settled, s.source(c)
	// A replay reads that day anyway. It may be cancelled, so it says so too.
	replay := pass(schemas.MinInstant)
	replay.Passed = settled
	replays := s.source(c)
	var lost *poller.LostError
	for n := 0; !errors.As(err, &lost); n++ {
		if err != nil || n > 20 {
			t.Fatal("a replay: ", n, err)
		}
		_, err = readAll(t.Context(), replays, replay)
	}
	lost, err = nil, nil
	for n := 0; !errors.As(err, &lost); n++ {
		if err != nil || n > 20 {
			t.Fatal(n, err)
		}
		if got, err = readAll(t.Context(), src, pass(settled)); got.settled > settled {
			t.Fatalf("settled %s", got.settled)
		}
	}
	if lost.From != midnight("2026-11-20") || !lost.Sweep {
		t.Errorf("%+v", lost)
	}
	s.products[0].updated = now.Add(off)
	if got, err = readAll(t.Context(), s.source(c), pass(lost.From)); err != nil {
		t.Fatal(err)
	}
	got.has(t, append(s.products[:1:1], s.products[30:]...))
	if got.settled > lost.From {
		t.Errorf("settled %s", got.settled)
	}
}
