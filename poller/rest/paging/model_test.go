package paging

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/rounds"
	"pgregory.net/rapid"
)

// Every order is drawn, even one that does the most harm at each request, beside short pages, refused
// pages, empty answers that are not true, old ones from a cache, replicas that lag behind by some answers,
// pages that say for ever that more follow, a service that shows only the first pages, counts of each kind,
// rows without a day of creation, and rows that come into the day late. The rule of chance, which assumes
// more, is off.
func TestADayReportedClosedHasNoMissingRowWhateverTheInterleaving(t *testing.T) {
	closed, paged, all := 0, 0, 0
	rounds.Check(t, 2400, func(t *rapid.T) {
		s := newShelf(t, false, true, everyOrder...).faulty()
		s.deletes = true
		r := s.reader(0)
		for range rapid.IntRange(1, 2).Draw(t, "reads") { // the second knows what the first has learned
			start := s.clock
			o, err := drive(r.Read(s.set()), s.ask)
			if errors.Is(err, errBroken) {
				return
			}
			if all++; o.Whole {
				closed++
				if o.Paged {
					paged++
				}
				s.everyRowRead(start)
			}
		}
	})
	t.Logf("%d of %d reads closed the day, %d of them by several pages", closed, all, paged)
	if paged*5 < all {
		t.Errorf("only %d of %d reads closed a day of several pages: the property says little", paged, all)
	}
}

// Nothing moves. Some rows fail alone, and pages may be too heavy. All others are met, and the set is whole
// when none fails alone.
func TestARowThatFailsAndPagesThatAreTooHeavyKeepNoOtherRowFromBeingRead(t *testing.T) {
	lacking, heavy, all := 0, 0, 0
	rounds.Check(t, 2000, func(t *rapid.T) {
		s := newShelf(t, rapid.Bool().Draw(t, "growing"), false, byID, byIDDown, byUpdated, byUpdatedDown, byHash,
			byPinned)
		s.rows = slices.DeleteFunc(s.rows, undated)
		s.changes, s.pages, s.countLast, s.count = 0, 0, false, countTotal
		s.more = moreTrue
		s.failing()
		s.omitting()
		s.hiccups, s.wall = false, 0
		r := s.reader(0)
		if rapid.Bool().Draw(t, "asks for what is granted") {
			r.size = s.cap
		}
		o, err := drive(r.Read(s.set()), s.ask)
		if err != nil {
			t.Fatal(err)
		}
		bad := 0
		for _, row := range s.matching(s.rows, Always) {
			if _, read := s.read[row.ID]; s.bad[row.ID] {
				bad++
			} else if !read {
				t.Fatalf("row %d was not read beside those that fail: %+v", row.ID, o)
			}
		}
		if all++; bad > 0 {
			lacking++
		}
		if s.heavy > 0 && s.heavy < s.cap {
			heavy++
		}
		if o.Whole != (bad == 0) || o.Failed && o.Why == "" {
			t.Fatalf("%d rows fail alone: %+v", bad, o)
		}
	})
	t.Logf("of %d sets %d had rows that fail, %d pages that are too heavy", all, lacking, heavy)
	if lacking*10 < all || heavy*20 < all {
		t.Error("the property says little")
	}
}

// One backward pass that met as many rows as there were when it began.
func TestACountedPassThatIsWholeHasNoMissingRowWhateverTheInterleaving(t *testing.T) {
	whole, paged, all := 0, 0, 0
	rounds.Check(t, 4000, func(t *rapid.T) {
		s := newShelf(t, false, false, everyOrder...).faulty()
		s.deletes = true
		chance := rapid.Bool().Draw(t, "a chance")
		if chance { // or hardly a pass over several pages is whole
			s.count, s.changes, s.cached, s.hollow = countTotal, min(s.changes, 3), 0, 0
			s.countLast = s.countLast || s.uneven == 2
			s.omits, s.bad, s.heavy = 0, nil, 0
		}
		r := s.reader(0)
		if rapid.IntRange(0, 3).Draw(t, "grants what is asked for") > 0 || chance {
			r.size = s.cap
		}
		start := s.clock
		guess, limit := rapid.IntRange(0, 8).Draw(t, "guess"), rapid.IntRange(0, 50).Draw(t, "limit")
		o, err := drive(r.Count(s.set(), guess, limit), s.ask)
		if errors.Is(err, errBroken) {
			return
		}
		if all++; o.Whole {
			whole++
			if o.Paged {
				paged++
			}
			s.everyRowRead(start)
		}
	})
	t.Logf("%d of %d counted passes were whole, %d of them over several pages", whole, all, paged)
	if paged*50 < all {
		t.Errorf("only %d of %d passes were of several pages and whole: the property says little", paged, all)
	}
}

// The service does not count all rows, and grants more or fewer of them a page from some answer on, or for
// pages of some numbers, whatever it says of that. The day is closed as soon as the pages have one length.
func TestADayWhosePagesGetShorterOrLongerWhileItIsReadIsNotClosedTooEarly(t *testing.T) {
	closed, paged, all := 0, 0, 0
	rounds.Check(t, 8000, func(t *rapid.T) {
		s := newShelf(t, false, false, byID, byIDDown, byHash, byPinned)
		s.rows = slices.DeleteFunc(s.rows, undated)
		s.count, s.pages, s.countLast, s.more = countPage, 0, false, min(s.more, moreFull)
		s.silent, s.arrivals, s.deletes = rapid.Bool().Draw(t, "silent"), false, true
		s.changing()
		if rapid.Bool().Draw(t, "a chance") { // one row leaves, and then the pages change once
			s.rows, s.changes, s.pace = s.rows[:min(len(s.rows), 14)], 1, rapid.IntRange(1, 3).Draw(t, "change early")
			s.cap, s.steady = rapid.IntRange(2, 4).Draw(t, "rows at first"), steadyPasses
			after := rapid.SampledFrom([]int{3, 4, 5, 6, 7, 8, 9}).Draw(t, "after answer")
			s.grants = grants{changes: 1, after: after}
		}
		start := s.clock
		set := s.set()
		set.Created = Span{90, s.today}
		o, err := drive(s.reader(0).Read(set), s.ask)
		if err != nil {
			t.Fatal(err)
		}
		if all++; o.Whole {
			closed++
			if o.Paged {
				paged++
			}
			s.everyRowRead(start)
		}
	})
	t.Logf("%d of %d reads closed the day, %d of them by several pages", closed, all, paged)
	if paged*4 < all {
		t.Errorf("only %d of %d reads closed a day of several pages: the property says little", paged, all)
	}
}

// The first pass has read pages 0 and 1 of four rows when row 1 leaves. The second has read the last page,
// of two rows, when the service begins to grant two rows a page. Six rows come, as many as there would be
// on three pages of two. Row 9 slipped to page 1 before, and is on none of them.
func TestADayIsNotClosedByTheLengthOfPagesThatGetShorterInTheMiddleOfAPass(t *testing.T) {
	for name, size := range map[string]func(granted int) int{
		"says so":          func(granted int) int { return granted },
		"says nothing":     func(int) int { return -1 },
		"says four always": func(int) int { return 4 },
		"says two always":  func(int) int { return 2 },
	} {
		s := &plain{rows: plainRows(11, 1)}
		granted, answers, lastPages, met := 4, 0, 0, map[uint64]bool{}
		ask := func(created Span, page, asked int) (Answer, error) {
			if answers++; answers == 3 {
				s.rows = s.rows[1:]
			}
			a, err := s.ask(created, page, min(asked, granted))
			a.Size = size(min(asked, granted))
			for _, row := range a.Rows {
				met[row.ID] = true
			}
			if answers > 3 && !a.More {
				if lastPages++; lastPages == 2 { // it is asked for twice
					granted = 2
				}
			}
			return a, err
		}
		r := NewReader(true)
		o, err := drive(r.Read(Set{Created: Span{20_000, 20_000}}), ask)
		if err != nil || !o.Whole || !met[9] || o.Requests > 30 {
			t.Errorf("%s: %+v, row 9 was met: %v; %v", name, o, met[9], err)
		}
	}
}

// Pages 0 to 4 come from a server that grants 100 rows, those behind from one that grants 200 and goes on at
// row 1000. With any larger size every pass misses the same rows.
func TestRowsBetweenPagesOfTwoServersThatGrantDifferentlyAreRead(t *testing.T) {
	servers := map[string][2]int{"longer": {100, 200}, "shorter": {200, 100}, "one less": {1000, 999}}
	for _, growing := range []bool{false, true} {
		for _, counts := range []bool{false, true} {
			for name, grants := range servers {
				rows, met := plainRows(2345, 1), map[uint64]bool{}
				ask := func(_ Span, page, size int) (Answer, error) {
					grant := grants[0]
					if page > 0 && (page > 4 || grant == 1000) {
						grant = grants[1]
					}
					size = min(size, grant)
					a := Answer{More: len(rows) > (page+1)*size, Size: size}
					a.Rows = rows[min(page*size, len(rows)):min((page+1)*size, len(rows))]
					if a.Count = len(a.Rows); counts {
						a.Count = len(rows)
					}
					for _, row := range a.Rows {
						met[row.ID] = true
					}
					return a, nil
				}
				r := NewReader(true)
				o, err := drive(r.Read(Set{Created: Span{20_000, 20_000}, Growing: growing}), ask)
				if err != nil || !o.Whole || len(met) != len(rows) || o.Requests > 100 {
					t.Errorf("%s, growing %v, counts %v: %d rows met, %+v, %v", name, growing, counts, len(met), o, err)
				}
			}
		}
	}
}

// Pages that are all short, because the same number of rows was left out of each, are not taken for full
// ones of a service that grants little, whatever it says. The next pass asks for so few. Then a page cannot
// have more.
func TestShortPagesDoNotShowHowLongAPageIs(t *testing.T) {
	for _, said := range []int{-1, PageSize, 3, 5} {
		ask := func(_ Span, k, _ int) (Answer, error) {
			a := Answer{More: k < 7, Count: 24, Size: said}
			for i := range 3 {
				a.Rows = append(a.Rows, Row{ID: uint64(10*k + i)})
			}
			return a, nil
		}
		r := NewReader(true)
		for _, whole := range []bool{false, true} {
			o, err := drive(r.Count(Set{Created: Always}, 0, 20), ask)
			if err != nil || o.Whole != whole {
				t.Errorf("pages of 3 rows, the service says %d: %+v, %v; expected whole to be %v", said, o, err, whole)
			}
		}
	}
}

// A service that counts the whole table whatever it is asked for sends the search for the last page far past
// the end. The set is read all the same, and is whole where somebody has said that the count is no count of
// these rows.
func TestACountOfOtherRowsDoesNotHideTheLastPage(t *testing.T) {
	ask := func(_ Span, k, size int) (Answer, error) {
		a := Answer{More: k < 2, Count: 20 * size, Size: size}
		for i := range size {
			if k < 2 || k == 2 && i < size/2 {
				a.Rows = append(a.Rows, Row{ID: uint64(size*k + i)})
			}
		}
		return a, nil
	}
	for _, exact := range []bool{true, false} {
		r, whole := NewReader(exact), !exact
		o, err := drive(r.Count(Set{Created: Always}, 0, 50), ask)
		if err != nil || o.Whole || o.Rows != 5*PageSize/2 || o.Requests > 7 {
			t.Errorf("exact counts %v, in one pass: %+v, %v", exact, o, err)
		}
		o, err = drive(r.Read(Set{Created: Span{1, 1}}), ask)
		if err != nil || o.Whole != whole || o.Rows != 5*PageSize/2 || o.Requests > 15 {
			t.Errorf("exact counts %v: %+v, %v", exact, o, err)
		}
	}
}

// Independent random order, the assumption of the rule of chance, where neither count nor pages tell how
// many rows there are: the last page is empty. The day is closed in the end, and nothing is missing.
func TestADayInRandomOrderIsClosedByChanceBelowTheBound(t *testing.T) {
	closed, shrunk, quiet, stayed, all := 0, 0, 0, 0, 0
	rounds.Check(t, 600, func(t *rapid.T) {
		s := newShelf(t, false, false, byChance)
		s.count, s.more, s.pages, s.past = countPage, moreSome, 0, 0
		s.rows = slices.DeleteFunc(s.rows, func(r Row) bool { return r.Undated })
		s.changes = max(0, s.changes-20) // a row that has left looks like one that is often missed
		moves, rows := s.changes > 0, len(s.matching(s.rows, Always))
		o, err := drive(s.reader(hiddenChance).Read(s.set()), s.ask)
		if err != nil {
			t.Fatal(err)
		}
		all++
		if o.Whole {
			closed++
			s.everyRowRead(s.clock)
			if o.Paged && len(s.matching(s.rows, Always)) < rows {
				shrunk++
			}
		}
		if !moves && o.Paged {
			if quiet++; !o.Whole {
				if stayed++; !strings.Contains(o.Why, "for ever") {
					t.Fatalf("a day of which nothing moved was not closed: %s", o.Why)
				}
			}
		}
	})
	t.Logf("%d of %d reads closed the day, by chance %d of which nothing moved and %d that rows left", closed,
		all, quiet, shrunk)
	// By chance, pages in random order may repeat so often that they seem to have no end: once in 2,000 days.
	if stayed > 3+quiet/1000 {
		t.Errorf("%d of %d days of which nothing moved seemed to have no end", stayed, quiet)
	}
	if quiet*4 < all || shrunk*20 < all {
		t.Errorf("of %d reads only %d of quiet days and %d of days that rows left were closed by chance: "+
			"the property says little", all, quiet, shrunk)
	}
}

// The open window: rows come and are updated at every moment. Orders whose relative order holds, and those by
// updated_at; pages that are short, refused, or empty though they are not; replicas that lag behind, where
// the service counts. Deletions and counts that are not true are more than a read of the open window can
// stand: it may miss a row then, and say that it was whole. The row is late, because what such a read has
// learned does not mislead the next.
func TestAReadOfTheOpenWindowReportedWholeHeldAllThatWasVisibleWhenItBegan(t *testing.T) {
	readOpenWindows(t, false)
}

// All faults at once, also some that together are more than a read can stand: pages whose length changes
// beside an answer that is empty though it should not be, a page that always leaves out rows, a replica that
// lags far. About one read in 70,000 is called whole without a row then.
func TestAReadOfTheOpenWindowBesideSeveralFaultsIsSeldomCalledWholeWithoutARow(t *testing.T) {
	readOpenWindows(t, true)
}

// readOpenWindows draws services and reads their open windows. several draws faults of several kinds at once.
func readOpenWindows(t *testing.T, several bool) {
	t.Helper()
	whole, all, missed := 0, 0, 0
	rounds.Check(t, 2500, func(t *rapid.T) {
		s := newShelf(t, true, false, byID, byIDDown, byUpdated, byUpdatedDown, byHash, byPinned, byPinnedDown)
		s.faults = rapid.Bool().Draw(t, "faults")
		s.cached = rapid.IntRange(0, 1).Draw(t, "cached answers")
		s.uneven = rapid.SampledFrom([]int{0, 2}).Draw(t, "one page in so many is short")
		if s.count == countStale { // it would leave out rows that have come since
			s.count = countTotal
		}
		r := s.reader(0)
		if rapid.IntRange(0, 3).Draw(t, "a read before, of more than it can stand") == 0 {
			s.misread(r)
		}
		most := 1
		if s.count == countTotal {
			most = 2
		}
		s.hollow = rapid.IntRange(0, most).Draw(t, "hollow answers")
		s.replicas()
		s.changing()
		s.failing()
		s.omitting()
		if !several {
			if s.lag = min(s.lag, 2); s.hollow > 0 || s.lag > 0 || s.grants.dim > 0 {
				s.grants, s.says = grants{}, 0
			}
		}
		start := s.clock
		o, err := drive(r.Read(s.set()), s.ask)
		if errors.Is(err, errBroken) {
			return
		}
		if (s.order == byUpdated || s.order == byPinned) && r.Order != Ascending {
			return // the order has not shown itself: a skip is then late (the next pass reads all again), not lost
		}
		if all++; !o.Whole {
			return
		}
		if whole++; !several {
			s.everyRowRead(start)
		} else if _, late := s.missed(start); late {
			missed++
		}
	})
	t.Logf("%d of %d reads were whole, %d without a row", whole, all, missed)
	if whole*3 < all {
		t.Errorf("only %d of %d reads were whole: the property says little", whole, all)
	}
	if missed > 1+whole/5000 {
		t.Errorf("%d of %d reads were whole without a row", missed, whole)
	}
}

// The second page comes from a replica that has not seen row 9 come, so that row 3 is on its first page: as
// many rows are met as it counts, twice. The page before has counted more.
func TestAReplicaThatLagsDoesNotShowTheEndOfAGrowingSet(t *testing.T) {
	rows, ends := []uint64{9, 1, 2, 3, 4, 5}, 0
	ask := func(_ Span, k, size int) (Answer, error) {
		there := rows
		if k == 1 {
			if ends++; ends <= 2 {
				there = rows[1:]
			}
		}
		a := Answer{More: len(there) > (k+1)*size, Count: len(there), Size: size}
		for _, id := range there[min(k*size, len(there)):min((k+1)*size, len(there))] {
			a.Rows = append(a.Rows, Row{ID: id, Updated: -1})
		}
		return a, nil
	}
	r := NewReader(true)
	r.size = 3
	o, err := drive(r.Read(Set{Created: Span{1, 1}, Growing: true}), ask)
	if err != nil || !o.Whole || o.Rows != len(rows) {
		t.Errorf("%+v, %v: expected all %d rows", o, err, len(rows))
	}
}

func TestTheSpansOfADividedSetMakeItUpWithoutGapOrOverlap(t *testing.T) {
	rounds.Check(t, 100, func(t *rapid.T) {
		bound := func(name string, open Day) Day {
			if rapid.Bool().Draw(t, name+" is open") {
				return open
			}
			return Day(rapid.IntRange(0, 40).Draw(t, name))
		}
		s := Span{bound("from", Past), bound("to", Future)}
		if s.From > s.To {
			s.From, s.To = s.To, s.From
		}
		day := rapid.Custom(func(t *rapid.T) Day { return Day(rapid.IntRange(-5, 45).Draw(t, "day")) })
		known := rapid.MapOf(day, rapid.IntRange(1, 30)).Draw(t, "known")
		parts := divide(s, known, rapid.IntRange(1, 20).Draw(t, "page"))
		if parts[0].From != s.From || parts[len(parts)-1].To != s.To {
			t.Fatalf("%v of %v", parts, s)
		}
		for i, p := range parts {
			if p.From > p.To || i > 0 && parts[i-1].To+1 != p.From {
				t.Fatalf("%v of %v", parts, s)
			}
		}
		if len(parts) == 1 && !s.Single() && len(known) > 0 {
			t.Fatalf("%v could be cut", s)
		}
	})
}

// What a backward pass is for. Whenever the row in question is the first of the page that is asked for, a
// row before it leaves: then it is on the page before, which a forward pass has read. No number of forward
// passes finds it, though each looks complete; a backward pass comes by.
func TestARowThatEveryForwardPassJumpsOverIsFoundByABackwardPass(t *testing.T) {
	const page, wanted = 4, 150
	var rows []uint64
	for id := range uint64(200) {
		rows = append(rows, id)
	}
	answers, found := 0, 0
	ask := func(created Span, k, size int) (Answer, error) {
		answers++
		if created.From > 90 || created.To < 90 { // all were created on one day
			return Answer{Count: -1, Size: size}, nil
		}
		at := slices.Index(rows, wanted)
		for k == 0 && at%page > 0 || at == k*page { // between passes it comes to lie at the beginning of a page
			rows, at = rows[1:], at-1
			if k > 0 {
				break
			}
		}
		left := rows[min(k*size, len(rows)):]
		a := Answer{More: len(left) > size, Count: -1, Size: size}
		for _, id := range left[:min(size, len(left))] {
			if id == wanted && found == 0 {
				found = answers
			}
			a.Rows = append(a.Rows, Row{ID: id, Created: 90})
		}
		return a, nil
	}
	r := NewReader(true)
	r.size = page
	o, err := drive(r.Read(Set{Created: Always}), ask)
	if err != nil || !o.Whole {
		t.Fatalf("%+v, %v", o, err)
	}
	if found == 0 || found > 120 { // the first backward pass comes after a forward pass over 50 pages
		t.Errorf("row %d was first met by answer %d of %d", wanted, found, answers)
	}
}
