package rest

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// A row is parsed if its text has changed: also if it says the same in another way.
func TestAPassParsesOnlyRowsOfTheOpenWindowWhoseTextHasChanged(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = oneDay(1, 2500, "2026-11-20")
	s.order = func(a, b product) int { return cmp.Compare(a.id*7919%2503, b.id*7919%2503) }
	s.hidden = func(p product) string { // it leaves out null
		if p.id == 9 {
			return `,"brand":"b"`
		}
		return ""
	}
	for i := range 500 {
		s.products[i].created = at("2026-11-19T01:00:00Z")
	}
	src, published := s.fresh(), rowset.New(0)
	defer published.Close()
	var fields []string
	read := func() (got *taken, same int, err error) {
		req := pass(midnight("2026-11-20"))
		req.Find, req.Fields, req.Complete = published.Find, fields, fields == nil
		got = &taken{rows: map[int64]schemas.Record{}}
		err = each(src.Read(t.Context(), req), func(b poller.Batch) error {
			for _, row := range b.Rows {
				got.rows[row.ID] = row
				published.Put(row.ID, rowset.VersionOf(row.UpdatedAt, schemas.Hash(row.Value)))
				published.Note(row.ID, row.Text)
			}
			got.done, same = b.Done, same+len(b.Same)
			return nil
		})
		return got, same, err
	}
	got, _, err := read()
	if err != nil || len(got.rows) != 2500 || !got.done.Complete {
		t.Fatal(err, len(got.rows))
	}
	fields = got.done.Fields
	before, _ := published.Get(7)
	s.products[4].updated = at("2026-11-20T11:59:59Z")
	s.products[5].cost = "3"
	s.products[6].cost = "1.50"
	got, same, err := read()
	after, _ := published.Get(7)
	if err != nil || same < 2496 || len(got.rows) != 4 || got.rows[5].ID != 5 || got.rows[6].ID != 6 ||
		before != after || !got.done.Complete || len(got.done.Fields) != len(fields) {
		t.Errorf("%d came without a value, %d with one: %v; %v, %v", same, len(got.rows), got.done, before, after)
	}
	s.products = s.products[:2499] // a replay, or a takeover: the versions count no more, or have no notes
	known := []rowset.Noted{{ID: 1}}
	published.Find(known)
	published.Put(1, rowset.Version{Millis: known[0].Version.Millis, Hash: known[0].Version.Hash, Marked: true})
	published.Note(1, known[0].Note)
	published.Put(2, before)
	if got, _, err = read(); err != nil || len(got.rows) != 3 {
		t.Errorf("%d rows, %v", len(got.rows), err)
	}
	s.hidden = func(product) string { return `,"sku":"s"` }
	var blocked *poller.BlockedError
	if _, _, err = read(); !errors.As(err, &blocked) || !strings.Contains(err.Error(), "sku") {
		t.Errorf("a field is gone: %v", err)
	}
}
