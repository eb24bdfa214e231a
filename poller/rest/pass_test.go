package rest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// history makes n products created from 2019 on, each updated up to four days later.
func history(n int) []product {
	var rows []product
	for i := range n {
		created := at("2019-01-02T10:00:00Z").Add(time.Duration(i) * 13 * time.Hour)
		updated := created.Add(time.Duration(i%5) * 24 * time.Hour)
		rows = append(rows, product{id: int64(i + 1), created: created, updated: updated})
	}
	return rows
}

// oneDay makes n products that were all created and updated on the day.
func oneDay(first int64, n int, day string) []product {
	var rows []product
	for i := range n {
		when := at(day + "T00:00:00Z").Add(time.Duration(i) * 10 * time.Second)
		rows = append(rows, product{id: first + int64(i), created: when, updated: when})
	}
	return rows
}

func midnight(day string) schemas.Instant { return schemas.InstantOf(at(day + "T00:00:00Z")) }

// completely: a complete pass on 2026-11-20 that closed every day before.
func (got *taken) completely(t *testing.T) {
	t.Helper()
	if want := midnight("2026-11-20"); got.settled != want {
		t.Errorf("settled %s, want %s", got.settled, want)
	}
	if got.done == nil || !got.done.Complete || got.done.Delayed != "" {
		t.Errorf("done %+v, want a complete pass", got.done)
	}
}

func TestAFirstLoadSettlesAllDaysThatAreOverAndReadsTheOpenOne(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = history(5000)
	src := s.fresh()
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
	got.completely(t)
	if s.requests > 40 {
		t.Errorf("%d rows over 8 years took %d requests", len(s.products), s.requests)
	}
	s.requests = 0
	if got, err = readAll(t.Context(), src, pass(got.settled)); err != nil || !got.done.Complete {
		t.Fatal(err, got.done)
	}
	if s.requests != 2 {
		t.Errorf("an open window without rows took %d requests, want 2: it is asked for twice", s.requests)
	}
}

func TestAReadTellsWhichDaysItIsClosingAndWhenItEnds(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = oneDay(1, 3, "2026-11-19")
	src := s.fresh()
	var told []string
	src.cfg.Doing = func(text string) { told = append(told, text) }
	if _, err := readAll(t.Context(), src, pass(midnight("2026-11-19"))); err != nil {
		t.Fatal(err)
	}
	want := []string{"closing 2026-11-19", "reading what changed since 2026-11-20", ""}
	if !slices.Equal(told, want) {
		t.Errorf("%q, expected %q", told, want)
	}
}

// Windows of many pages move settled at their end alone: what is left of them is told.
func TestAReadTellsHowManyPagesAStretchHasLeft(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	for d := range 60 {
		day := at("2026-09-01T00:00:00Z").AddDate(0, 0, d).Format(time.DateOnly)
		s.products = append(s.products, oneDay(int64(1000*d+1), 400, day)...)
	}
	src := s.fresh()
	told := map[string]bool{}
	src.cfg.Doing = func(text string) { told[text] = true }
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.completely(t)
	if !told["looking for the earliest row"] {
		t.Error("it does not say that it looks for the earliest row")
	}
	closing := func(text string) bool { return strings.HasPrefix(text, "closing ") }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(told)), closing) {
		t.Errorf("no stretch was told: %q", slices.Sorted(maps.Keys(told)))
	}
}

// Every order, page sizes that are not granted, both meanings of count, more rows of one created day than
// fit a page; rows leave the day while it is read, and requests are refused for their rate.
func TestADayOfManyPagesIsClosedInEveryOrder(t *testing.T) {
	for name, order := range map[string]func(a, b product) int{
		"id": byID, "updated": byUpdated, "newest first": newestFirst, "shuffled": nil,
	} {
		for _, count := range []counting{countTotal, countPage} {
			for _, maxPage := range []int{200, 37} {
				t.Run(fmt.Sprintf("%s, count %d, %d a page", name, count, maxPage), func(t *testing.T) {
					t.Parallel()
					s := newService(t)
					s.now = clockAt("2026-11-20T12:00:00Z")
					s.order, s.count, s.maxPage = order, count, maxPage
					s.products = append(oneDay(1, maxPage*5/2, "2026-11-18"), oneDay(10_000, maxPage*3/2, "2026-11-20")...)
					for i := range maxPage * 2 { // created on many days, updated on one
						s.products = append(s.products, product{id: int64(20_000 + i),
							created: at("2024-01-01T00:00:00Z").Add(time.Duration(i) * 9 * time.Hour),
							updated: at("2026-11-18T05:00:00Z").Add(time.Duration(i) * time.Second)})
					}
					left, refused := s.troubled("2026-11-18", 12)
					got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
					if err != nil {
						t.Fatal(err)
					}
					got.has(t, s.products)
					got.completely(t)
					if *left < 3 || *refused < 2 {
						t.Errorf("%d rows left and %d requests were refused: the test says little", *left, *refused)
					}
					t.Logf("%d rows, %d requests", len(s.products), s.requests)
				})
			}
		}
	}
}

// troubled lets a row leave the day with every second request for several of its pages, up to so many rows,
// and refuses every tenth request.
func (s *service) troubled(day string, most int) (left, refused *int) {
	left, refused = new(int), new(int)
	var on []int
	for i := range s.products {
		if s.products[i].updated.Format(time.DateOnly) == day {
			on = append(on, i)
		}
	}
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		if s.requests%10 == 0 {
			*refused++
			w.Header().Set("Retry-After", "0")
			refuse(w, 429, "rate_limited")
			return true
		}
		if q.Get("updated_to") == day && q.Get("page_size") != "1" && s.requests%2 == 0 && *left < most {
			n := s.rng.IntN(len(on))
			s.products[on[n]].updated = s.now().Add(-time.Hour)
			on = slices.Delete(on, n, n+1)
			*left++
		}
		return false
	}
	return left, refused
}

// A day is over when both clocks say so, overlap included, by an answer that came before the request was
// sent.
func TestADayIsOverOnlyByBothClocksAndOverlap(t *testing.T) {
	for _, c := range []struct{ service, ours, settled string }{
		{"2026-11-20T00:04:59Z", "2026-11-20T00:20:00Z", "2026-11-19"},
		{"2026-11-20T00:20:00Z", "2026-11-20T00:04:59Z", "2026-11-19"},
		{"2026-11-20T00:05:00Z", "2026-11-20T00:05:00Z", "2026-11-20"},
		{"2026-11-19T23:00:00Z", "2026-11-25T00:00:00Z", "2026-11-19"},
		{"", "2026-11-20T00:05:00Z", "2026-11-20"},
	} {
		s := newService(t)
		if c.service != "" {
			s.now = clockAt(c.service)
		}
		s.products = oneDay(1, 10, "2026-11-18")
		src := s.source(s.client(client.Config{Now: clockAt(c.ours)}))
		got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
		if err != nil {
			t.Fatal(err)
		}
		if got.settled != midnight(c.settled) {
			t.Errorf("service %s, ours %s: settled %s, want %s", c.service, c.ours, got.settled, c.settled)
		}
	}
}

// The day turns during the read. The Date of the answer that shows it came after the request that would have
// closed the day was sent.
func TestADayIsNotClosedByTheAnswerThatFirstShowsItIsOver(t *testing.T) {
	s := newService(t)
	ticks := []string{"2026-11-20T00:04:00Z", "2026-11-20T00:06:00Z"}
	n := 0
	s.now = func() time.Time { n++; return at(ticks[min(n/4, 1)]) } // the first four answers come before
	s.products = oneDay(1, 10, "2026-11-19")
	src := s.source(s.client(client.Config{Now: clockAt("2026-11-20T09:00:00Z")}))
	got, err := readAll(t.Context(), src, pass(midnight("2026-11-19")))
	if err != nil {
		t.Fatal(err)
	}
	if got.settled != schemas.MinInstant {
		t.Errorf("settled %s in the read that began before", got.settled)
	}
	for n < 5 {
		if _, err = readAll(t.Context(), src, pass(midnight("2026-11-19"))); err != nil {
			t.Fatal(err)
		}
	}
	got, err = readAll(t.Context(), src, pass(midnight("2026-11-19")))
	if err != nil || got.settled != midnight("2026-11-20") {
		t.Errorf("settled %s, %v", got.settled, err)
	}
}

func TestAServiceThatCutsDaysInAnotherZoneLosesNoRow(t *testing.T) {
	for _, hours := range []int{-11, -1, 5, 14} {
		t.Run(fmt.Sprintf("UTC%+d", hours), func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.zone = time.FixedZone("", hours*3600)
			s.now = clockAt("2026-11-20T12:00:00Z")
			for i := range 2000 {
				when := at("2026-11-01T00:00:00Z").Add(time.Duration(i) * 13 * time.Minute)
				s.products = append(s.products, product{id: int64(i + 1), created: when, updated: when})
			}
			src := s.fresh()
			var told []health.Days
			src.cfg.Days = func(days []health.Days) { told = days }
			got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
			if err != nil {
				t.Fatal(err)
			}
			got.has(t, s.products)
			if len(told) != 1 || told[0].State != "open" || told[0].From != "2026-11-18" {
				t.Errorf("days that are not settled: %+v", told)
			}
			if got.settled != midnight("2026-11-18") || src.calendar.margin != 1 {
				t.Errorf("settled %s, margin %d", got.settled, src.calendar.margin)
			}
			// A row of each hour from settled on is found by the next read.
			rest, err := readAll(t.Context(), src, pass(got.settled))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range s.products {
				if _, ok := rest.rows[p.id]; !ok && schemas.InstantOf(p.updated) >= got.settled {
					t.Fatalf("product of %s not read from %s on", p.updated, got.settled)
				}
			}
		})
	}
}

// An empty service settles nothing; it may be one that is just being filled.
func TestAnEmptyServiceSettlesNothing(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	src := s.fresh()
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil || got.settled != schemas.MinInstant || !got.done.Complete {
		t.Errorf("settled %s, %+v, %v", got.settled, got.done, err)
	}
	s.products = history(100)
	if got, err = readAll(t.Context(), src, pass(schemas.MinInstant)); err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
}

// One empty answer in the middle of everything is asked for again.
func TestAnEmptyAnswerThatIsNotTrueClosesNothing(t *testing.T) {
	for n := 1; n <= 25; n++ {
		s := newService(t)
		s.now = clockAt("2026-11-20T12:00:00Z")
		s.products = history(1500)
		s.before = func(w http.ResponseWriter, q url.Values) bool {
			if s.requests != n {
				return false
			}
			fmt.Fprintf(w, `{"data":[],"meta":{"page":%s,"page_size":1000,"count":0,"has_more":false}}`, q.Get("page"))
			return true
		}
		got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
		if err != nil {
			t.Fatal(err)
		}
		if got.has(t, s.products); t.Failed() {
			t.Fatalf("with answer %d empty", n)
		}
	}
}

// Again and again the service says that there is nothing before 2023.
func TestAWrongEarliestDayLosesNothing(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = history(3000)
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		if q.Get("page_size") != "1" || q.Get("updated_to") >= "2023" {
			return false
		}
		fmt.Fprint(w, `{"data":[],"meta":{"page":0,"page_size":1,"count":0,"has_more":false}}`)
		return true
	}
	got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
	got.completely(t)
}

// What such a search had found would make the next first load one window of all years.
func TestASearchForTheEarliestRowThatFailedIsForgotten(t *testing.T) {
	for fails := range 16 {
		s := newService(t)
		s.now = clockAt("2026-11-20T12:00:00Z")
		s.products = history(30)
		src := s.fresh()
		s.before = func(w http.ResponseWriter, _ url.Values) (answered bool) {
			// The first request asks for the clock.
			if answered = s.requests >= fails+2; answered {
				refuse(w, 400, "bad_request")
			}
			return answered
		}
		if _, err := readAll(t.Context(), src, pass(schemas.MinInstant)); err == nil {
			t.Fatalf("after %d requests: no error", fails+2)
		}
		s.before = nil
		got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
		if err != nil {
			t.Fatal(err)
		}
		got.has(t, s.products)
		want := slices.MinFunc(s.products, byUpdated).updated
		if src.earliest != dayOf(schemas.InstantOf(want)) {
			t.Errorf("after %d requests: the earliest row is of %s, found %s", fails+2, want, src.earliest)
		}
	}
}

func TestADayThatDoesNotComeCleanIsNotClosedAndLaterDaysGoOn(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 10, "2026-11-15"), oneDay(100, 2500, "2026-11-16")...)
	s.products = append(s.products, oneDay(10_000, 10, "2026-11-18")...)
	stuck := true
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		from, to := q.Get("updated_from"), q.Get("updated_to")
		if !stuck || to < "2026-11-16" || from > "2026-11-16" || from == "" {
			return false
		}
		row := s.products[10].json()
		const forEver = `{"data":[%s],"meta":{"page":%s,"page_size":1000,"count":2500,"has_more":true}}`
		fmt.Fprintf(w, forEver, row, q.Get("page"))
		return true
	}
	src := s.fresh()
	var told []string // the last time
	src.cfg.Days = func(ranges []health.Days) {
		told = nil
		for _, r := range ranges {
			told = append(told, fmt.Sprintf("%s %s..%s %.27s %v", r.State, r.From, r.To, r.Why, !r.Next.IsZero()))
		}
	}
	says := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("%s: days %q, expected %q", when, told, want)
		}
	}
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	const notClosed = "not_closed 2026-11-16..2026-11-16 2026-11-16 cannot be closed true"
	const closed, open = "closed 2026-11-17..2026-11-19  false", "open 2026-11-20..  false"
	says("after the first load", notClosed, closed, open)
	if got.settled != midnight("2026-11-15") || got.done.Complete || // in Asia its day has rows of the 15th
		!strings.Contains(got.done.Delayed, "2026-11-16") {
		t.Errorf("settled %s, done %+v", got.settled, got.done)
	}
	if _, ok := got.rows[10_000]; !ok {
		t.Error("later days were not read")
	}
	s.requests = 0
	got, err = readAll(t.Context(), src, pass(got.settled))
	if err != nil || got.done.Delayed == "" || s.requests > 5 {
		t.Errorf("%d requests while the day waits, done %+v, %v", s.requests, got.done, err)
	}
	says("while it waits", notClosed, closed, open)
	stuck = false
	maps.DeleteFunc(src.days, func(_ day, is pastDay) bool { return !is.closed }) // it is time again
	if got, err = readAll(t.Context(), src, pass(midnight("2026-11-15"))); err != nil {
		t.Fatal(err)
	}
	got.completely(t)
	says("after all", open)
	for _, p := range s.products[10:2510] {
		if _, ok := got.rows[p.id]; !ok {
			t.Fatalf("product %d of the day that is not closed not read", p.id)
		}
	}
}

// Twenty years of days that cannot be closed yet cost a poll no time for each pair of them.
func TestDaysThatWaitAreReportedOnceAPass(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = oneDay(1, 10, "2006-11-20")
	src := s.fresh()
	years := span{From: dayOf(midnight("2006-11-20")), To: dayOf(midnight("2026-11-19"))}
	src.days.note(years, "some reason")
	reports := 0
	src.cfg.Days = func([]health.Days) { reports++ }
	got, err := readAll(t.Context(), src, pass(midnight("2006-11-20")))
	if err != nil || got.done.Delayed != "some reason" || reports > 3 {
		t.Errorf("%d reports, done %+v, %v", reports, got.done, err)
	}
}

func TestAPageOfWhichNothingCanBePublishedHoldsItsDayAndHealsByItself(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 30, "2026-11-15"), oneDay(100, 30, "2026-11-17")...)
	s.products = append(s.products, oneDay(1000, 30, "2026-11-20")...)
	for i := range s.products {
		if s.products[i].id >= 100 && s.products[i].id < 1000 {
			s.products[i].cost = `"four"`
		}
	}
	src := s.fresh()
	got, err := readAll(t.Context(), src, pass(midnight("2026-11-15")))
	if err == nil || !strings.Contains(err.Error(), `"cost"`) || strings.Contains(err.Error(), "four") {
		t.Errorf("error %v", err)
	}
	between := got.settled == midnight("2026-11-16") || got.settled == midnight("2026-11-17")
	if !between || len(got.rejects) != 0 || got.done != nil {
		t.Errorf("settled %s, %d rejects, done %+v", got.settled, len(got.rejects), got.done)
	}
	if _, ok := got.rows[1000]; !ok {
		t.Error("the other pages were not published")
	}
	for i := range s.products {
		s.products[i].cost = ""
	}
	if got, err = readAll(t.Context(), src, pass(got.settled)); err != nil {
		t.Fatal(err)
	}
	got.completely(t)
}

func TestABadRowAmongGoodOnesIsRejectedAndTheDayCloses(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = oneDay(1, 30, "2026-11-15")
	s.products[3].cost = "none"
	got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
	if err != nil || len(got.rejects) == 0 || got.settled != midnight("2026-11-20") {
		t.Errorf("%d rejects, settled %s, %v", len(got.rejects), got.settled, err)
	}
}

// Cheap polls find every change and cost a page; they complete nothing.
func TestCheapPollsFindChangesAtTheEndWhereTheyAppear(t *testing.T) {
	orders := map[string]func(a, b product) int{"oldest first": byUpdated, "newest first": newestFirst}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			now := at("2026-11-20T04:00:00Z")
			clock := func() time.Time { return now }
			s.now, s.order, s.maxPage = clock, order, 200
			s.products = oneDay(1, 1400, "2026-11-20") // until 03:53
			src := s.source(s.client(client.Config{Now: clock}))
			from := midnight("2026-11-20")
			if got, err := readAll(t.Context(), src, pass(from)); err != nil || !got.done.Complete {
				t.Fatal(err, got.done)
			}
			poll := poller.Request{Kind: poller.Pass, From: from}
			for i := range 5 {
				now = now.Add(time.Minute)
				s.products[i*180].updated = now.Add(-time.Second)
				created := product{id: int64(9000 + i), created: now, updated: now.Add(-2 * time.Second)}
				s.products = append(s.products, created)
				s.requests = 0
				got, err := readAll(t.Context(), src, poll)
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range []int64{s.products[i*180].id, int64(9000 + i)} {
					if _, ok := got.rows[id]; !ok {
						t.Errorf("poll %d: product %d not read", i, id)
					}
				}
				if got.done.Complete || s.requests > 3 {
					t.Errorf("poll %d: %d requests, %+v", i, s.requests, got.done)
				}
			}
			now = now.Add(wholeEvery)
			if got, err := readAll(t.Context(), src, poll); err != nil || !got.done.Complete {
				t.Errorf("no whole read after %s: %+v, %v", wholeEvery, got.done, err)
			}
			s.order = byID // now only a whole read finds what cheap polls miss
			now = now.Add(wholeEvery)
			s.products[700].updated = now
			got, err := readAll(t.Context(), src, poll)
			if err != nil || got.rows[s.products[700].id].UpdatedAt != schemas.InstantOf(now) {
				t.Errorf("the change was not found in another order: %+v, %v", got.done, err)
			}
		})
	}
}

// Some rows come first, whatever happens to them, and the rest by updated_at: polls of the last page do not
// show it when one of the first changes. The whole read that finds the change sees that it is out of order.
func TestAnOrderThatOnlyLooksSortedIsReadWholeOnceItHasHiddenAChange(t *testing.T) {
	for name, order := range map[string]func(a, b product) int{"oldest first": byUpdated,
		"newest first": newestFirst} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			now := at("2026-11-20T04:00:00Z")
			clock := func() time.Time { return now }
			s.now, s.maxPage = clock, 200
			s.order = func(a, b product) int { // where cheap polls come last
				if aside := a.id <= 3; aside != (b.id <= 3) {
					if aside == (name == "oldest first") {
						return -1
					}
					return 1
				}
				return order(a, b)
			}
			s.products = oneDay(1, 1400, "2026-11-20") // until 03:53
			src := s.source(s.client(client.Config{Now: clock}))
			from := midnight("2026-11-20")
			if got, err := readAll(t.Context(), src, pass(from)); err != nil || !got.done.Complete {
				t.Fatal(err, got.done)
			}
			changes := func(polls int) (late int) { // polls that do not show the change of a row aside
				changed := &s.products[1]
				for i := range polls {
					now = now.Add(time.Minute)
					s.products[100+i].updated = now.Add(-time.Second)
					if i == 1 {
						changed.updated = now.Add(-time.Second)
					}
					got, err := readAll(t.Context(), src, poller.Request{Kind: poller.Pass, From: from})
					if err != nil {
						t.Fatal(err)
					}
					if got.rows[changed.id].UpdatedAt != schemas.InstantOf(changed.updated) {
						late++
					}
				}
				return late
			}
			if late := changes(12); late == 0 {
				t.Error("no poll missed anything: the test tries nothing")
			}
			if late := changes(5); late > 1 { // the poll before the first change
				t.Errorf("after a whole read, %d polls missed a change", late)
			}
		})
	}
}

// An order by updates that holds is believed, however rows move, and while rows are deleted: polls stay
// cheap, and whatever one of them skipped the next one meets.
func TestAnOrderThatHoldsIsNotTakenForNone(t *testing.T) {
	for _, order := range []func(a, b product) int{byUpdated, newestFirst} {
		s := newService(t)
		now := at("2026-11-20T20:00:00Z")
		clock := func() time.Time { return now }
		s.now, s.order, s.maxPage = clock, order, 200
		s.products = oneDay(1, 600, "2026-11-20")
		moving := func(http.ResponseWriter, url.Values) bool { // between any two pages
			n := s.rng.IntN(len(s.products))
			s.products[n].updated = now
			if n = s.rng.IntN(len(s.products)); s.requests%10 == 0 {
				s.products = slices.Delete(s.products, n, n+1)
			}
			return false
		}
		src := s.source(s.client(client.Config{Now: clock}))
		cheap, newest := 0, map[int64]schemas.Instant{}
		for i := range 14 {
			now = now.Add(time.Minute)
			if s.before = moving; i == 13 {
				s.before = nil
			}
			got, err := readAll(t.Context(), src, poller.Request{Kind: poller.Pass, From: midnight("2026-11-20")})
			if err != nil {
				t.Fatal(err)
			}
			if !got.done.Complete {
				cheap++
			}
			for id, row := range got.rows {
				newest[id] = max(newest[id], row.UpdatedAt)
			}
		}
		if cheap < 10 {
			t.Errorf("%d of 14 polls were cheap", cheap)
		}
		for _, p := range s.products {
			if newest[p.id] != schemas.InstantOf(p.updated) {
				t.Errorf("product %d of %s was read as of %s last", p.id, p.updated, newest[p.id])
			}
		}
	}
}

// A pass that was not published is not built upon: the next one reads all again.
func TestAReadThatWasCutShortIsForgotten(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.order = newestFirst
	s.products = oneDay(1, 3000, "2026-11-20")
	src := s.fresh()
	from := midnight("2026-11-20")
	if _, err := readAll(t.Context(), src, pass(from)); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("not written")
	err := each(src.Read(t.Context(), pass(from)), func(poller.Batch) error { return failed })
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	got, err := readAll(t.Context(), src, poller.Request{Kind: poller.Pass, From: from})
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
	if !got.done.Complete {
		t.Errorf("done %+v", got.done)
	}
}

func TestAFullReadMeetsEveryRowCreatedOrUpdatedSinceItsStart(t *testing.T) {
	for hours, from := range map[int]schemas.Instant{0: schemas.MinInstant, 14: midnight("2021-06-01"),
		-11: midnight("2021-06-01")} {
		s := newService(t)
		s.now, s.zone = clockAt("2026-11-20T12:00:00Z"), time.FixedZone("", hours*3600)
		s.products = append(history(4000), oneDay(10_000, 2500, "2026-11-10")...)
		s.products[7].updated = at("2026-11-20T11:00:00Z") // created in 2019
		s.products[8].updated = at("2021-06-01T00:10:00Z")
		s.products[9].updated, s.products[9].created = at("2021-06-01T00:10:00Z"), at("2021-06-01T00:10:00Z")
		got, err := readAll(t.Context(), s.fresh(), poller.Request{Kind: poller.Full, From: from})
		if err != nil || !got.done.Complete || got.settled != schemas.MinInstant {
			t.Fatal(err, got.done, got.settled)
		}
		for _, p := range s.products {
			since := schemas.InstantOf(p.created) >= from || schemas.InstantOf(p.updated) >= from
			if _, ok := got.rows[p.id]; !ok && since {
				t.Fatalf("product %d created %s updated %s not read", p.id, p.created, p.updated)
			}
		}
	}
}

func TestALookupReadsTheDaysOfTheSuspects(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = history(3000)
	src := s.fresh()
	a, b := s.products[100], s.products[2000]
	got, err := readAll(t.Context(), src, poller.Request{Kind: poller.Lookup, Suspects: []poller.Suspect{
		{ID: a.id, UpdatedAt: schemas.InstantOf(a.updated), CreatedAt: schemas.MinInstant},
		{ID: b.id, UpdatedAt: schemas.MinInstant, CreatedAt: schemas.InstantOf(b.created)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, []product{a, b})
}

// The day of the only row created on it is empty once that is deleted: the service is not.
func TestALookupThatMeetsNoRowSaysWhetherThereIsAny(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	src := s.fresh()
	alone := product{id: 9001, created: at("2026-11-02T10:00:00Z"), updated: at("2026-11-02T10:00:00Z")}
	other := product{id: 9002, created: at("2026-11-12T10:00:00Z"), updated: at("2026-11-12T10:00:00Z")}
	suspect := poller.Suspect{ID: alone.id, UpdatedAt: schemas.MinInstant,
		CreatedAt: schemas.InstantOf(alone.created)}
	for _, test := range []struct {
		products []product
		empty    bool
	}{{[]product{alone, other}, false}, {[]product{other}, false}, {nil, true}} {
		s.products = test.products
		for _, everywhere := range []bool{false, true} {
			got, err := readAll(t.Context(), src, poller.Request{Kind: poller.Lookup, From: schemas.MinInstant,
				Everywhere: everywhere, Suspects: []poller.Suspect{suspect}})
			if err != nil || got.done.Empty != test.empty {
				t.Errorf("of %d products, everywhere %v: %+v, %v", len(test.products), everywhere, got.done, err)
			}
		}
	}
}

// A row that has lost its created_at is found on the day of its updated_at.
func TestALookupByUpdatedAtFindsARowWithoutCreatedAt(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = history(3000)
	lost := s.products[70]
	s.products[70].created = time.Time{}
	got, err := readAll(t.Context(), s.fresh(), poller.Request{Kind: poller.Lookup, Suspects: []poller.Suspect{
		{ID: lost.id, UpdatedAt: schemas.InstantOf(lost.updated), CreatedAt: schemas.InstantOf(lost.created)},
	}})
	isLost := func(r schemas.Reject) bool { return r.ID == lost.id }
	if err != nil || !slices.ContainsFunc(got.rejects, isLost) {
		t.Errorf("%d rejects, %v", len(got.rejects), err)
	}
}

// The poller knows the row by its dead letter. A full reading asks by created_at and cannot meet it.
func TestALookupEverywhereFindsARowWithoutCreatedAt(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = history(3000)
	s.products[70].created = time.Time{}
	src := s.fresh()
	full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
	if err != nil || len(full.rejects) > 0 || len(full.rows) != 2999 {
		t.Fatalf("%d rows, %d rejects, %v", len(full.rows), len(full.rejects), err)
	}
	nowhere := poller.Suspect{ID: 71, UpdatedAt: schemas.MinInstant, CreatedAt: schemas.MinInstant}
	got, err := readAll(t.Context(), src, poller.Request{Kind: poller.Lookup, Everywhere: true,
		From: schemas.MinInstant, Suspects: []poller.Suspect{nowhere}})
	if err != nil || !got.done.Complete || len(got.rejects) == 0 || got.rejects[0].ID != 71 ||
		got.rejects[0].Field != "created_at" {
		t.Errorf("%d rejects, done %+v, %v", len(got.rejects), got.done, err)
	}
}

// One bad page is no reason to withhold the others; nothing is settled past it, and the resource is blocked.
func TestAPageOfWhichNothingCanBePublishedBlocks(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 40, "2026-11-15"), oneDay(100, suspectRows, "2026-11-20")...)
	for i := range s.products[40:] {
		s.products[40+i].cost = `"dear"`
	}
	src := s.fresh()
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	var blocked *poller.BlockedError
	if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "cost") || len(got.rejects) > 0 ||
		got.done != nil || !blocked.Publishes {
		t.Errorf("%d rejects, done %v: %v", len(got.rejects), got.done, err)
	}
	got.has(t, s.products[:40])
	_, err = readAll(t.Context(), s.fresh(), pass(midnight("2026-11-20")))
	if !errors.As(err, &blocked) || blocked.Publishes {
		t.Errorf("no other page is there, and the others go on: %v", err)
	}
	for i := range s.products[40:] {
		s.products[40+i].cost = ""
	}
	if got, err = readAll(t.Context(), src, pass(got.settled)); err != nil || !got.done.Complete {
		t.Errorf("once they are good: %v", err)
	}
}
