package rest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// The service gives no window without a first day, and of its early days nothing for a while, or no row of
// the first places. That is no refusal of days: nothing is settled past them, and they are read later.
func TestDaysThatFailForAWhileAreNotTakenForDaysThatAreRefused(t *testing.T) {
	unbounded := func(q url.Values) bool { return !q.Has("updated_from") && !q.Has("created_from") }
	fails := func(until string) func(url.Values) int {
		return func(q url.Values) int {
			if q.Get("updated_from") <= until && q.Get("created_from") <= until {
				return 503
			}
			return 200
		}
	}
	for name, c := range map[string]struct {
		unbounded int
		bad       []int64
		status    func(url.Values) int
	}{
		"early days fail":                 {400, nil, fails("2026-11-15")},
		"all fails without a first day":   {504, nil, fails("2026-11-15")},
		"the first rows of the first day": {422, []int64{1, 2, 3}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.now = clockAt("2026-11-20T12:00:00Z")
			s.products, s.bad = sixDays(), bad(c.bad...)
			mended, early := false, 0
			s.before = func(w http.ResponseWriter, q url.Values) bool {
				status := 200
				from := q.Get("updated_from") + q.Get("created_from")
				if !unbounded(q) && from < "2026" && from > "0001-01-01" { // which stands for no bound
					early++
				}
				switch {
				case unbounded(q):
					status = c.unbounded
				case c.status == nil && (q.Get("updated_from") + q.Get("created_from"))[:10] < "2026-11-15":
					status = 422
				case c.status != nil && !mended:
					status = c.status(q)
				}
				if status != 200 {
					refuse(w, status, "not_now")
				}
				return status != 200
			}
			src := s.impatient()
			got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
			if err != nil {
				t.Fatal(err)
			}
			if got.settled > midnight("2026-11-15") || got.done.Complete || got.done.Delayed == "" {
				t.Errorf("settled %s, %+v", got.settled, got.done)
			}
			got.has(t, s.products[60:])
			early = 0
			if got, err = readAll(t.Context(), src, pass(got.settled)); err != nil || early > 0 {
				t.Errorf("the next poll asked %d times for early days, %v", early, err)
			}
			s.bad, mended = nil, true
			clear(src.days)
			if got, err = readAll(t.Context(), src, pass(got.settled)); err != nil {
				t.Fatal(err)
			}
			got.has(t, s.products)
			got.completely(t)
		})
	}
}

// The service gives rows by the day from 2019 on, and earlier ones only without a first day. That form fails
// for a while. What it shows is not left out for that.
func TestRowsThatOnlyAWindowWithoutAFirstDayShowsAreWaitedFor(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 10, "2015-03-01"), history(300)[10:]...)
	down := true
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		from := q.Get("updated_from") + q.Get("created_from")
		if from == "" && down {
			refuse(w, 504, "timeout")
			return true
		}
		if from != "" && from < "2019-01-01" {
			refuse(w, 422, "date_out_of_range")
			return true
		}
		return false
	}
	src := s.impatient()
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err == nil && (got.settled != schemas.MinInstant || got.done.Complete) {
		t.Errorf("settled %s, %+v", got.settled, got.done)
	}
	down = false
	clear(src.days)
	if got, err = readAll(t.Context(), src, pass(got.settled)); err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
	got.completely(t)
}

// Between two whole reads, an unsorted window is read once. If many rows of it fail, a poll steps over small
// pages. So that poll has not met every change, and says so.
func TestAPollThatSteppedOverRowsDoesNotCountForLag(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products, s.order = sixDays(), byID
	for i := range s.products { // neither sorted by id
		s.products[i].updated = s.products[i].updated.Add(-time.Duration(i*7919%30) * time.Second)
	}
	src := s.impatient()
	first, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	first.completely(t)
	var many []int64
	for id := int64(3000); len(many) <= 30; id += 3 {
		many = append(many, id)
	}
	s.bad = bad(many...)
	request := pass(first.settled)
	request.Complete = false
	got, err := readAll(t.Context(), src, request)
	if err != nil {
		t.Fatal(err)
	}
	if got.done.Complete || got.done.Started != schemas.MinInstant || got.done.Delayed == "" {
		t.Errorf("read %d rows, done %+v", len(got.rows), got.done)
	}
}

// The service does not know created_*. No start helps against that, so the error of a full reading names
// none.
func TestAServiceWithoutCreatedFiltersIsNotSaidToNeedAStart(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = sixDays()
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		unknown := q.Get("created_from")+q.Get("created_to") != ""
		if unknown {
			refuse(w, 400, "unknown_parameter")
		}
		return unknown
	}
	src := s.impatient()
	if _, err := readAll(t.Context(), src, pass(schemas.MinInstant)); err != nil {
		t.Fatal(err)
	}
	_, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
	if err == nil || !strings.Contains(err.Error(), "not all rows can be read: /store-products?created_") ||
		!strings.HasSuffix(err.Error(), "answered 400 unknown_parameter") {
		t.Errorf("a full reading without created_*: %v", err)
	}
}
