package storefake

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A listing that is kept and brought up to date must be the one that a look at every row gives, whatever
// changed in between.
func TestAKeptListingIsWhatALookAtEveryRowGives(t *testing.T) {
	begin := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	s := filled(t, Config{Start: begin, Speed: 86400, Seed: 1, // a day a second, so that rows change days
		Size: Size{Users: 50, Orders: 400, Products: 20, Days: 12}})
	chance := rand.New(rand.NewPCG(1, 1))
	queries := randomQueries(s, chance)
	for round := range 1500 {
		changeSomething(t, s, chance)
		q := one(chance, queries)
		s.Tables.mu.Lock()
		table := s.byName[Shipments]
		got, want := slices.Clone(table.lists.list(q)), lookAtEveryRow(table, q)
		s.Tables.mu.Unlock()
		if !slices.Equal(got, want) {
			t.Fatalf("round %d, %+v: the kept listing has %d rows, expected %d, or another order", round, q, len(got),
				len(want))
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

func randomQueries(s *Fake, chance *rand.Rand) []query {
	now := cellOf(s.Clock().Now())
	var queries []query
	for range 12 {
		q := query{created: anytime, updated: anytime, status: null, order: null, before: null, salt: 5,
			sort: one(chance, []Order{ByID, ByUpdated, ByUpdatedDesc, ByPinned, ByHash})}
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

func changeSomething(t *testing.T, s *Fake, chance *rand.Rand) {
	t.Helper()
	ctx, id := t.Context(), int64(1+chance.IntN(400))
	if _, ok := s.Row(Shipments, id); !ok {
		// an id used again
		if _, err := s.Insert(ctx, Shipments, Row{"id": id, "order_id": int64(1 + chance.IntN(20))}); err != nil {
			t.Fatal(err)
		}
		return
	}
	var err error
	switch chance.IntN(8) {
	case 0:
		err = s.Delete(ctx, Shipments, id)
	case 1:
		err = s.SetUpdatedAt(ctx, Shipments, id, s.Clock().Now().AddDate(0, 0, -chance.IntN(20)))
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
	s, err := Start(b.Context(), Config{Seed: 1, Size: Size{Users: 1000, Orders: 1_000_000, Products: 1000}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	res, q := s.byName[Orders].res, query{created: anytime, updated: span{0, null}, status: null, order: null,
		before: null}
	r := renderer{words: s.words, read: &Readings{}}
	var body []byte
	b.ResetTimer()
	for n := range b.N {
		if err := s.Touch(b.Context(), Orders, int64(1+n%1_000_000)); err != nil {
			b.Fatal(err)
		}
		body = r.appendListing(body[:0], res, s.page(res, q, n%1000*1000, 1000), params{}, true)
	}
}
