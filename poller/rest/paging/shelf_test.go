package paging

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// shelf is a service whose rows change between any two answers, as rapid draws it. Its clock begins at 1, and
// a row that was updated before 0 was updated on the day before.
type shelf struct {
	t     *rapid.T
	rows  []Row
	clock int64 // goes on with every change
	next  uint64

	cap      int   // rows a page
	order    order // by which it answers
	total    bool  // count is the total, not that of the page
	lying    bool  // has_more is true whenever the page is full
	past     int   // past the end: 0 empty, 1 refused, 2 the last page again
	motion   Motion
	deletes  bool
	rng      *rand.Rand
	faults   bool
	read     map[uint64]int64 // id -> updated as last read
	answered int
	steady   int
	pace     int  // a change after every so many answers
	changes  int  // and so many in all, so that a read comes to its end
	silent   bool // it does not say how many rows a page has
	hollow   int  // so many answers say that there is nothing, which is not true
}

type order int

const (
	byID order = iota
	byIDDown
	byUpdated
	byUpdatedDown
	byHash
	byTies   // by updated; which of equal rows comes first is drawn at each request
	byDraw   // drawn at each request, by rapid: as bad as it can be
	byChance // shuffled at each request, fairly
)

var everyOrder = []order{byID, byIDDown, byUpdated, byUpdatedDown, byHash, byTies, byDraw, byChance}

var errBroken = errors.New("the connection broke")

func newShelf(t *rapid.T, m Motion, orders ...order) *shelf {
	s := &shelf{t: t, motion: m, next: 1, read: map[uint64]int64{}, clock: 1}
	s.cap = rapid.IntRange(1, 6).Draw(t, "rows a page")
	s.order = rapid.SampledFrom(orders).Draw(t, "order")
	s.total = rapid.Bool().Draw(t, "count is the total")
	s.lying = rapid.Bool().Draw(t, "a full page says more")
	s.past = rapid.IntRange(0, 2).Draw(t, "past the end")
	s.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	s.pace = rapid.IntRange(1, 10).Draw(t, "answers a change")
	s.changes = rapid.IntRange(0, 40).Draw(t, "changes in all")
	s.steady = rapid.SampledFrom([]int{0, 1, steadyPasses}).Draw(t, "steady passes")
	days := rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(t, "created days")
	for range rapid.IntRange(0, 30).Draw(t, "rows") + rapid.SampledFrom([]int{0, 10}).Draw(t, "more rows") {
		updated := -int64(rapid.IntRange(1, 5).Draw(t, "updated"))
		created := Day(90 + rapid.IntRange(0, days-1).Draw(t, "created"))
		s.rows = append(s.rows, Row{ID: s.next, Created: created, Updated: updated})
		s.next += uint64(rapid.IntRange(1, 3).Draw(t, "gap"))
	}
	return s
}

// set is the day before the clock's for a shrinking shelf, and everything since that day for a growing one.
func (s *shelf) set() Set { return Set{Ask: s.ask, Created: Always, Motion: s.motion, Like: 99} }

// change does what may happen to the rows between two answers.
func (s *shelf) change() {
	for s.changes > 0 && rapid.IntRange(0, s.pace).Draw(s.t, "change now") == 0 {
		s.clock++
		s.changes--
		kinds := 2
		if s.deletes {
			kinds = 3
		}
		switch kind := rapid.IntRange(0, kinds-1).Draw(s.t, "change"); {
		case kind == 0: // a row is created today
			s.rows = append(s.rows, Row{ID: s.next, Created: 93, Updated: s.clock})
			s.next++
		case len(s.rows) == 0:
		case kind == 1:
			i := rapid.IntRange(0, len(s.rows)-1).Draw(s.t, "updated row")
			s.rows[i].Updated = s.clock
		default:
			i := rapid.IntRange(0, len(s.rows)-1).Draw(s.t, "deleted row")
			s.rows = slices.Delete(s.rows, i, i+1)
		}
	}
}

func (s *shelf) matching(created Span) (match []Row) {
	for _, r := range s.rows {
		if (s.motion == Growing || r.Updated < 0) && r.Created >= created.From && r.Created <= created.To {
			match = append(match, r)
		}
	}
	return match
}

func (s *shelf) sort(rows []Row) {
	up := func(a, b Row) int { return cmp.Compare(a.ID, b.ID) }
	updated := func(a, b Row) int { return cmp.Or(cmp.Compare(a.Updated, b.Updated), up(a, b)) }
	hash := func(r Row) uint64 { return (r.ID * 0x9E3779B97F4A7C15) >> 20 }
	switch s.order {
	case byID:
		slices.SortFunc(rows, up)
	case byIDDown:
		slices.SortFunc(rows, func(a, b Row) int { return up(b, a) })
	case byUpdated:
		slices.SortFunc(rows, updated)
	case byUpdatedDown:
		slices.SortFunc(rows, func(a, b Row) int { return updated(b, a) })
	case byHash:
		slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(hash(a), hash(b)) })
	case byTies:
		s.draw(rows)
		slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Updated, b.Updated) })
	case byDraw:
		s.draw(rows)
	case byChance:
		s.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
}

func (s *shelf) draw(rows []Row) {
	if len(rows) > 1 {
		copy(rows, rapid.Permutation(rows).Draw(s.t, "order of this answer"))
	}
}

func (s *shelf) ask(_ context.Context, created Span, page, size int) (Answer, error) {
	if s.answered++; s.answered > 1 {
		s.change()
	}
	if s.faults && rapid.IntRange(0, 30).Draw(s.t, "fault") == 0 {
		return Answer{}, errBroken
	}
	if s.faults && page > 0 && rapid.IntRange(0, 20).Draw(s.t, "refused page") == 0 { // by a proxy
		return Answer{Beyond: true, Count: -1}, nil
	}
	if s.hollow > 0 && rapid.IntRange(0, 4).Draw(s.t, "hollow answer") == 0 {
		s.hollow--
		return Answer{Count: 0, Size: -1}, nil
	}
	rows := s.matching(created)
	s.sort(rows)
	size = min(size, s.cap)
	total := len(rows)
	if page > 0 && page*size >= total && s.past > 0 {
		return Answer{Beyond: true, Count: -1}, nil
	}
	rows = rows[min(page*size, total):]
	a := Answer{More: len(rows) > size, Count: total, Size: size}
	rows = rows[:min(size, len(rows))]
	a.More = a.More || s.lying && len(rows) == size
	if a.More && s.faults && s.motion == Shrinking && rapid.IntRange(0, 5).Draw(s.t, "short page") == 0 {
		rows = rows[:len(rows)/2] // what it leaves out stands on no other page
	}
	if !s.total {
		a.Count = len(rows)
	}
	if s.silent {
		a.Size = -1
	}
	for _, r := range rows {
		s.read[r.ID] = r.Updated
	}
	a.Rows = rows
	return a, nil
}

// reader sees the shelf's clock. By chance 0 it takes nothing for whole by chance.
func (s *shelf) reader(chance float64) *Reader {
	r := NewReader(func() int64 { return s.clock }, func() {})
	r.steady, r.chance = s.steady, chance
	return r
}

// everyRowRead fails unless all rows that are in the set now, and have been unchanged since start, were read
// as they are.
func (s *shelf) everyRowRead(start int64) {
	for _, r := range s.matching(Always) {
		if r.Updated > start {
			continue
		}
		if got, ok := s.read[r.ID]; !ok || got != r.Updated {
			s.t.Fatalf("row %d stayed throughout and was not read (order %d, %d a page, %d answers)",
				r.ID, s.order, s.cap, s.answered)
		}
	}
}

// check tries property 100 times and as often again as times says, because the interleavings that break a
// rule are rare. STORESTREAM_TEST_ROUNDS multiplies that (make test-long).
func check(t *testing.T, times int, property func(*rapid.T)) {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("STORESTREAM_TEST_ROUNDS")); err == nil {
		times *= n
	}
	for range times {
		rapid.Check(t, property)
	}
}
