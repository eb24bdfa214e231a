package rest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// twoBounds makes the service refuse a window with one bound, and dates after last.
func (s *service) twoBounds(last string) {
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		for _, name := range dimensions {
			from, to := q.Get(name+"_from"), q.Get(name+"_to")
			if (from == "") != (to == "") || to > last {
				refuse(w, 400, "invalid_param")
				return true
			}
		}
		return false
	}
}

// A service refuses windows with one bound. Everything is read with both, also rows from before 1970. If it
// refuses far dates as well, a full reading does not meet a row of a later day. The lookup that seeks this
// row asks for its day, so it ends with an error, and the row is not taken for deleted.
func TestAServiceThatWantsBothBoundsIsAskedWithBoth(t *testing.T) {
	for _, last := range []string{"9999-12-31", "2026-11-22"} {
		s := newService(t)
		s.now = clockAt("2026-11-20T12:00:00Z")
		s.products = append(manyDays(20), oneDay(50_000, 1200, "2026-11-20")...)
		s.products = append(s.products, product{id: 90_000, created: at("1900-01-01T00:00:00Z"),
			updated: at("1900-01-01T00:00:00Z")})
		s.twoBounds(last)
		src := s.impatient()
		got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
		if err != nil {
			t.Fatal(err)
		}
		got.completely(t)
		got.has(t, s.products)

		later := product{id: 70_000, created: at("2027-03-01T00:00:00Z"), updated: at("2027-03-01T00:00:00Z")}
		s.products = append(s.products, later)
		full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
		if _, met := full.rows[later.id]; err != nil || !full.done.Complete || met != (last == "9999-12-31") {
			t.Errorf("up to %s: a full reading meets the later row: %v, done %+v, %v", last, met, full.done, err)
		}
		suspect := poller.Suspect{ID: later.id, CreatedAt: schemas.InstantOf(later.created),
			UpdatedAt: schemas.InstantOf(later.updated)}
		look, err := readAll(t.Context(), src, poller.Request{Kind: poller.Lookup, Everywhere: true,
			Suspects: []poller.Suspect{suspect}})
		if _, met := look.rows[later.id]; met != (last == "9999-12-31") || met != (err == nil) {
			t.Errorf("up to %s: a lookup meets the later row: %v, done %+v, %v", last, met, look.done, err)
		}
	}
}

// An empty answer says that it counts a row. It proves nothing, and days without rows stay open. The others
// are read, with few requests.
func TestEmptyAnswersThatCountARowStopNoOther(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 10, "2026-11-01"), oneDay(50_000, 30, "2026-11-20")...)
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		answer := httptest.NewRecorder()
		s.list(answer, q)
		_, _ = w.Write(bytes.Replace(answer.Body.Bytes(), []byte(`"count":0,`), []byte(`"count":1,`), 1))
		return true
	}
	got, err := readAll(t.Context(), s.impatient(), pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
	if got.settled > midnight("2026-11-03") || !strings.Contains(got.done.Delayed, "and counts 1") ||
		s.requests > 400 {
		t.Errorf("settled %s after %d requests, delayed: %s", got.settled, s.requests, got.done.Delayed)
	}
}

// Bodies of ten rows and more end in the middle of their JSON. Smaller pages are read.
func TestBodiesThatAreCutAreReadInSmallerPages(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 40, "2026-11-18"), oneDay(100, 25, "2026-11-20")...)
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		answer := httptest.NewRecorder()
		s.list(answer, q)
		body := answer.Body.Bytes()
		if bytes.Count(body, []byte(`"id":`)) >= 10 {
			body = body[:len(body)/2]
		}
		_, _ = w.Write(body)
		return true
	}
	got, err := readAll(t.Context(), s.impatient(), pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.completely(t)
	got.has(t, s.products)
}

// The pause after an open window with a row that fails grows, and is forgotten once the window was read.
func TestThePauseOfTheOpenWindowGrows(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products, s.bad = oneDay(1, 30, "2026-11-20"), bad(7)
	src := s.impatient()
	for n, want := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause, 0} {
		if want == 0 {
			s.bad = nil
		}
		src.open.nextRepeatedRead = time.Time{}
		if _, err := readAll(t.Context(), src, pass(midnight("2026-11-20"))); err != nil {
			t.Fatal(err)
		}
		if src.open.pause != want {
			t.Errorf("after read %d: %s, want %s", n, src.open.pause, want)
		}
	}
}
