package paging

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// shelf is a service whose rows change between any two answers, as rapid draws it. Its clock begins at 1, and
// a row that was updated before 0 was updated on the day before.
type shelf struct {
	t     *rapid.T
	rows  []Row
	clock int64 // goes on with every change
	next  uint64
	today Day // on which rows are created: the last on which some were

	cap      int    // rows a page
	grants   grants // how that changes
	says     int    // how many it says that it grants; 0: as many as it does
	order    order  // by which it answers
	count    counts // what it counts
	more     more   // what it says of what follows
	past     int    // past the end: 0 empty, 1 refused, 2 the last page again
	growing  bool
	deletes  bool
	deleted  []uint64 // may come back
	rng      *rand.Rand
	faults   bool
	read     map[uint64]int64 // id -> updated as last read
	answered int
	steady   int
	pace     int  // a change after every so many answers
	changes  int  // and so many in all, so that a read comes to its end
	silent   bool // it does not say how many rows a page has
	hollow   int  // so many answers say that there is nothing, which is not true; of page 0 one at most

	// uneven: one page in so many is half as long; the next one goes on where it ends. 0: none is. 1: the reader
	// has seen one before, for nothing else can tell it that page 0 may be one.
	uneven    int
	pages     int  // it shows no more of them, says that nothing follows, and counts all; 0: it shows all
	countLast bool // it reads rows, and then counts them to say whether more follow
	cached    int  // so many answers are old, and say so (Answer.Doubt)
	// lag: an answer is what was true up to so many answers ago, and says nothing of that: one of several
	// replicas gave it, or a cache without a trace.
	lag     int
	earlier [][]Row
	until   []int // which answer was the last before each of earlier was no longer true
	// Requests that fail: for a page with one of the bad rows, for more than heavy rows, for places from wall on
	// (0: for none), and, if hiccups is set, now and then.
	bad         map[uint64]bool
	heavy, wall int
	hiccups     bool
	// omits: 1: an answer leaves out that no more follow, 2: it never says whether they do, 0: it always does.
	omits int
	// arrivals: rows come into the day that is over. arrived is when, of each that ever was in it.
	arrivals bool
	arrived  map[uint64]int64
}

// grants is how the number of rows that a page may have changes while it is read.
type grants struct {
	changes int // so many times in all, at answers that are drawn: down, up, or back to an earlier one
	after   int // the first of them, if not 0: behind this answer
	first   int // of the pages below far; 0: like the others
	far     int
	dim     int // the page of this number, from 1 on, always leaves out half of its rows; 0: none does
}

// counts is what a shelf counts.
type counts int

const (
	countPage counts = iota
	countTotal
	countStale // the total of some changes ago
	countGuess // about the total, and the reader knows that
)

// more is what a shelf says of the pages that follow.
type more int

const (
	moreTrue    more = iota
	moreFull         // more follows whenever the page is full
	moreSome         // more follows whenever the page has a row: the last page is empty
	moreForEver      // more follows every page
)

type order int

const (
	byID order = iota
	byIDDown
	byUpdated
	byUpdatedDown
	byHash
	byPinned     // by updated, but for some rows that come first whatever happens to them
	byPinnedDown // by updated, newest first, but for some rows that come last
	byTies       // by updated; which of equal rows comes first is drawn at each request
	byDraw       // drawn at each request, by rapid: as bad as it can be
	byChance     // shuffled at each request, fairly
)

var everyOrder = []order{byID, byIDDown, byUpdated, byUpdatedDown, byHash, byPinned, byPinnedDown, byTies,
	byDraw, byChance}

var errBroken = errors.New("the connection broke")

func newShelf(t *rapid.T, growing, arrivals bool, orders ...order) *shelf {
	s := &shelf{t: t, growing: growing, next: 1, read: map[uint64]int64{}, clock: 1, arrived: map[uint64]int64{}}
	s.cap = rapid.IntRange(1, 6).Draw(t, "rows a page")
	s.order = rapid.SampledFrom(orders).Draw(t, "order")
	s.arrivals = arrivals && rapid.Bool().Draw(t, "rows come late")
	kinds := []counts{countPage, countTotal, countTotal, countTotal, countStale, countGuess}
	if s.count = rapid.SampledFrom(kinds).Draw(t, "count"); s.arrivals && s.count == countStale {
		s.count = countTotal // the one from before they came would leave them out
	}
	s.more = rapid.SampledFrom([]more{moreTrue, moreTrue, moreFull, moreSome, moreForEver}).Draw(t, "more")
	s.past = rapid.IntRange(0, 2).Draw(t, "past the end")
	s.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	s.pace = rapid.IntRange(1, 10).Draw(t, "answers a change")
	s.changes = rapid.IntRange(0, 40).Draw(t, "changes in all")
	s.steady = rapid.SampledFrom([]int{0, 1, steadyPasses}).Draw(t, "steady passes")
	s.countLast = rapid.IntRange(0, 3).Draw(t, "counts after it has read") == 0
	if s.count == countTotal && s.more <= moreFull && rapid.IntRange(0, 2).Draw(t, "shows not all pages") == 0 {
		s.pages = rapid.IntRange(1, 4).Draw(t, "pages shown")
	}
	days := rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(t, "created days")
	s.today = Day(90 + days - 1)
	undated := 0
	if s.count == countTotal && !s.arrivals {
		undated = rapid.SampledFrom([]int{0, 0, 20, 2}).Draw(t, "one row in so many has no day of creation")
	}
	for range rapid.IntRange(0, 30).Draw(t, "rows") + rapid.SampledFrom([]int{0, 10}).Draw(t, "more rows") {
		row := Row{ID: s.next, Updated: -int64(rapid.IntRange(1, 5).Draw(t, "updated")),
			Created: Day(90 + rapid.IntRange(0, days-1).Draw(t, "created"))}
		if undated > 0 && rapid.IntRange(1, undated).Draw(t, "has no day") == 1 {
			row.Created, row.Undated = Past, true
		}
		s.rows = append(s.rows, row)
		s.arrived[s.next] = 0
		s.next += uint64(rapid.IntRange(1, 3).Draw(t, "gap"))
	}
	return s
}

// faulty draws what answers may be beside the service's ways.
func (s *shelf) faulty() *shelf {
	s.faults = rapid.Bool().Draw(s.t, "faults")
	s.silent = rapid.Bool().Draw(s.t, "silent")
	s.uneven = rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(s.t, "one page in so many is short")
	s.hollow = rapid.IntRange(0, 1).Draw(s.t, "hollow answers")
	s.cached = rapid.SampledFrom([]int{0, 0, 2}).Draw(s.t, "cached answers")
	s.replicas()
	s.changing()
	s.failing()
	s.omitting()
	return s
}

// omitting draws whether answers leave out if more follow. If they never say so, an empty or a refused answer
// looks like the end wherever it comes.
func (s *shelf) omitting() {
	most := 1
	if !s.faults && s.hollow == 0 && s.lag == 0 && s.uneven == 0 && s.grants == (grants{}) &&
		s.more != moreForEver {
		most = 2
	}
	s.omits = rapid.IntRange(0, most).Draw(s.t, "leaves out whether more follow")
}

// failing draws which requests fail.
func (s *shelf) failing() {
	if rapid.IntRange(0, 2).Draw(s.t, "requests fail") > 0 {
		return
	}
	s.bad = map[uint64]bool{}
	for range rapid.SampledFrom([]int{0, 1, 1, 3}).Draw(s.t, "bad rows") {
		s.bad[uint64(rapid.IntRange(1, 40).Draw(s.t, "bad row"))] = true
	}
	s.heavy = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(s.t, "most rows")
	s.wall = rapid.SampledFrom([]int{0, 0, 5, 10}).Draw(s.t, "wall")
	s.hiccups = rapid.IntRange(0, 3).Draw(s.t, "hiccups") == 0
}

// fails reports whether the request for a page fails, to which a is the answer.
func (s *shelf) fails(a Answer, page, size int) bool {
	return s.heavy > 0 && size > s.heavy || s.wall > 0 && page*size >= s.wall ||
		slices.ContainsFunc(a.Rows, func(r Row) bool { return s.bad[r.ID] }) ||
		s.hiccups && rapid.IntRange(0, 15).Draw(s.t, "hiccup") == 0
}

// changing draws how the number of rows a page changes.
func (s *shelf) changing() {
	s.grants.changes = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(s.t, "changes of the rows a page")
	if rapid.IntRange(0, 3).Draw(s.t, "near and far pages differ") == 0 {
		s.grants.first = rapid.IntRange(1, 6).Draw(s.t, "rows a near page")
		s.grants.far = rapid.IntRange(1, 3).Draw(s.t, "far pages")
	}
	if rapid.IntRange(0, 7).Draw(s.t, "a page leaves out rows") == 0 {
		s.grants.dim = rapid.IntRange(1, 3).Draw(s.t, "it is")
	}
	if s.growing && s.grants.dim > 0 { // passes agree though they were of different sizes
		s.grants = grants{dim: s.grants.dim}
	}
	if s.growing && s.grants != (grants{}) { // rows that come twice look like those that are not shown
		s.pages = 0
	}
	s.says = rapid.SampledFrom([]int{0, 0, 1, 3, 6, PageSize}).Draw(s.t, "says that it grants")
}

// grant is how many rows a page may have now that is asked for with size.
func (s *shelf) grant(page, size int) int {
	if s.grants.changes > 0 && s.answered > s.grants.after && (s.grants.after > 0 ||
		rapid.IntRange(0, 6).Draw(s.t, "rows a page change") == 0) {
		s.grants.changes--
		s.cap = rapid.IntRange(1, 6).Draw(s.t, "rows a page from now on")
	}
	if s.grants.first > 0 && page < s.grants.far {
		return min(size, s.grants.first)
	}
	return min(size, s.cap)
}

// replicas draws how far they lag behind, of a service that counts the rows with each answer.
func (s *shelf) replicas() {
	if s.count == countTotal && !s.countLast && !s.arrivals && !slices.ContainsFunc(s.rows, undated) {
		s.lag = rapid.SampledFrom([]int{0, 2, 8}).Draw(s.t, "replicas lag")
	}
}

// set is the day before the clock's for a shrinking shelf, and everything since that day for a growing one.
func (s *shelf) set() Set {
	return Set{Created: Always, Growing: s.growing, Today: s.today, Began: s.clock}
}

// change does what may happen to the rows between two answers.
func (s *shelf) change() {
	for s.changes > 0 && rapid.IntRange(0, s.pace).Draw(s.t, "change now") == 0 {
		s.earlier, s.until = append(s.earlier, slices.Clone(s.rows)), append(s.until, s.answered-1)
		s.clock++
		s.changes--
		kinds := []func(){s.create, s.update}
		if s.deletes {
			kinds = append(kinds, s.delete)
		}
		if s.arrivals {
			kinds = append(kinds, s.arrive)
		}
		kinds[rapid.IntRange(0, len(kinds)-1).Draw(s.t, "change")]()
	}
}

// create makes a row today, or makes one anew that was deleted.
func (s *shelf) create() {
	row := Row{ID: s.next, Created: s.today, Updated: s.clock}
	if n := len(s.deleted); n > 0 && rapid.Bool().Draw(s.t, "comes back") {
		row.ID, s.deleted = s.deleted[n-1], s.deleted[:n-1]
	} else {
		s.next++
	}
	s.rows = append(s.rows, row)
}

func (s *shelf) update() {
	if len(s.rows) > 0 {
		s.rows[rapid.IntRange(0, len(s.rows)-1).Draw(s.t, "updated row")].Updated = s.clock
	}
}

func (s *shelf) delete() {
	if len(s.rows) > 0 {
		i := rapid.IntRange(0, len(s.rows)-1).Draw(s.t, "deleted row")
		s.deleted = append(s.deleted, s.rows[i].ID)
		s.rows = slices.Delete(s.rows, i, i+1)
	}
}

// arrive puts a row into the day that is over: a new one, which comes late, or one of today's that was never
// in it, whose time is set back. It comes before others in any order.
func (s *shelf) arrive() {
	row := Row{ID: s.next, Created: 90, Updated: -int64(rapid.IntRange(1, 5).Draw(s.t, "updated"))}
	today := slices.IndexFunc(s.rows, func(r Row) bool { _, was := s.arrived[r.ID]; return !was })
	if today >= 0 && rapid.Bool().Draw(s.t, "set back") {
		row.ID = s.rows[today].ID
		s.rows = slices.Delete(s.rows, today, today+1)
	} else {
		s.next++
	}
	s.rows = slices.Insert(s.rows, 0, row)
	s.arrived[row.ID] = s.clock
}

func undated(r Row) bool { return r.Undated }

func (s *shelf) matching(rows []Row, created Span) (match []Row) {
	for _, r := range rows {
		in := r.Created >= created.From && r.Created <= created.To
		if r.Undated {
			in = created == Always
		}
		if in && (s.growing || r.Updated < 0) {
			match = append(match, r)
		}
	}
	return match
}

func (s *shelf) sort(rows []Row) {
	up := func(a, b Row) int { return cmp.Compare(a.ID, b.ID) }
	updated := func(a, b Row) int { return cmp.Or(cmp.Compare(a.Updated, b.Updated), up(a, b)) }
	pinned := func(r Row) int { // 1: it keeps its place
		if r.ID%4 == 1 {
			return 1
		}
		return 0
	}
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
	case byPinned:
		slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(pinned(b)-pinned(a), updated(a, b)) })
	case byPinnedDown:
		slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(pinned(a)-pinned(b), updated(b, a)) })
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

func (s *shelf) ask(created Span, page, size int) (Answer, error) {
	a, err := s.tell(created, page, size)
	if s.omits == 2 || s.omits == 1 && !a.More {
		a.More, a.Unsure = false, len(a.Rows) > 0
	}
	return a, err
}

// tell is the whole answer to a question.
func (s *shelf) tell(created Span, page, size int) (Answer, error) {
	if s.answered++; s.answered > 1 {
		s.change()
	}
	if s.faults && rapid.IntRange(0, 30).Draw(s.t, "fault") == 0 {
		return Answer{}, errBroken
	}
	if s.faults && page > 0 && rapid.IntRange(0, 20).Draw(s.t, "refused page") == 0 { // by a proxy
		return Answer{Beyond: true, Count: -1}, nil
	}
	if s.hollow > 0 && (page > 0 || s.hollow == 1) && rapid.IntRange(0, 4).Draw(s.t, "hollow answer") == 0 {
		s.hollow--
		return Answer{Count: 0, Size: -1}, nil
	}
	then, size := s.lagging(), s.grant(page, size)
	if s.cached > 0 && len(s.earlier) > 0 && rapid.IntRange(0, 4).Draw(s.t, "cached answer") == 0 {
		s.cached--
		a := s.answer(rapid.SampledFrom(s.earlier).Draw(s.t, "of then"), created, page, size)
		a.Doubt = "from a cache"
		return a, nil
	}
	a := s.answer(then, created, page, size)
	if s.fails(a, page, size) {
		return Answer{Failed: "500"}, nil
	}
	if a.More && s.faults && !s.growing && rapid.IntRange(0, 5).Draw(s.t, "short page") == 0 {
		a.Rows = a.Rows[:len(a.Rows)/2] // what it leaves out stands on no other page
		if s.count == countPage {
			a.Count = len(a.Rows)
		}
	}
	if a.More && page == s.grants.dim-1 {
		a.Rows = a.Rows[:(len(a.Rows)+1)/2]
		if s.count == countPage {
			a.Count = len(a.Rows)
		}
	}
	for _, r := range a.Rows {
		s.read[r.ID] = r.Updated
	}
	return a, nil
}

// lagging are the rows that the replica which answers now has; nil: those that there are.
func (s *shelf) lagging() []Row {
	first := len(s.earlier)
	for first > 0 && s.until[first-1] >= s.answered-s.lag {
		first--
	}
	if n := rapid.IntRange(first, len(s.earlier)).Draw(s.t, "replica"); n < len(s.earlier) {
		return s.earlier[n]
	}
	return nil
}

// before is how many rows stand on the pages below one.
func (s *shelf) before(page, size int) (rows int) {
	for k := range page {
		if s.uneven > 0 && k%s.uneven == s.uneven-1 {
			rows += max(size/2, 2-s.uneven)
		} else {
			rows += size
		}
	}
	return rows
}

// answer is what the shelf says of a page of so many rows, or said when it had those of then.
func (s *shelf) answer(then []Row, created Span, page, size int) Answer {
	all := then
	if then == nil {
		all = s.rows
	}
	rows := s.matching(all, created)
	s.sort(rows)
	there := len(rows)
	end := 1 // so many pages there are
	for s.before(end, size) < there {
		end++
	}
	if s.pages > 0 {
		end = min(end, s.pages)
	}
	if page > 0 && page >= end && s.past > 0 {
		if s.past == 1 || s.more != moreForEver {
			return Answer{Beyond: true, Count: -1}
		}
		page = end - 1 // more follows for ever, and it is the last page again
	}
	if page >= end {
		rows = nil
	}
	rows = rows[min(s.before(page, size), len(rows)):min(s.before(page+1, size), len(rows))]
	if s.countLast && then == nil { // the rows are read
		s.change()
		there = len(s.matching(s.rows, created))
	}
	a := Answer{Rows: rows, More: there > s.before(page+1, size), Count: len(rows), Size: size}
	switch s.more {
	case moreFull:
		a.More = a.More || len(rows) == size
	case moreSome:
		a.More = a.More || len(rows) > 0
	case moreForEver:
		a.More = true
	}
	if s.pages > 0 && page >= s.pages-1 {
		a.More = false
	}
	switch s.count {
	case countTotal:
		a.Count = there
	case countStale:
		a.Count = there
		if n := len(s.earlier); n > 0 {
			a.Count = len(s.matching(s.earlier[max(0, n-3)], created))
		}
	case countGuess:
		a.Count = max(0, there+rapid.IntRange(-3, 3).Draw(s.t, "off by"))
	}
	switch {
	case s.silent:
		a.Size = -1
	case s.says > 0:
		a.Size = s.says
	}
	return a
}

// reader sees the shelf's clock. By chance 0 it takes nothing for whole by chance.
func (s *shelf) reader(chance float64) *Reader {
	r := NewReader(s.count != countGuess)
	r.steady, r.chance, r.smallest = s.steady, chance, 1
	// One before page 0 had fewer rows than it might: nothing else can tell of page 0 that it may.
	r.short = s.uneven == 1 || s.countLast && (s.says > 0 || s.silent || s.grants != grants{})
	return r
}

// misread has r read the shelf while rows are deleted, and counts are not true though they are believed.
func (s *shelf) misread(r *Reader) {
	count, changes := s.count, s.changes
	s.deletes = true
	if s.count == countTotal { // what was learned of a service that then counts otherwise stays learned
		s.count = rapid.SampledFrom([]counts{countTotal, countStale, countGuess}).Draw(s.t, "counts meanwhile")
	}
	_, _ = drive(r.Read(s.set()), s.ask)
	s.deletes, s.count, s.changes = false, count, changes
	s.earlier, s.until = nil, nil // nothing lags from before
	clear(s.read)
}

// everyRowRead fails unless all rows that are in the set now, and have been in it unchanged since start, were
// read as they are.
func (s *shelf) everyRowRead(start int64) {
	if r, missed := s.missed(start); missed {
		s.t.Fatalf("row %d stayed throughout and was not read (order %d, more %d, count %d, %d a page, "+
			"%d answers)", r.ID, s.order, s.more, s.count, s.cap, s.answered)
	}
}

// missed returns a row that stayed throughout, and was not read since start as it is.
func (s *shelf) missed(start int64) (Row, bool) {
	for _, r := range s.matching(s.rows, Always) {
		if r.Updated > start || s.arrived[r.ID] > start {
			continue
		}
		if got, ok := s.read[r.ID]; !ok || got != r.Updated {
			return r, true
		}
	}
	return Row{}, false
}
