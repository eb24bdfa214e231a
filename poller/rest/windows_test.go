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
		"more than 7 days":            {tooLong(7), "2026-11-19", "2026-10-01", 3600},
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
						if err == nil || !strings.Contains(err.Error(), "Set resources.products.start") {
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
