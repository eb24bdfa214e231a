package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
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

// A service wants both dates, and refuses those after its own today. For thirty hours, each poll meets the
// newest row, or says that it may hide rows and does not count for lag. Full readings and lookups
// meet every row that there is, or say why they cannot.
func TestAServiceThatTakesNoDateAfterItsTodayIsReadUpToIt(t *testing.T) {
	for n, hours := range []int{-8, 0, 8, 14, 0, 8} {
		for _, upTo := range [][]string{nil, {"updated", "created"}} {
			limited := n >= 4 // to 31 days
			t.Run(fmt.Sprintf("UTC%+d, %d midnights, limited %v", hours, len(upTo), limited), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.zone, s.upTo, s.maxPage = time.FixedZone("", hours*3600), upTo, 15 // days are read in parts
				now := at("2026-11-20T03:10:00Z")
				s.now = func() time.Time { return now }
				s.products = hourly(200, 12*time.Hour)
				s.refusing(func(q url.Values) bool {
					if limited && tooLong(31)(q) {
						return true
					}
					for _, name := range dimensions {
						to := q.Get(name + "_to")
						if q.Has(name+"_from") != q.Has(name+"_to") || to > now.In(s.zone).Format(time.DateOnly) {
							return true
						}
					}
					return false
				})
				src, from := s.fresh(), schemas.MinInstant
				if limited {
					src.cfg.Start = midnight("2026-11-01")
				}
				met, complete, gone, said := map[int64]bool{}, 0, 0, 0
				for n := range 15 {
					when := now.Add(-10 * time.Minute)
					row := product{id: int64(1000 + n), created: when, updated: when}
					s.products = append(s.products, row)
					got, err := readAll(t.Context(), src, pass(from))
					if err != nil {
						t.Fatalf("%s: %v", now, err)
					}
					from = max(from, got.settled)
					for id := range got.rows {
						met[id] = true
					}
					unsure := got.done.Started == schemas.MinInstant && !got.done.Complete
					if !unsure && !met[row.id] || unsure && (upTo == nil || got.done.Delayed == "") {
						t.Errorf("%s: the new row is met: %v, and %+v", now, met[row.id], got.done)
					}
					if strings.Contains(got.done.Delayed, "the service refuses later updated_to dates than 2026-11-2") {
						said++
					}

					all, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
					if err == nil {
						complete++
						all.has(t, s.products)
					} else if upTo == nil {
						t.Errorf("%s: %v", now, err)
					}
					var suspects []poller.Suspect
					for _, p := range append(s.products[len(s.products)-3:], product{id: 7, created: when, updated: when}) {
						at := schemas.InstantOf(p.updated)
						suspects = append(suspects, poller.Suspect{ID: p.id, CreatedAt: at, UpdatedAt: at})
					}
					look, err := readAll(t.Context(), src, poller.Request{Kind: poller.Lookup, Suspects: suspects})
					if err != nil {
						if upTo == nil {
							t.Errorf("%s: a lookup: %v", now, err)
						}
					} else {
						gone++
						for _, suspect := range suspects[:3] {
							if _, shown := look.rows[suspect.ID]; !shown {
								t.Errorf("%s: product %d is taken for deleted", now, suspect.ID)
							}
						}
					}
					now = now.Add(2 * time.Hour)
				}
				settled := midnight("2026-11-19")
				if limited && hours != 0 {
					settled = midnight("2026-11-18")
				}
				if from < settled || upTo == nil && (complete != 15 || gone != 15) ||
					upTo != nil && said == 0 {
					t.Errorf("settled %s, %d full readings, %d lookups, said %d times", from, complete, gone, said)
				}
				for _, p := range s.products {
					if !met[p.id] && p.updated.Before(from.Time()) {
						t.Errorf("product %d of %s is settled and was not met", p.id, p.updated)
					}
				}
			})
		}
	}
}

// Pages with the newest row are refused with 400. That is not taken for a refusal of today's date: the other
// rows of today are read.
func TestAPageThatIsRefusedForARowOfTodayIsNoLimitOfDates(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(hourly(100, 12*time.Hour), oneDay(50_000, 30, "2026-11-20")...)
	s.order = newestFirst
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		answer := httptest.NewRecorder()
		s.list(answer, q)
		refused := bytes.Contains(answer.Body.Bytes(), []byte(`"id":50029,`))
		if refused {
			refuse(w, 400, "invalid_param")
		}
		return refused
	}
	src := s.impatient()
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products[:129])
	if src.form != oneBound || !strings.Contains(got.done.Delayed, "the row at place 0 cannot be read") {
		t.Errorf("form %d, delayed: %s", src.form, got.done.Delayed)
	}
}

// A service grants only some page sizes. All rows are read, and the smaller ones are not asked for again.
func TestPagesOfOneRowAreRefused(t *testing.T) {
	for name, granted := range map[string]func(size int) bool{
		"from 200 on":     func(size int) bool { return size >= 200 },
		"from 10 on":      func(size int) bool { return size >= 10 },
		"10, 25, 50, 100": func(size int) bool { return slices.Contains([]int{10, 25, 50, 100}, size) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.now = clockAt("2026-11-20T12:00:00Z")
			s.products = append(manyDays(20), oneDay(50_000, 250, "2026-11-20")...)
			refused := 0
			s.refusing(func(q url.Values) bool {
				size, _ := strconv.Atoi(q.Get("page_size"))
				if !granted(size) {
					refused++
				}
				return !granted(size)
			})
			src := s.impatient()
			for range 2 {
				refused = 0
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err != nil {
					t.Fatal(err)
				}
				got.completely(t)
				got.has(t, s.products)
			}
			if refused > 12 { // larger pages are tried now and then
				t.Errorf("%d requests were refused once the sizes were known", refused)
			}
		})
	}
}

// For a while a service refuses windows of more than three days. It is believed no longer than that.
func TestALimitOfDaysThatIsLiftedIsForgotten(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(hourly(300, 0), product{id: 9000, created: at("1971-03-01T00:00:00Z"),
		updated: at("1971-03-01T00:00:00Z")})
	long := tooLong(4)
	s.refusing(func(q url.Values) bool { return s.requests < 200 && long(q) })
	got, err := readAll(t.Context(), s.impatient(), pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, hourly(300, 0))
	if s.requests > 900 {
		t.Errorf("%d requests", s.requests)
	}
}

// While the days of many years are read, today's rows are published again and again.
func TestTodaysRowsAreReadWhileEarlierDaysAre(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 10, "2026-11-15"), oneDay(50_000, 3, "2026-11-20")...)
	s.refusing(tooLong(60))
	src := s.source(s.client(client.Config{Now: s.now, Attempts: 1}))
	src.todayEvery, src.linger = 0, 0
	today, next := 0, int64(60_000)
	err := each(src.Read(t.Context(), pass(schemas.MinInstant)), func(b poller.Batch) error {
		for _, row := range b.Rows {
			if row.ID == next-1 || row.ID == 50_000 && next == 60_000 {
				today++
				s.mu.Lock()
				s.products = append(s.products, product{id: next, created: s.now(), updated: s.now()})
				s.mu.Unlock()
				next++
			}
		}
		return nil
	})
	if err != nil || today < 50 {
		t.Errorf("today's rows were read %d times, %v", today, err)
	}
}
