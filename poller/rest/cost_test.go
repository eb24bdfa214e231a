package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

// What it costs to close five days of 3 pages, however the service sorts and counts, and while rows leave.
// Rows that were created on many days can be read in parts that fit a page; in an order that holds, one
// pass shows a day where all answers count its rows. Their last page is full, so it is asked for again. Rows
// that leave are the harder half: the other one is left to make test-long.
func TestDaysOfManyPagesAreClosedInABoundedNumberOfRequests(t *testing.T) {
	for name, order := range map[string]func(a, b product) int{"by id": byID, "another each time": nil} {
		for _, oneDay := range []bool{true, false} {
			for _, leave := range []int{5, 0} {
				if leave == 0 && os.Getenv("STORESTREAM_LONG") == "" {
					continue
				}
				for _, count := range []counting{countTotal, countNone} {
					if order == nil && oneDay && count == countTotal && os.Getenv("STORESTREAM_LONG") == "" {
						continue // it costs as much as all others, and countNone is the harder one
					}
					most := 100 // an empty answer is asked for twice
					switch {
					case order == nil && oneDay: // two passes have to meet all of them, in many random ones
						most = 700 // each asks for its last page twice
					case count == countNone: // one pass shows no day
						most = 140
					}
					t.Run(fmt.Sprintf("%s, created on one day %v, a row in %d leaves, count %d", name, oneDay, leave, count),
						func(t *testing.T) {
							t.Parallel()
							s := newService(t)
							s.now = clockAt("2026-11-20T12:00:00Z")
							s.order, s.count, s.maxPage = order, count, 200
							s.products = fiveDays(oneDay)
							s.before = func(http.ResponseWriter, url.Values) bool {
								if leave > 0 && s.requests%leave == 0 {
									s.products[s.rng.IntN(len(s.products))].updated = s.now()
								}
								return false
							}
							got, err := readAll(t.Context(), s.fresh(), pass(midnight("2026-11-14")))
							if err != nil || got.settled != midnight("2026-11-20") || s.requests > most {
								t.Errorf("settled %s with %d requests, expected at most %d; %v", got.settled, s.requests, most, err)
							}
							got.has(t, s.products)
						})
				}
			}
		}
	}
}

// Where the first page of every listing is empty, no page shows a set whole. If nobody counts either, it
// takes a dozen passes, of one row as of a thousand. So days are not read one by one then, nor in parts.
func TestDaysOfAServiceWhoseFirstPagesAreEmptyAreReadTogether(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.blank, s.count = true, countPage
	for d := range 100 {
		day := at("2026-11-19T08:00:00Z").AddDate(0, 0, -d)
		for range 5 {
			created := day.AddDate(0, 0, -s.rng.IntN(30))
			s.products = append(s.products, product{id: int64(len(s.products) + 1), created: created, updated: day})
		}
	}
	got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
	if err != nil || got.settled != midnight("2026-11-20") || s.requests > 600 {
		t.Errorf("settled %s with %d requests, expected at most 600; %v", got.settled, s.requests, err)
	}
	got.has(t, s.products)
}

// fiveDays are 600 rows updated on each of five days, and created on the same day, or on the twenty days up
// to it.
func fiveDays(oneDay bool) (rows []product) {
	for d := range 5 {
		day := at("2026-11-14T00:00:00Z").AddDate(0, 0, d)
		for i := range 600 {
			updated := day.Add(time.Duration(i) * 140 * time.Second)
			created := day
			if !oneDay {
				created = updated.AddDate(0, 0, -(i % 20))
			}
			rows = append(rows, product{id: int64(len(rows) + 1), created: created, updated: updated})
		}
	}
	return rows
}
