package rest

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"
)

// A row leaves a day before each page of it is asked for the first time, so that one slips past. The days
// of creation by which the set is cut then are midnights. If nothing is counted, only that shows rows
// between them.
func TestAServiceThatReadsDaysOfCreationAsMidnightsAndCountsNothingLosesNoRow(t *testing.T) {
	s := newService(t)
	s.upTo, s.maxPage, s.count = []string{"created"}, 40, countNone
	s.now = clockAt("2026-11-20T12:00:00Z")
	for i := range 400 {
		created := at("2026-10-01T00:30:00Z").Add(time.Duration(i) * 2 * time.Hour)
		s.products = append(s.products, product{id: int64(i + 1), created: created,
			updated: at("2026-11-18T05:00:00Z").Add(time.Duration(i) * time.Second)})
	}
	left := 0
	s.before = func(_ http.ResponseWriter, q url.Values) bool {
		page, _ := strconv.Atoi(q.Get("page"))
		if q.Get("created_to") == "" && q.Get("updated_to") == "2026-11-18" && page == left+1 && page < 10 {
			s.products[left].updated = s.now().Add(-time.Hour)
			left++
		}
		return false
	}
	got, err := readAll(t.Context(), s.fresh(), pass(midnight("2026-11-18")))
	if err != nil {
		t.Fatal(err)
	}
	if got.has(t, s.products); left < 9 || got.settled != midnight("2026-11-20") {
		t.Errorf("settled %s after %d requests; %d rows left", got.settled, s.requests, left)
	}
}
