package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// refusing makes the service refuse requests with 400.
func (s *service) refusing(which func(q url.Values) bool) {
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		if which(q) {
			refuse(w, 400, "invalid_param")
			return true
		}
		return false
	}
}

// sameDay reports whether a window begins and ends on one day.
func sameDay(q url.Values) bool {
	for _, name := range dimensions {
		if q.Has(name+"_from") && q.Get(name+"_from") == q.Get(name+"_to") {
			return true
		}
	}
	return false
}

// both reports whether a window has dates of both dimensions.
func both(q url.Values) bool {
	return (q.Has("updated_from") || q.Has("updated_to")) && (q.Has("created_from") || q.Has("created_to"))
}

// anyOf reports whether one of them does.
func anyOf(which ...func(url.Values) bool) func(url.Values) bool {
	return func(q url.Values) bool {
		return slices.ContainsFunc(which, func(is func(url.Values) bool) bool { return is(q) })
	}
}

// tooLong reports whether a window lacks a bound, or is longer than so many days.
func tooLong(days int) func(q url.Values) bool {
	return func(q url.Values) bool {
		for _, name := range dimensions {
			if !q.Has(name+"_from") && !q.Has(name+"_to") {
				continue
			}
			from, err1 := time.Parse(time.DateOnly, q.Get(name+"_from"))
			to, err2 := time.Parse(time.DateOnly, q.Get(name+"_to"))
			if err1 != nil || err2 != nil || int(to.Sub(from).Hours()/24) >= days {
				return true
			}
		}
		return false
	}
}

// Services refuse windows for their form, and answer others. All rows are published, every day that is over
// is closed, and full readings and lookups meet every row, or say why they cannot.
func TestWindowsAreAskedForInAFormThatTheServiceAccepts(t *testing.T) {
	rows := append(append(hourly(300, 37*time.Minute+11*time.Second), oneDay(1000, 2500, "2026-11-17")...),
		oneDay(5000, 1200, "2026-11-20")...)
	for name, c := range map[string]struct {
		refused  func(q url.Values) bool
		settled  string
		start    string
		requests int
	}{
		"one day":                     {sameDay, "2026-11-19", "", 300},
		"both dimensions":             {both, "2026-11-20", "", 300},
		"both dimensions, or one day": {anyOf(both, sameDay), "2026-11-19", "", 300},
		"more than 6 days":            {tooLong(6), "2026-11-19", "2026-10-01", 4200},
		"more than 31 days":           {tooLong(31), "2026-11-19", "2026-10-01", 900},
		"more than 90 days":           {tooLong(90), "2026-11-19", "2026-10-01", 500},
	} {
		for _, upTo := range [][]string{nil, {"updated", "created"}} {
			for _, count := range []counting{countTotal, countPage} {
				if c.requests > 1000 && (upTo == nil || count == countPage) {
					continue
				}
				t.Run(name+strconv.Itoa(len(upTo))+strconv.Itoa(int(count)), func(t *testing.T) {
					t.Parallel()
					s := newService(t)
					s.now = clockAt("2026-11-20T12:00:00Z")
					s.products, s.upTo, s.count = slices.Clone(rows), upTo, count
					s.refusing(c.refused)
					src := s.impatient()
					got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
					if err != nil {
						t.Fatal(err)
					}
					got.has(t, s.products)
					if !got.done.Complete || got.settled < midnight(c.settled) || s.requests > c.requests {
						t.Errorf("settled %s after %d requests: %+v", got.settled, s.requests, got.done)
					}
					if c.start != "" {
						full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
						if err == nil || !strings.Contains(err.Error(), "then set resources.products.start to that day") {
							t.Errorf("full, without a first day: %+v, %v", full.done, err)
						}
						src.cfg.Start = midnight(c.start)
					}
					full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: midnight("2026-10-01")})
					if err != nil || !full.done.Complete {
						t.Fatalf("full: %+v, %v", full.done, err)
					}
					full.has(t, s.products)
					gone := poller.Suspect{ID: 77_777, UpdatedAt: midnight("2026-11-10"), CreatedAt: midnight("2026-11-05")}
					look, err := readAll(t.Context(), src, poller.Request{Kind: poller.Lookup, Everywhere: true,
						From: midnight("2026-10-01"), Suspects: []poller.Suspect{gone}})
					if err != nil || !look.done.Complete || look.done.Empty {
						t.Errorf("lookup: %+v, %v", look.done, err)
					}
				})
			}
		}
	}
}

// The sources of one process share the service's clock. So a second one knows which days are over before it
// has sent a request. It learns the form of windows all the same.
func TestEachSourceLearnsTheFormOfWindows(t *testing.T) {
	for name, refused := range map[string]func(url.Values) bool{
		"more than 7 days": tooLong(7), "more than 31 days": tooLong(31),
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.now = clockAt("2026-11-20T12:00:00Z")
			s.products = hourly(30, 0)
			c := s.client(client.Config{Now: s.now, Attempts: 1})
			for n := range 2 {
				s.refusing(refused)
				src := s.source(c)
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err != nil {
					t.Fatalf("source %d: %v", n, err)
				}
				got.has(t, s.products)
			}
		})
	}
}

// The service limits the days of a window, and a row lies on a day to come. A lookup asks for the row's own
// days.
func TestALookupAsksForTheDaysToComeOfARow(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	later := product{id: 7, created: at("2026-12-24T00:00:00Z"), updated: at("2026-12-24T00:00:00Z")}
	s.products = append(oneDay(100, 30, "2026-11-19"), later)
	s.refusing(tooLong(7))
	src := s.fresh()
	if _, err := readAll(t.Context(), src, pass(midnight("2026-11-15"))); err != nil {
		t.Fatal(err)
	}
	suspect := poller.Suspect{ID: 7, CreatedAt: schemas.InstantOf(later.created),
		UpdatedAt: schemas.InstantOf(later.updated)}
	got, err := readAll(t.Context(), src, poller.Request{Kind: poller.Lookup, Everywhere: true,
		From: midnight("2026-11-15"), Suspects: []poller.Suspect{suspect}})
	if _, met := got.rows[7]; err != nil || !met {
		t.Errorf("met %v, done %+v, %v", met, got.done, err)
	}
}

// A lookup that learns the form of windows by its last request ends once.
func TestALookupEndsOnce(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.refusing(tooLong(7))
	c := s.client(client.Config{Now: s.now, Attempts: 1})
	if _, err := readAll(t.Context(), s.source(c), pass(midnight("2026-11-15"))); err != nil {
		t.Fatal(err)
	}
	ends := 0
	gone := poller.Suspect{ID: 9, CreatedAt: midnight("2026-11-01"), UpdatedAt: midnight("2026-11-02")}
	err := each(s.source(c).Read(t.Context(), poller.Request{Kind: poller.Lookup,
		Suspects: []poller.Suspect{gone}}), func(b poller.Batch) error {
		if b.Done != nil {
			ends++
		}
		return nil
	})
	if err != nil || ends != 1 {
		t.Errorf("ended %d times, %v", ends, err)
	}
}

// A service refuses all requests, or those for one day. Then a poll sends a bounded number of requests, and
// takes no refusal for a form.
func TestRefusalsOfEveryPollCostFewRequests(t *testing.T) {
	for name, c := range map[string]struct {
		status, requests int
		refused          func(q url.Values) bool
	}{
		"all":      {400, 8, func(url.Values) bool { return true }},
		"all, 403": {403, 12, func(url.Values) bool { return true }},
		"a day that is over": {400, 8, func(q url.Values) bool {
			to := q.Get("updated_to")
			return q.Get("updated_from") <= "2026-11-17" && (to >= "2026-11-17" || to == "")
		}},
		"today": {400, 25, func(q url.Values) bool {
			return q.Get("updated_to") >= "2026-11-20" || !q.Has("updated_to")
		}},
	} {
		for _, from := range []schemas.Instant{schemas.MinInstant, midnight("2026-11-01")} {
			t.Run(name+" from "+from.String(), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.now = clockAt("2026-11-20T12:00:00Z")
				s.products = hourly(300, 0)
				s.before = func(w http.ResponseWriter, q url.Values) bool {
					if c.refused(q) {
						refuse(w, c.status, "no")
						return true
					}
					return false
				}
				src := s.fresh()
				for n := range 4 {
					s.requests = 0
					got, _ := readAll(t.Context(), src, pass(from))
					from = max(from, got.settled)
					if n > 0 && s.requests > c.requests || s.requests > 140 {
						t.Errorf("poll %d: %d requests", n, s.requests)
					}
				}
				if form := src.form; form != oneBound && name != "today" || src.calendar.widened != 0 || src.alone {
					t.Errorf("form %d, widened %d, alone %v", src.form, src.calendar.widened, src.alone)
				}
			})
		}
	}
}
