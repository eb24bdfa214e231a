package rest

import (
	"cmp"
	"fmt"
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

// impatient is a new source that sends each request once.
func (s *service) impatient() *Source {
	s.t.Helper()
	return s.source(s.client(client.Config{Now: s.now, Attempts: 1}))
}

// without returns all rows but the bad ones.
func (s *service) without() (good []product) {
	for _, p := range s.products {
		if s.bad == nil || !s.bad(p) {
			good = append(good, p)
		}
	}
	return good
}

func bad(ids ...int64) func(product) bool {
	return func(p product) bool { return slices.Contains(ids, p.id) }
}

// sixDays have 30 rows a day from 2026-11-15 on, but 2,500 on the 17th and 1,200 today. Ids count from 1.
func sixDays() (rows []product) {
	for i, n := range []int{30, 30, 2500, 30, 30, 1200} {
		rows = append(rows, oneDay(int64(len(rows)+1), n, fmt.Sprintf("2026-11-%d", 15+i))...)
	}
	return rows
}

// One row makes each page that has it a 500, at any place, and however the service counts. All others are
// published, later days are closed, and settled goes on once the row is mended.
func TestARowThatFailsStopsNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		bad  []int64
		says string // what is delayed
	}{
		"first of all":         {[]int64{1}, "2026-11-15 cannot be closed: the row at place 0 cannot be read"},
		"in a small day":       {[]int64{45}, "2026-11-16 cannot be closed"},
		"in a large day":       {[]int64{1500}, "2026-11-17 cannot be closed"},
		"last of a large day":  {[]int64{2560}, "2026-11-17 cannot be closed"},
		"several days":         {[]int64{31, 100, 2570}, "2026-11-16 cannot be closed"},
		"first of today":       {[]int64{2621}, "the rows updated since 2026-11-20 could not be read completely"},
		"in today":             {[]int64{3000}, "the rows updated since 2026-11-20 could not be read completely"},
		"last of today":        {[]int64{3820}, "the rows updated since 2026-11-20 could not be read completely"},
		"neighbors, and today": {[]int64{200, 201, 202, 203, 3000}, "2026-11-17 cannot be closed"},
	} {
		for _, count := range []counting{countTotal, countPage} {
			t.Run(fmt.Sprint(name, " ", count), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.now = clockAt("2026-11-20T12:00:00Z")
				s.products, s.count, s.bad = sixDays(), count, bad(c.bad...)
				src := s.impatient()
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err != nil {
					t.Fatal(err)
				}
				got.has(t, s.without())
				first := schemas.InstantOf(s.products[c.bad[0]-1].updated)
				if got.done.Complete || got.settled > first || !strings.Contains(got.done.Delayed, c.says) ||
					!strings.Contains(got.done.Delayed, "&page_size=1&") ||
					!strings.Contains(got.done.Delayed, "answered 500 internal_error") {
					t.Errorf("settled %s, done %+v", got.settled, got.done)
				}
				if got.done.Started == schemas.MinInstant {
					t.Error("the resource is late for rows that were read")
				}
				if s.requests > 600 {
					t.Errorf("%d requests", s.requests)
				}
				for d := day(20772); d < 20777; d++ { // 2026-11-15 to 2026-11-19
					rows := slices.ContainsFunc(c.bad, func(id int64) bool {
						return dayOf(schemas.InstantOf(s.products[id-1].updated)) == d
					})
					if at := startOf(d); !rows && at > first && !src.days[d].closed {
						t.Errorf("%s is not closed", d)
					}
				}
				for _, r := range []poller.Request{
					{Kind: poller.Full, From: schemas.MinInstant},
					{Kind: poller.Lookup, Everywhere: true, Suspects: []poller.Suspect{{ID: c.bad[0],
						UpdatedAt: first, CreatedAt: first}}},
				} {
					if full, err := readAll(t.Context(), src, r); err == nil || full.done != nil ||
						!strings.Contains(err.Error(), "answered 500") {
						t.Errorf("kind %d: done %+v, %v", r.Kind, full.done, err)
					}
				}
				s.bad = nil
				clear(src.days)
				src.open = openWindow{}
				if got, err = readAll(t.Context(), src, pass(got.settled)); err != nil {
					t.Fatal(err)
				}
				got.completely(t)
				got.has(t, s.products[c.bad[0]-1:])
			})
		}
	}
}

// While the open window has a row that fails, its other rows come in each poll, and polls between two full
// searches for the row cost few requests.
func TestPollsGoOnBesideARowOfTodayThatFails(t *testing.T) {
	s := newService(t)
	now := at("2026-11-20T12:00:00Z")
	s.now = func() time.Time { return now }
	s.products, s.bad = sixDays(), bad(2700)
	src := s.impatient()
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	settled := got.settled
	for n := range 3 {
		now = now.Add(time.Second)
		fresh := product{id: int64(9000 + n), created: now, updated: now}
		s.products = append(s.products, fresh)
		s.products[3500].updated = now
		s.requests = 0
		got, err = readAll(t.Context(), src, pass(settled))
		if err != nil {
			t.Fatal(err)
		}
		got.has(t, []product{fresh, s.products[3500]})
		if s.requests > 100 || !strings.Contains(got.done.Delayed, "could not be read completely") {
			t.Errorf("%d requests, delayed: %s", s.requests, got.done.Delayed)
		}
	}
}

// A window of which no row comes, beside places that are refused, blocks nothing: the other days are read.
func TestARefusalBesideAnEmptyPageOfTodayBlocksNothing(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products, s.blank = oneDay(1, 300, "2026-11-20"), true
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		page, _ := strconv.Atoi(q.Get("page"))
		size, _ := strconv.Atoi(q.Get("page_size"))
		if (page+1)*size > 100 {
			refuse(w, 422, "past_refused")
		}
		return (page+1)*size > 100
	}
	got, err := readAll(t.Context(), s.impatient(), pass(midnight("2026-11-20")))
	if err != nil || got.done.Started != schemas.MinInstant ||
		!strings.Contains(got.done.Delayed, "422 past_refused") {
		t.Errorf("%+v, %v", got.done, err)
	}
}

// Today's rows grow beyond those that the service shows of a window, and counts. A poll that reads them once
// does not count for lag, and says why.
func TestAPollThatMissesRowsOfTodayDoesNotCount(t *testing.T) {
	for _, test := range []struct {
		refuses bool
		why     string
	}{{true, "answered 400 page_too_high"}, {false, "counts 130"}} {
		s := newService(t)
		now := at("2026-11-20T12:00:00Z")
		s.now = func() time.Time { return now }
		s.products, s.maxPage = oneDay(1, 60, "2026-11-20"), 20
		s.order = func(a, b product) int { return cmp.Compare(a.id*7919%1009, b.id*7919%1009) }
		if test.refuses {
			s.before = func(w http.ResponseWriter, q url.Values) bool {
				page, _ := strconv.Atoi(q.Get("page"))
				if page > 3 {
					refuse(w, 400, "page_too_high")
				}
				return page > 3
			}
		} else {
			s.pages = 4
		}
		src := s.impatient()
		poll := pass(midnight("2026-11-20"))
		got, err := readAll(t.Context(), src, poll)
		if err != nil || !got.done.Complete {
			t.Fatalf("%+v, %v", got.done, err)
		}
		poll.Complete = false
		for n := range 3 {
			now = now.Add(time.Second)
			if n == 0 {
				for i := range 70 {
					s.products = append(s.products, product{id: int64(9000 + i), created: now, updated: now})
				}
			}
			got, err = readAll(t.Context(), src, poll)
			if err != nil || got.done.Started != schemas.MinInstant || !strings.Contains(got.done.Delayed, test.why) {
				t.Errorf("poll %d: %+v, %v, expected %q", n, got.done, err, test.why)
			}
		}
	}
}

// While the window waits to be read whole, each poll publishes what changes beside a row that fails, also in
// a window of few rows, and in one that has no other row.
func TestAPollReadsTheNeighboursOfARowThatFails(t *testing.T) {
	for _, rows := range []int{1, 30} {
		s := newService(t)
		now := at("2026-11-20T12:00:00Z")
		s.now = func() time.Time { return now }
		s.products, s.bad = oneDay(1, rows, "2026-11-20"), bad(1)
		src := s.impatient()
		got, err := readAll(t.Context(), src, pass(midnight("2026-11-20")))
		for n := 0; n < 3 && err == nil; n++ {
			now = now.Add(time.Second)
			s.products = append(s.products, product{id: int64(100 + n), created: now, updated: now})
			if got, err = readAll(t.Context(), src, pass(midnight("2026-11-20"))); err == nil {
				got.has(t, s.products[1:])
			}
		}
		if err != nil || !strings.Contains(got.done.Delayed, "place 0 cannot be read") {
			t.Errorf("beside %d rows: %+v, %v", rows-1, got.done, err)
		}
	}
}

// Places from 1,000 on are refused. That is a cap: the day is cut by the days on which its rows were
// created.
func TestPagesThatAreRefusedForTheirNumberAreACap(t *testing.T) {
	for _, status := range []int{400, 403, 404, 422, 500, 504} {
		for created, settled := range map[int]string{40: "2026-11-20", 1: "2026-11-15"} {
			t.Run(fmt.Sprint(status, " ", created), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.now = clockAt("2026-11-20T12:00:00Z")
				s.products = manyDays(created)
				s.before = func(w http.ResponseWriter, q url.Values) bool {
					page, _ := strconv.Atoi(q.Get("page"))
					size, _ := strconv.Atoi(q.Get("page_size"))
					if (page+1)*size > 1000 {
						refuse(w, status, "result_window_too_large")
						return true
					}
					return false
				}
				c := s.client(client.Config{Now: s.now, Attempts: 1, MaxRequestsPerSecond: 1000})
				src := s.source(c)
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err != nil {
					t.Fatal(err)
				}
				if got.settled != midnight(settled) || s.requests > 200 || c.State().RequestsPerSecond != 1000 {
					t.Errorf("settled %s after %d requests, at %v a second", got.settled, s.requests,
						c.State().RequestsPerSecond)
				}
				if created > 1 {
					got.has(t, s.products)
					got.completely(t)
				} else if d := got.done.Delayed; !strings.Contains(d, fmt.Sprintf("answered %d result_window", status)) {
					t.Errorf("delayed: %s", d)
				}
			})
		}
	}
}

// Pages of 1,000 rows are too much for the service, and those of 100 are not: everything is read, and closed.
func TestPagesThatAreTooHeavyGetSmaller(t *testing.T) {
	for name, heavy := range map[string]func(*service, http.ResponseWriter){
		"504": func(_ *service, w http.ResponseWriter) { refuse(w, 504, "timeout") },
		"no answer": func(s *service, _ http.ResponseWriter) {
			s.mu.Unlock()
			defer s.mu.Lock()
			select {
			case <-s.closed:
			case <-time.After(1500 * time.Millisecond): // longer than the client waits
			}
		},
	} {
		for _, count := range []counting{countTotal, countPage} {
			t.Run(fmt.Sprint(name, " ", count), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.now = clockAt("2026-11-20T12:00:00Z")
				s.products, s.count = sixDays(), count
				s.before = func(w http.ResponseWriter, q url.Values) bool {
					if size, _ := strconv.Atoi(q.Get("page_size")); size <= 100 {
						return false
					}
					heavy(s, w)
					return true
				}
				src := s.source(s.client(client.Config{Now: s.now, Attempts: 1, RequestTimeout: time.Second}))
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err != nil {
					t.Fatal(err)
				}
				got.has(t, s.products)
				got.completely(t)
				if full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full,
					From: schemas.MinInstant}); err != nil || !full.done.Complete {
					t.Errorf("full: %+v, %v", full.done, err)
				}
			})
		}
	}
}

// No row of the last month shows how the service reads to_ dates. So pages of all days have to get smaller.
func TestPagesOfOldRowsThatAreTooHeavyGetSmaller(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = slices.Concat(oneDay(1, 150, "2026-09-01"), oneDay(1000, 150, "2026-09-02"))
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		size, _ := strconv.Atoi(q.Get("page_size"))
		if size > 100 {
			refuse(w, 504, "timeout")
		}
		return size > 100
	}
	full, err := readAll(t.Context(), s.impatient(), poller.Request{Kind: poller.Full, From: schemas.MinInstant})
	if err != nil || !full.done.Complete {
		t.Fatalf("%+v, %v", full.done, err)
	}
	full.has(t, s.products)
}

// refusesDates refuses requests with a date that is not allowed.
func (s *service) refusesDates(status int, allowed func(name, date string) bool) {
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		for name := range q {
			if !strings.HasPrefix(name, "page") && !allowed(name, q.Get(name)) {
				refuse(w, status, "date_out_of_range")
				return true
			}
		}
		return false
	}
}

// Dates before a year are refused. What the service gives is read, and a first load settles. Failures are no
// refusals: if no other form of request shows earlier rows, nothing is settled.
func TestAServiceThatRefusesEarlyDatesIsReadFromTheFirstThatItGives(t *testing.T) {
	for _, status := range []int{400, 403, 406, 422, 500} {
		for _, needsFrom := range []bool{false, true} {
			t.Run(fmt.Sprint(status, needsFrom), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.now = clockAt("2026-11-20T12:00:00Z")
				s.products = history(3000)
				s.refusesDates(status, func(_, date string) bool { return date >= "2019-01-01" })
				dates := s.before
				s.before = func(w http.ResponseWriter, q url.Values) bool {
					if needsFrom && !q.Has("updated_from") && !q.Has("created_from") {
						refuse(w, status, "missing_required_param")
						return true
					}
					return dates(w, q)
				}
				src := s.impatient()
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err != nil {
					t.Fatal(err)
				}
				got.has(t, s.products)
				if status < 500 || !needsFrom {
					got.completely(t)
				} else if got.settled != schemas.MinInstant || got.done.Complete ||
					!strings.Contains(got.done.Delayed, "2018-12-31 cannot be closed") {
					t.Errorf("settled %s, %+v", got.settled, got.done)
				}
				full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
				if needsFrom {
					start := err != nil && strings.Contains(err.Error(), "resources.products.start")
					if err == nil || full.done != nil || start != (status < 500) {
						t.Errorf("full: %+v, %v", full.done, err)
					}
				} else if err != nil || !full.done.Complete {
					t.Errorf("full: %+v, %v", full.done, err)
				} else {
					full.has(t, s.products)
				}
			})
		}
	}
}

// older is a history with ids of its own.
func older(n int) []product {
	rows := history(n)
	for i := range rows {
		rows[i].id += 100_000
	}
	return rows
}

// No date after today is sent, except where the service is asked again without it.
func TestAServiceThatRefusesDatesAfterTodayIsReadWhole(t *testing.T) {
	for _, status := range []int{400, 500} {
		for name, products := range map[string][]product{"history": append(sixDays(), older(300)...),
			"today": oneDay(1, 2500, "2026-11-20"), "nothing": nil} {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.now = clockAt("2026-11-20T12:00:00Z")
				s.products = products
				s.order = byUpdated
				s.refusesDates(status, func(_, date string) bool { return date <= "2026-11-20" })
				src := s.impatient()
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err != nil || !got.done.Complete {
					t.Fatalf("%+v, %v", got.done, err)
				}
				got.has(t, s.products)
				full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
				if err != nil || !full.done.Complete {
					t.Errorf("full: %+v, %v", full.done, err)
				}
				full.has(t, s.products)
				now := schemas.InstantOf(s.now())
				look, err := readAll(t.Context(), src, poller.Request{Kind: poller.Lookup, Everywhere: true,
					Suspects: []poller.Suspect{{ID: 77_777, UpdatedAt: now, CreatedAt: now}}})
				if err != nil || !look.done.Complete {
					t.Errorf("lookup: %+v, %v", look.done, err)
				}
			})
		}
	}
}

// A refusal of a form of request is no answer about rows: nothing is settled or called read for it.
func TestAFormOfRequestThatIsRefusedIsNoEmptyService(t *testing.T) {
	for name, refused := range map[string]func(url.Values) bool{
		"no lower bound":   func(q url.Values) bool { return !q.Has("updated_from") && !q.Has("created_from") },
		"any upper bound":  func(q url.Values) bool { return q.Has("updated_to") || q.Has("created_to") },
		"both bounds":      func(q url.Values) bool { return q.Has("updated_to") && q.Has("updated_from") },
		"more than a week": func(q url.Values) bool { return longer(q, "updated") || longer(q, "created") },
	} {
		for _, status := range []int{400, 500} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.now = clockAt("2026-11-20T12:00:00Z")
				s.products = sixDays()
				s.before = func(w http.ResponseWriter, q url.Values) bool {
					if refused(q) {
						refuse(w, status, "invalid_param")
					}
					return refused(q)
				}
				src := s.impatient()
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err == nil {
					read := 0
					for _, p := range s.products {
						if _, ok := got.rows[p.id]; !ok && schemas.InstantOf(p.updated) < got.settled {
							t.Fatalf("settled %s without row %d of %s", got.settled, p.id, p.updated)
						} else if ok {
							read++
						}
					}
					if name == "no lower bound" {
						got.completely(t)
					}
					if got.done.Complete && read < len(s.products) {
						t.Errorf("%d of %d rows were read: %+v", read, len(s.products), got.done)
					}
				} else if got.settled != schemas.MinInstant {
					t.Errorf("settled %s, %v", got.settled, err)
				}
				t.Logf("%d requests, %d rows, settled %s, %v", s.requests, len(got.rows), got.settled, err)
				full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
				if err == nil && (!full.done.Complete || len(full.rows) < len(s.products)) {
					t.Errorf("a full reading has %d of %d rows", len(full.rows), len(s.products))
				}
			})
		}
	}
}

// longer reports whether a request asks for more than a week of a dimension, or for days of long ago.
func longer(q url.Values, name string) bool {
	from, err := time.Parse(time.DateOnly, q.Get(name+"_from"))
	if err != nil {
		return q.Has(name + "_to")
	}
	to, err := time.Parse(time.DateOnly, q.Get(name+"_to"))
	return q.Get(name+"_from") < "2026-01-01" || err == nil && to.Sub(from) >= 7*24*time.Hour
}

// The service breaks down in the middle of a read, also while a row is looked for: nothing is stepped over.
func TestAServiceThatIsDownIsNotSteppedOver(t *testing.T) {
	for after := 1; after < 60; after += 2 {
		s := newService(t)
		s.now = clockAt("2026-11-20T12:00:00Z")
		s.products, s.bad = sixDays(), bad(1500)
		s.before = func(w http.ResponseWriter, _ url.Values) bool {
			if s.requests > after {
				refuse(w, 500, "internal_error")
			}
			return s.requests > after
		}
		src := s.impatient()
		got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
		if err == nil || s.requests > after+12 {
			t.Fatalf("down after %d: %d requests, %v", after, s.requests, err)
		}
		if got.settled > midnight("2026-11-17") {
			t.Errorf("down after %d: settled %s", after, got.settled)
		}
		for d, is := range src.days {
			if is.why != "" && d != 20774 { // 2026-11-17 has the bad row
				t.Errorf("down after %d: %s %s", after, d, is.why)
			}
		}
	}
}

// Everything at once, while rows are updated: bad rows, a cap, pages that are too heavy, and early and late
// dates that are refused. Once the rows are mended, all is settled, and every row was read as it is.
func TestRowsAreReadBesideAllFailuresWhileTheyMove(t *testing.T) {
	for _, order := range []func(a, b product) int{byID, byUpdated, newestFirst} {
		for _, count := range []counting{countTotal, countPage} {
			s := newService(t)
			now := at("2026-11-20T12:00:00Z")
			s.now = func() time.Time { return now }
			s.order, s.count = order, count
			s.products = append(manyDays(20), oneDay(50_000, 900, "2026-11-20")...)
			s.bad = bad(5, 21_300, 50_400)
			moves := 0
			s.refusesDates(422, func(_, date string) bool { return date >= "2026-10-01" && date <= "2026-11-20" })
			dates := s.before
			s.before = func(w http.ResponseWriter, q url.Values) bool {
				page, _ := strconv.Atoi(q.Get("page"))
				size, _ := strconv.Atoi(q.Get("page_size"))
				if s.requests%7 == 0 && moves < 60 {
					moves++
					now = now.Add(time.Second)
					s.products[20+moves*35].updated = now
				}
				switch {
				case size > 100:
					refuse(w, 504, "timeout")
				case (page+1)*size > 1500:
					refuse(w, 403, "too_far")
				default:
					return dates(w, q)
				}
				return true
			}
			src := s.impatient()
			all, settled := map[int64]schemas.Record{}, schemas.MinInstant
			for n := range 4 {
				if n == 2 {
					s.bad = nil
				}
				clear(src.days)
				src.open = openWindow{}
				got, err := readAll(t.Context(), src, pass(settled))
				if err != nil {
					t.Fatal(err)
				}
				for id, row := range got.rows {
					all[id] = row
				}
				settled = max(settled, got.settled)
				if n < 2 && settled > midnight("2026-11-15") {
					t.Errorf("settled %s", settled)
				}
				t.Logf("%d requests, %d rows, settled %s, delayed: %s", s.requests, len(got.rows), settled,
					got.done.Delayed)
			}
			(&taken{rows: all}).has(t, s.products)
			if settled != midnight("2026-11-20") {
				t.Errorf("settled %s", settled)
			}
		}
	}
}

// The first load may take long. Its batches say which request failed, before it has ended.
func TestAFirstLoadSaysAtOnceWhichRequestFails(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products, s.bad = sixDays(), bad(45)
	src := s.impatient()
	src.linger = 0
	said := ""
	err := each(src.Read(t.Context(), pass(schemas.MinInstant)), func(b poller.Batch) error {
		if b.Done == nil && said == "" {
			said = b.Failed
		}
		return nil
	})
	if err != nil || !strings.Contains(said, "answered 500 internal_error") {
		t.Errorf("%q, %v", said, err)
	}
}
