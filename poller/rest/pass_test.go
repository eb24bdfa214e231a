package rest

import (
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

func TestAFirstLoadSettlesAllDaysThatAreOverAndReadsTheOpenOne(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	for i := range 5000 {
		created := at("2019-01-02T10:00:00Z").Add(time.Duration(i) * 13 * time.Hour)
		updated := created.Add(time.Duration(i%5) * 24 * time.Hour)
		if created.After(at("2026-11-20T12:00:00Z")) {
			break
		}
		s.products = append(s.products, product{id: int64(i + 1), created: created, updated: updated})
	}
	src := s.source(s.client(ClientConfig{Now: s.now}))
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
	if want := schemas.InstantOf(at("2026-11-20T00:00:00Z")); got.settled != want {
		t.Errorf("settled %s, want %s", got.settled, want)
	}
	if got.done == nil || !got.done.Complete || got.done.Held != "" {
		t.Errorf("done %+v", got.done)
	}
	t.Logf("%d rows, %d requests", len(s.products), s.requests)
	s.requests = 0
	if got, err = readAll(t.Context(), src, pass(got.settled)); err != nil || !got.done.Complete {
		t.Fatal(err, got.done)
	}
	if s.requests != 1 {
		t.Errorf("an open window of one page took %d requests, want 1", s.requests)
	}
}
