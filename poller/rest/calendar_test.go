package rest

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

var errCrash = errors.New("crash")

// sparse is a shop that changes a product at 08:00 UTC of each day, but by shift later on one day: only
// there the zone shows.
func sparse(odd int, shift time.Duration) (rows []product) {
	for d := range 30 {
		when := at("2026-10-01T08:00:00Z").Add(time.Duration(d) * 24 * time.Hour)
		if d == odd {
			when = when.Add(shift)
		}
		rows = append(rows, product{id: int64(d + 1), created: when, updated: when})
	}
	return rows
}

// What is settled before the zone is found out must be right too, whenever the process ends; and of what a
// read has settled it brings nothing again, for the poller has forgotten it by then. Of three crashes a day
// make test has one, make test-long all.
func TestAZoneThatShowsLateLosesAndRepeatsNothing(t *testing.T) {
	const back, on = -6 * time.Hour, 14 * time.Hour
	for hours, shift := range map[int]time.Duration{-11: back, -5: back, 0: on, 5: on, 11: on} {
		t.Run(fmt.Sprintf("UTC%+d", hours), func(t *testing.T) {
			t.Parallel()
			for odd := range 22 {
				for crash := range 3 {
					if crash != odd%3 && os.Getenv("STORESTREAM_LONG") == "" {
						continue
					}
					s := newService(t)
					s.zone = time.FixedZone("", hours*3600)
					s.now = clockAt("2026-11-20T12:00:00Z")
					s.products = sparse(odd, shift)
					s.twoLives(fmt.Sprintf("day %d, crash after batch %d: ", odd+1, crash), crash)
				}
			}
		})
	}
}

// twoLives reads with two sources, the second from what the first had settled when it crashed after so many
// batches.
func (s *service) twoLives(which string, crash int) {
	s.t.Helper()
	s.twoLivesOf(which, crash, s.fresh)
}

// twoLivesOf does so with sources of its own.
func (s *service) twoLivesOf(which string, crash int, source func() *Source) {
	s.t.Helper()
	got := map[int64]int{}
	settled := schemas.MinInstant
	for life := range 2 {
		src := source()
		src.linger = 0
		from, batches := settled, 0
		err := each(src.Read(s.t.Context(), poller.Request{From: from}), func(b poller.Batch) error {
			for _, row := range b.Rows {
				if row.UpdatedAt >= from {
					got[row.ID]++
				}
				if row.UpdatedAt < settled && row.UpdatedAt >= from {
					s.t.Errorf("%srow %d of %s came after %s was settled", which, row.ID, row.UpdatedAt, settled)
				}
			}
			settled = max(settled, b.Settled)
			if batches++; life == 0 && batches > crash {
				return errCrash
			}
			return nil
		})
		if err != nil && !errors.Is(err, errCrash) {
			s.t.Fatal(err)
		}
	}
	for _, p := range s.products {
		if got[p.id] == 0 {
			s.t.Errorf("%srow %d of %s was never read; settled %s", which, p.id, p.updated, settled)
		}
	}
}

// Days that begin late: what a shop changes in the first hours of a UTC day lies in the service's day
// before, which is closed already.
func TestWhatChangesAfterMidnightInTheServicesDayBeforeIsRead(t *testing.T) {
	s := newService(t)
	s.zone = time.FixedZone("", -5*3600)
	s.now = clockAt("2026-11-20T00:10:00Z")
	s.products = []product{{id: 1, created: at("2026-11-01T08:00:00Z"), updated: at("2026-11-10T08:00:00Z")},
		{id: 2, created: at("2026-11-01T09:00:00Z"), updated: at("2026-11-12T09:00:00Z")}}
	src := s.fresh()
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil || got.settled != midnight("2026-11-20") {
		t.Fatal(got.settled, err)
	}
	s.now = clockAt("2026-11-20T02:00:10Z")
	s.products[0].updated = at("2026-11-20T02:00:00Z")
	again, err := readAll(t.Context(), src, pass(got.settled))
	if err != nil || again.rows[1].UpdatedAt != schemas.InstantOf(s.products[0].updated) {
		t.Errorf("the source that was there: %v, %v", again.rows, err)
	}
	s.now = clockAt("2026-11-23T12:00:00Z")
	again, err = readAll(t.Context(), s.fresh(), pass(got.settled))
	if err != nil || again.rows[1].UpdatedAt != schemas.InstantOf(s.products[0].updated) {
		t.Errorf("another, days later: %v, %v", again.rows, err)
	}
}

// Days that begin late, of a shop that has many rows a day and, until one night, none in the hours in which
// that shows. The row of that night lies in the service's day before, whose rows take several pages: the
// source that was there has to meet it, and so has one that begins days later.
func TestARowOfTheFirstNightIsReadThoughDaysBeganLateAndNoRowHadShownIt(t *testing.T) {
	for _, order := range []func(a, b product) int{byID, byUpdated, newestFirst, nil} {
		s := newService(t)
		s.zone, s.order, s.maxPage = time.FixedZone("", -5*3600), order, 10
		for d := range 4 {
			for i := range 60 {
				when := at("2026-11-16T06:00:00Z").AddDate(0, 0, d).Add(time.Duration(i) * 15 * time.Minute)
				s.products = append(s.products, product{id: int64(60*d + i + 1), created: when, updated: when})
			}
		}
		s.now = clockAt("2026-11-20T01:00:00Z")
		src := s.fresh()
		settled := schemas.MinInstant
		for range 2 {
			got, err := readAll(t.Context(), src, pass(settled))
			if settled = max(settled, got.settled); err != nil || settled != midnight("2026-11-20") {
				t.Fatal(settled, err)
			}
		}
		night := &s.products[7]
		night.updated = at("2026-11-20T03:00:00Z")
		for _, one := range []struct {
			now string
			src *Source
		}{{"2026-11-20T03:30:00Z", src}, {"2026-11-23T12:00:00Z", nil}} {
			s.now = clockAt(one.now)
			if one.src == nil {
				one.src = s.fresh()
			}
			got, err := readAll(t.Context(), one.src, pass(settled))
			if err != nil || got.rows[night.id].UpdatedAt != schemas.InstantOf(night.updated) {
				t.Errorf("at %s: row of %s, want %s; %v", one.now, got.rows[night.id].UpdatedAt, night.updated, err)
			}
		}
	}
}

// A service in UTC shows a row soon after midnight. Then the day before is read no more.
func TestADayThatIsShownToBeginAtMidnightIsReadWithoutTheDayBefore(t *testing.T) {
	s := newService(t)
	s.maxPage = 10
	for i := range 200 {
		when := at("2026-11-19T00:00:00Z").Add(time.Duration(i) * 14 * time.Minute)
		s.products = append(s.products, product{id: int64(i + 1), created: when, updated: when})
	}
	s.now = clockAt("2026-11-20T23:00:00Z")
	src := s.fresh()
	var rows map[int64]schemas.Record
	today := midnight("2026-11-20")
	for _, settled := range []schemas.Instant{schemas.MinInstant, today, today} {
		got, err := readAll(t.Context(), src, pass(settled))
		if err != nil {
			t.Fatal(err)
		}
		rows = got.rows
	}
	for _, row := range rows {
		if row.UpdatedAt < midnight("2026-11-20") {
			t.Fatalf("row %d of %s was read", row.ID, row.UpdatedAt)
		}
	}
}
