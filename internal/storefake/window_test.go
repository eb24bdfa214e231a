package storefake

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A listing that is kept and brought up to date must be the one that a look at every row gives, whatever changed in between.
func TestAKeptListingIsWhatALookAtEveryRowGives(t *testing.T) {
	begin := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	s := NewStore(NewClock(begin, 86400, false), 1) // a day a second, so that rows change days
	if err := s.Generate(Size{Users: 50, Orders: 400, Products: 20, Days: 12}); err != nil {
		t.Fatal(err)
	}
	chance := rand.New(rand.NewPCG(1, 1))
	queries := randomQueries(s, chance)
	for round := range 1500 {
		changeSomething(t, s, chance)
		q := one(chance, queries)
		s.mu.Lock()
		table := s.tables[Shipments]
		got, want := slices.Clone(table.list(q)), lookAtEveryRow(table, q)
		s.mu.Unlock()
		if !slices.Equal(got, want) {
			t.Fatalf("round %d, %+v: the kept listing has %d rows, expected %d, or another order", round, q, len(got), len(want))
		}
	}
}

func lookAtEveryRow(t *table, q query) []place {
	var places []place
	for p, row := range t.all() {
		if q.matches(t.res, row) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		x, y := q.rank(t, a), q.rank(t, b)
		return cmp.Or(cmp.Compare(x.first, y.first), cmp.Compare(x.second, y.second))
	})
	return places
}

func randomQueries(s *Store, chance *rand.Rand) []query {
	now := cellOf(s.clock.Now())
	var queries []query
	for range 12 {
		q := query{created: anytime, updated: anytime, status: null, order: null, before: null, salt: 5,
			sort: one(chance, []Order{ByID, ByUpdated, ByUpdatedDesc, ByHash})}
		from := now - cell(chance.IntN(12))*day
		q.updated = span{from, from + cell(1+chance.IntN(4))*day}
		switch chance.IntN(5) {
		case 0:
			q.updated.to = null
		case 1:
			q.created, q.updated = q.updated, anytime
		case 2:
			q.created = span{now - 9*day, null}
		case 3:
			q.order = cell(1 + chance.IntN(20))
		}
		queries = append(queries, q)
	}
	return queries
}

func changeSomething(t *testing.T, s *Store, chance *rand.Rand) {
	t.Helper()
	ctx, id := t.Context(), int64(1+chance.IntN(400))
	if _, ok := s.Row(Shipments, id); !ok {
		if _, err := s.Insert(ctx, Shipments, Row{"id": id, "order_id": int64(1 + chance.IntN(20))}); err != nil { // an id used again
			t.Fatal(err)
		}
		return
	}
	var err error
	switch chance.IntN(8) {
	case 0:
		err = s.Delete(ctx, Shipments, id)
	case 1:
		err = s.SetUpdatedAt(ctx, Shipments, id, s.clock.Now().AddDate(0, 0, -chance.IntN(20)))
	case 2:
		err = s.SetUpdatedAt(ctx, Shipments, id, time.Time{})
	case 3:
		_, _, err = s.BulkUpdate(ctx, Shipments, id, id+int64(chance.IntN(300)))
	case 4:
		err = s.Update(ctx, Shipments, id, func(r Row) { r["order_id"] = int64(1 + chance.IntN(20)) })
	default:
		err = s.Touch(ctx, Shipments, id)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkAPageOfAMillionRowsUnderTraffic(b *testing.B) {
	s := NewStore(NewClock(time.Time{}, 1, false), 1)
	if err := s.Generate(Size{Users: 1000, Orders: 1_000_000, Products: 1000}); err != nil {
		b.Fatal(err)
	}
	res, q := s.tables[Orders].res, query{created: anytime, updated: span{0, null}, status: null, order: null, before: null}
	r := renderer{words: s.words}
	var body []byte
	b.ResetTimer()
	for n := range b.N {
		if err := s.Touch(b.Context(), Orders, int64(1+n%1_000_000)); err != nil {
			b.Fatal(err)
		}
		body = r.appendListing(body[:0], res, s.page(res, q, n%1000*1000, 1000), params{}, true)
	}
}
