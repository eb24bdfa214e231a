package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/schemas"
)

// How a service tells where a listing ends, and how many rows it has.

// manyDays are 2,500 rows updated on 2026-11-16, created on so many days up to it, and some before and
// after.
func manyDays(created int) []product {
	rows := append(oneDay(1, 10, "2026-11-15"), oneDay(10_000, 10, "2026-11-18")...)
	for i := range 2500 {
		updated := at("2026-11-16T00:00:00Z").Add(time.Duration(i) * 30 * time.Second)
		day := updated.AddDate(0, 0, -(i % created))
		rows = append(rows, product{id: int64(20_000 + i), created: day, updated: updated})
	}
	return rows
}

func TestADayOfWhichTheServiceShowsOnlyTheFirstPagesIsReadInPartsOrNotClosed(t *testing.T) {
	for created, want := range map[int]string{20: "2026-11-20", 1: "2026-11-15"} {
		s := newService(t)
		s.now = clockAt("2026-11-20T12:00:00Z")
		s.maxPage, s.pages = 100, 10
		s.products = manyDays(created)
		got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
		if err != nil || got.settled != midnight(want) {
			t.Fatalf("created on %d days: settled %s, %v", created, got.settled, err)
		}
		if created > 1 {
			got.has(t, s.products)
			got.completely(t)
			continue
		}
		for _, text := range []string{"2026-11-16 cannot be closed: ", "counts 2500", "store.dialect.count"} {
			if !strings.Contains(got.done.Delayed, text) {
				t.Errorf("delayed %q, which does not say %q", got.done.Delayed, text)
			}
		}
		if _, later := got.rows[10_000]; !later || got.done.Complete {
			t.Errorf("later days were read: %v, done %+v", later, got.done)
		}
	}
}

// Neither a sweep nor verify takes it for all that there is.
func TestAFullReadOfWhichTheServiceShowsOnlyTheFirstPagesIsAnError(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.maxPage, s.pages = 100, 10
	s.products = manyDays(1)
	everything := poller.Request{Kind: poller.Full, From: schemas.MinInstant}
	got, err := readAll(t.Context(), s.fresh(), everything)
	if err == nil || !strings.Contains(err.Error(), "counts 2500") || got.done != nil {
		t.Errorf("done %+v, %v", got.done, err)
	}
	s.pages = 0
	if got, err = readAll(t.Context(), s.fresh(), everything); err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
}

// The end of the open window is where changes appear, if the service sorts so; not where it shows no more.
func TestACheapPollThatEndsWhereTheServiceShowsNoMoreIsNone(t *testing.T) {
	s := newService(t)
	now := at("2026-11-20T20:00:00Z")
	s.now, s.order, s.maxPage = func() time.Time { return now }, byUpdated, 100
	s.products = oneDay(1, 1500, "2026-11-20")
	src := s.fresh()
	from := midnight("2026-11-20")
	if got, err := readAll(t.Context(), src, pass(from)); err != nil || !got.done.Complete {
		t.Fatal(err, got.done)
	}
	now = now.Add(time.Minute)
	s.pages = 10
	got, err := readAll(t.Context(), src, poller.Request{Kind: poller.Pass, From: from, Started: 1})
	if err != nil || got.done.Complete || !strings.Contains(got.done.Delayed, "counts") {
		t.Errorf("done %+v, %v", got.done, err)
	}
	if got.done.Started != schemas.MinInstant {
		t.Error("a pass that may have missed changes counts for lag")
	}
}

// A service whose count is an estimate holds until somebody says so.
func TestACountThatIsAnEstimateHoldsUntilTheSettingSaysSo(t *testing.T) {
	for _, worth := range []string{dialect.Auto, dialect.Estimate} {
		s := newService(t)
		s.now = clockAt("2026-11-20T12:00:00Z")
		s.count = countMore
		s.products = manyDays(1)
		src := s.fresh()
		cfg := src.cfg
		cfg.Dialect = counted(worth)
		src = NewSource(cfg)
		got, err := readAll(t.Context(), src, pass(midnight("2026-11-15")))
		if err != nil {
			t.Fatal(err)
		}
		got.has(t, s.products)
		if worth != dialect.Auto {
			got.completely(t)
		} else if got.settled != schemas.MinInstant || !strings.Contains(got.done.Delayed, "store.dialect.count") {
			t.Errorf("settled %s, delayed %q", got.settled, got.done.Delayed)
		}
	}
}

// It says that more follow, also on empty pages, and also before the first row of the table.
func TestAServiceThatSaysForEverThatMoreFollowsIsReadAndClosedWhereItCounts(t *testing.T) {
	for _, count := range []counting{countTotal, countPage, countNone} {
		t.Run(fmt.Sprintf("count %d", count), func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.now = clockAt("2026-11-20T12:00:00Z")
			s.count, s.forEver = count, true
			s.products = append(history(2000), oneDay(10_000, 2500, "2026-11-18")...)
			s.products = append(s.products, oneDay(20_000, 30, "2026-11-20")...)
			before := 0 // requests for days before the first row
			s.before = func(_ http.ResponseWriter, q url.Values) bool {
				first := s.products[0].created.Format(time.DateOnly)
				if to := cmp.Or(q.Get("updated_to"), q.Get("created_to")); to != "" && to < first {
					before++
				}
				return false
			}
			src := s.fresh()
			got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
			if err != nil || s.requests > 100 || before > 16 {
				t.Fatalf("%d requests, %d of them for days before the first row, %v", s.requests, before, err)
			}
			got.has(t, s.products)
			if count == countTotal {
				got.completely(t)
			} else if got.settled != schemas.MinInstant || !strings.Contains(got.done.Delayed, "for ever") {
				t.Errorf("settled %s, done %+v", got.settled, got.done)
			}
			first := s.requests
			s.requests = 0
			if _, err = readAll(t.Context(), src, pass(got.settled)); err != nil || s.requests > 10 {
				t.Errorf("%d requests, then %d: %v", first, s.requests, err)
			}
			t.Logf("%d requests, then %d", first, s.requests)
		})
	}
}

// A row without created_at is in no window of created days, so a day that has one is not cut.
func TestARowWithoutACreatedDayIsReadBeforeItsDayIsClosed(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.maxPage = 100
	s.products = manyDays(20)
	odd := product{id: 5000, updated: at("2026-11-16T12:00:00Z")}
	s.products = append(s.products, odd)
	got, err := readAll(t.Context(), s.fresh(), pass(midnight("2026-11-15")))
	if err != nil {
		t.Fatal(err)
	}
	got.completely(t)
	_, row := got.rows[odd.id]
	for _, reject := range got.rejects {
		row = row || reject.ID == odd.id
	}
	if !row {
		t.Error("it was not read")
	}
}

// The service says of each page that more follow, and shows the question for a first row two empty pages,
// which count all rows. That is no empty service: nothing may be called read until its rows were.
func TestAnEmptyAnswerThatCountsRowsIsNoEmptyService(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products, s.forEver, s.count = oneDay(1, 30, "2026-11-18"), true, countTotal
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		first := q.Get("page_size") == "1" && q.Has("updated_to")
		if first {
			fmt.Fprintf(w, `{"data":[],"meta":{"page":%s,"page_size":1,"count":30,"has_more":true}}`, q.Get("page"))
		}
		return first
	}
	got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
	if err != nil || len(got.rows) < 30 {
		t.Errorf("%d of 30 rows were read, done %+v, %v", len(got.rows), got.done, err)
	}
}

// Encoders leave out what is false, and some services leave out meta on the last page. Past the end they
// answer with an empty page, or refuse it.
func TestAServiceThatLeavesOutThatNothingFollowsIsReadAndItsDaysAreClosed(t *testing.T) {
	for _, omits := range []string{"has_more", "null", "meta", "never"} {
		for _, count := range []counting{countTotal, countPage, countNone} {
			t.Run(fmt.Sprintf("%s, count %d", omits, count), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				s.now = clockAt("2026-11-20T12:00:00Z")
				s.omits, s.count = omits, count
				s.products = append(history(2000), oneDay(10_000, 2500, "2026-11-18")...)
				s.products = append(s.products, oneDay(20_000, 1030, "2026-11-20")...)
				if count == countPage { // exactly full
					s.products = append(oneDay(1, 1000, "2026-11-18"), oneDay(20_000, 1000, "2026-11-20")...)
					s.before = func(w http.ResponseWriter, q url.Values) bool {
						refused := q.Get("page_size") == "1000" && q.Get("page") == "1"
						if refused {
							refuse(w, 404, "not_found")
						}
						return refused
					}
				}
				src := s.fresh()
				got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
				if err != nil || s.requests > 400 {
					t.Fatalf("%d requests, %v", s.requests, err)
				}
				t.Logf("%d requests", s.requests)
				got.has(t, s.products)
				got.completely(t)
				full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
				if err != nil || !full.done.Complete {
					t.Fatalf("done %+v, %v", full.done, err)
				}
				full.has(t, s.products)
			})
		}
	}
}
