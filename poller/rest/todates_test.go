package rest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/schemas"
)

// The document says that `to` takes in rows "on or before the date". A service may take that for
// its midnight, of one of its filters or of both.
func TestAServiceThatReadsDatesAsMidnightsLosesNoRow(t *testing.T) {
	for name, zone := range map[string]int{"UTC": 0, "UTC+9": 9, "UTC-5": -5} {
		for kind, rows := range map[string]func() []product{
			"an hour apart": func() []product { return hourly(300, 37*time.Minute+11*time.Second) },
			"full hours":    func() []product { return hourly(300, 0) },
			"midnights and one day with more": func() []product {
				return append(append(hourly(0, 0), midnightsOnly(20)...), product{id: 900,
					created: at("2026-11-14T10:11:12Z"), updated: at("2026-11-14T10:11:12Z")})
			},
			"days of several pages": func() []product { return history(1200) },
		} {
			for _, page := range []int{500, 40} {
				for _, upTo := range [][]string{{"updated", "created"}, {"created"}, {"updated"}} {
					if len(upTo) == 1 && (zone != 0 || page == 40) && os.Getenv("STORESTREAM_LONG") == "" {
						continue
					}
					t.Run(fmt.Sprintf("%s, %s, %d rows a page, %v", name, kind, page, upTo), func(t *testing.T) {
						t.Parallel()
						s := newService(t)
						s.upTo, s.zone, s.maxPage = upTo, time.FixedZone("", zone*3600), page
						s.now = clockAt("2026-11-20T12:00:00Z")
						s.products = rows()
						src := s.fresh()
						got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
						if err != nil {
							t.Fatal(err)
						}
						got.has(t, s.products)
						if got.settled < midnight("2026-11-18") {
							t.Errorf("settled %s", got.settled)
						}
						for _, src := range []*Source{src, s.fresh()} { // it knows how updated_to is read, or nothing
							full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
							if err != nil || !full.done.Complete {
								t.Fatalf("a full read: %v", err)
							}
							full.has(t, s.products)
						}
						s.twoLives("", 1)
					})
				}
			}
		}
	}
}

func hourly(n int, shift time.Duration) (rows []product) {
	for i := range n {
		when := at("2026-11-20T11:00:00Z").Add(-time.Duration(i)*time.Hour - shift)
		rows = append(rows, product{id: int64(i + 1), created: when, updated: when})
	}
	return rows
}

func midnightsOnly(n int) (rows []product) {
	for i := range n {
		when := at("2026-11-01T00:00:00Z").AddDate(0, 0, i)
		rows = append(rows, product{id: int64(i + 1), created: when, updated: when})
	}
	return rows
}

// Days are whole by the plain reading, however few rows there are and wherever they stand.
func TestAServiceWhoseDaysAreWholeIsNotTakenForOneThatReadsMidnights(t *testing.T) {
	for _, zone := range []int{-11, -5, 0, 5, 13} {
		for _, rows := range [][]product{hourly(300, 0), midnightsOnly(18), history(400),
			sparse(11, -6*time.Hour)} {
			s := newService(t)
			s.zone = time.FixedZone("", zone*3600)
			s.now = clockAt("2026-11-20T12:00:00Z")
			s.products = rows
			src := s.fresh()
			got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
			_, fullErr := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
			for i, to := range toDates {
				if src.calendar.midnights[i] || src.cfg.Dialect.Value(to) == dialect.Midnight {
					t.Errorf("UTC%+d: %s is taken for midnights", zone, to.Name)
				}
			}
			if err := errors.Join(err, fullErr); err != nil {
				t.Errorf("UTC%+d: %v", zone, err)
			}
			got.has(t, s.products)
		}
	}
}

// Rows at midnights prove nothing, and the answers that could are out of a cache. Of one day they are, too.
func TestDaysWhoseEndCannotBeLookedAtAreHeldTogether(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = midnightsOnly(18)
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		from, err := time.Parse(time.DateOnly, q.Get("updated_from"))
		if err == nil && q.Get("updated_to") == from.AddDate(0, 0, 1).Format(time.DateOnly) {
			w.Header().Set("Age", "100")
		}
		return false
	}
	src := s.fresh()
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil || got.done.Delayed == "" || len(src.days) != 19 || s.requests > 40 {
		t.Errorf("%d requests, %d days not closed, %+v, %v", s.requests, len(src.days), got.done, err)
	}
}
