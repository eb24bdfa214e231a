package paging

import (
	"slices"
	"strings"
	"testing"
)

// plain is a set of rows that stay, by id, and how a service tells where they end.
type plain struct {
	rows     []Row
	pages    int  // so many are shown, and nothing follows; 0: all
	counts   bool // the total, else the page's
	forEver  bool // more follows every page
	again    bool // behind the last page it comes again
	uneven   bool // page 1 is half as long, and page 2 goes on where it ends
	refuses  bool // rows behind so many pages of 100 are refused, though it says that they follow
	requests int
}

// plainRows are n rows that were created on so many days.
func plainRows(n, days int) (rows []Row) {
	for i := range n {
		rows = append(rows, Row{ID: uint64(i + 1), Created: Day(20_000 + i*days/n), Updated: -1})
	}
	return rows
}

func (s *plain) ask(created Span, page, size int) (Answer, error) {
	s.requests++
	var match []Row
	for _, r := range s.rows {
		if r.Created >= created.From && r.Created <= created.To && !r.Undated || created == Always {
			match = append(match, r)
		}
	}
	size = min(size, 100)
	if s.refuses && page*size >= s.pages*100 {
		return Answer{Beyond: true, Count: -1}, nil
	}
	before := func(page int) int {
		if s.uneven && page > 1 {
			return page*size - size/2
		}
		return page * size
	}
	a := Answer{More: len(match) > before(page+1), Count: len(match), Size: size}
	if s.pages > 0 && page >= s.pages-1 && !s.refuses {
		a.More = false
	}
	if last := max(0, len(match)-1) / size; s.again {
		page = min(page, last)
	}
	if s.pages == 0 || page < s.pages || s.refuses {
		a.Rows = match[min(before(page), len(match)):min(before(page+1), len(match))]
	}
	if !s.counts {
		a.Count = len(a.Rows)
	}
	a.More = a.More || s.forEver
	return a, nil
}

func (s *plain) read(t *testing.T, created Span) (*Reader, Outcome) {
	t.Helper()
	r := NewReader(true)
	o, err := drive(r.Read(Set{Created: created}), s.ask)
	if err != nil {
		t.Fatal(err)
	}
	return r, o
}

func TestASetOfWhichOnlyTheFirstPagesAreShownIsReadInParts(t *testing.T) {
	s := &plain{rows: plainRows(2500, 100), pages: 10, counts: true}
	if _, o := s.read(t, Always); !o.Whole || o.Rows != 2500 || s.requests > 100 {
		t.Errorf("%+v after %d requests", o, s.requests)
	}
}

func TestASetOfWhichOnlyTheFirstPagesAreShownIsNotWholeWhereItCannotBeCut(t *testing.T) {
	s := &plain{rows: plainRows(2500, 1), pages: 10, counts: true}
	_, o := s.read(t, Always)
	for _, text := range []string{"counts 2500", "nothing follows page 9, after 1000 rows",
		"store.dialect.count"} {
		if !strings.Contains(o.Why, text) {
			t.Errorf("%q does not say %q", o.Why, text)
		}
	}
	if o.Whole || s.requests > 70 {
		t.Errorf("%+v after %d requests", o, s.requests)
	}
	r := NewReader(true)
	if o, err := drive(r.Count(Set{Created: Always}, 0, 50), s.ask); err != nil || o.Whole {
		t.Errorf("counted: %+v, %v", o, err)
	}
}

// Three pages show 250 rows. If all were full they could show 300.
func TestASetOfWhichOnlyTheFirstPagesAreShownIsNotWholeWhereOneOfThemIsShort(t *testing.T) {
	for _, n := range []int{251, 290, 299, 301} {
		for _, growing := range []bool{false, true} {
			s := &plain{rows: plainRows(n, 1), pages: 3, uneven: true, counts: true}
			r := NewReader(true)
			o, err := drive(r.Read(Set{Created: Span{20_000, 20_000}, Growing: growing}), s.ask)
			if err != nil || o.Whole || !strings.Contains(o.Why, "nothing follows page 2") {
				t.Errorf("%d rows: %+v, %v", n, o, err)
			}
		}
	}
}

// Nothing but the full last page gives it away.
func TestASetOfWhichOnlyTheFirstPagesAreShownAndNotCountedIsNotWhole(t *testing.T) {
	for _, created := range []int{1, 100} {
		s := &plain{rows: plainRows(2500, created), pages: 10}
		_, o := s.read(t, Span{20_000, 20_000 + Day(created) - 1})
		whole := created > 1
		if o.Whole != whole || whole && o.Rows != 2500 || !whole && !strings.Contains(o.Why, "page 9") {
			t.Errorf("created on %d days: %+v after %d requests", created, o, s.requests)
		}
	}
}

// A set whose last page is full by chance is whole.
func TestASetOfFullPagesIsWhole(t *testing.T) {
	for _, counts := range []bool{true, false} {
		for _, n := range []int{100, 1000} {
			s := &plain{rows: plainRows(n, 1), counts: counts}
			if _, o := s.read(t, Always); !o.Whole || o.Rows != n || s.requests > 45 {
				t.Errorf("%d rows, counted %v: %+v after %d requests", n, counts, o, s.requests)
			}
			s.requests = 0
			r := NewReader(true)
			r.full = 100 // as an earlier answer has shown
			o, err := drive(r.Count(Set{Created: Always}, 0, 50), s.ask)
			if err != nil || o.Whole != (counts || n <= 100) || s.requests > n/50+5 {
				t.Errorf("%d rows, counted %v, in one pass: %+v after %d requests, %v", n, counts, o, s.requests, err)
			}
		}
	}
}

// A service that reads rows, and then counts them. Between the two rows leave the page, and so many that it
// is the last. What has moved up is missing: from page 0, which is full; or, where page 1 is half as long,
// from the page behind it.
func TestAPageThatIsTheLastOnlySinceItWasReadIsAskedForAgain(t *testing.T) {
	for name, of := range map[string]struct {
		rows, leave, asksFirst int
		uneven                 bool
	}{
		"a full page":  {rows: 102, leave: 2, asksFirst: 0},
		"a short page": {rows: 151, leave: 1, asksFirst: 1, uneven: true},
	} {
		s := &plain{rows: plainRows(of.rows, 1), counts: true, uneven: of.uneven}
		met := map[uint64]bool{}
		set := Set{Created: Always}
		ask := func(created Span, page, size int) (Answer, error) {
			a, _ := s.ask(created, page, size)
			if s.requests == 2 { // the first told how long a page is
				s.rows = slices.Delete(slices.Clone(s.rows), of.asksFirst*100, of.asksFirst*100+of.leave)
				counted, _ := s.ask(created, page, size)
				a.More, a.Count = counted.More, counted.Count
			}
			for _, row := range a.Rows {
				met[row.ID] = true
			}
			return a, nil
		}
		r := NewReader(true)
		if _, err := drive(r.Count(set, 0, 0), ask); err != nil {
			t.Fatal(err)
		}
		clear(met)
		if _, err := drive(r.Count(set, of.asksFirst, of.asksFirst), ask); err != nil {
			t.Fatal(err)
		}
		for _, row := range s.rows {
			if !met[row.ID] {
				t.Errorf("%s: row %d stayed and was not read", name, row.ID)
			}
		}
	}
}

func TestASetWithoutAnEndIsWholeWhereItsCountSaysSo(t *testing.T) {
	for _, again := range []bool{false, true} {
		for _, n := range []int{0, 1, 30, 100, 950} {
			s := &plain{rows: plainRows(n, 1), counts: true, forEver: true, again: again}
			r, o := s.read(t, Always)
			if n > 1 && (!o.Whole || o.Rows != n || !r.NoEnd) { // of one row nobody knows yet what is counted
				t.Errorf("%d rows, the last page again %v: %+v after %d requests", n, again, o, s.requests)
			}
			r.CountsAll, s.requests = true, 0
			o, err := drive(r.Count(Set{Created: Always}, 0, 12), s.ask)
			if err != nil || !o.Whole || s.requests > n/100+8 {
				t.Errorf("%d rows, the last page again %v, in one pass: %+v after %d requests, %v", n, again, o,
					s.requests, err)
			}
		}
	}
}

// It is read all the same.
func TestASetWithoutAnEndThatNobodyCountsIsNotWhole(t *testing.T) {
	s := &plain{rows: plainRows(950, 30), forEver: true}
	r, o := s.read(t, Always)
	if o.Whole || o.Rows != 950 || !strings.Contains(o.Why, "for ever") || s.requests > 40 {
		t.Errorf("%+v after %d requests", o, s.requests)
	}
	s.requests = 0
	o, err := drive(r.Count(Set{Created: Always}, 0, 20), s.ask)
	if err != nil || o.Whole || o.Rows != 950 || s.requests > 25 {
		t.Errorf("in one pass: %+v after %d requests, %v", o, s.requests, err)
	}
}

// Sorted by updates, the last page comes again for ever, and between every two answers a row moves to it: no
// page is like one before.
func TestASetWithoutAnEndWhoseLastPageChangesIsReadOnce(t *testing.T) {
	s := &plain{rows: plainRows(2500, 1), again: true, forEver: true}
	ask := func(created Span, page, size int) (Answer, error) {
		i := s.requests * 7919 % (len(s.rows) - 1)
		s.rows = append(slices.Delete(s.rows, i, i+1), s.rows[i])
		return s.ask(created, page, size)
	}
	o, err := drive(NewReader(true).Read(Set{Created: Always, Growing: true}), ask)
	if err != nil || o.Whole || s.requests > 100 {
		t.Errorf("%+v after %d requests, %v", o, s.requests, err)
	}
}

// An empty page in the middle hides the same rows from each pass of one page size. So two such passes agree,
// and prove nothing.
func TestPassesThatMeetAnEmptyPageInTheMiddleDoNotAgree(t *testing.T) {
	s := &plain{rows: plainRows(250, 1)}
	met := map[uint64]bool{}
	ask := func(created Span, page, size int) (Answer, error) {
		a, err := s.ask(created, page, size)
		if page == 1 {
			a.Rows, a.More = nil, true
		}
		a.Count = -1
		for _, row := range a.Rows {
			met[row.ID] = true
		}
		return a, err
	}
	r := NewReader(true)
	r.size = 100
	o, err := drive(r.Read(Set{Created: Always, Growing: true}), ask)
	if err != nil || o.Whole && len(met) != 250 {
		t.Errorf("%d rows, %+v after %d requests, %v", len(met), o, s.requests, err)
	}
}

func TestAnEndIsLearnedOnce(t *testing.T) {
	s := &plain{rows: plainRows(30, 1), counts: true, forEver: true}
	r, _ := s.read(t, Always)
	first := s.requests
	s.requests = 0
	o, err := drive(r.Read(Set{Created: Always}), s.ask)
	if err != nil || !o.Whole || s.requests > 6 || first < maxIdle {
		t.Errorf("%d requests at first, then %d: %+v, %v", first, s.requests, o, err)
	}
}

// The row is in no part of the set. It is seen at once, or the first pass misses it, and the count tells
// that the parts lack one.
func TestARowWithoutADayOfCreationIsRead(t *testing.T) {
	for _, missed := range []bool{false, true} {
		s := &plain{rows: append(plainRows(950, 30), Row{ID: 5000, Created: Past, Undated: true}), counts: true}
		r := NewReader(true)
		met, isCut := map[uint64]bool{}, !missed
		ask := func(created Span, page, size int) (Answer, error) {
			a, err := s.ask(created, page, size)
			isCut = isCut || created != Always
			for i, row := range a.Rows {
				if !isCut && row.Undated {
					a.Rows = slices.Delete(slices.Clone(a.Rows), i, i+1)
					break
				}
				met[row.ID] = true
			}
			return a, err
		}
		o, err := drive(r.Read(Set{Created: Always}), ask)
		if err != nil || !o.Whole || len(met) != 951 || !r.undated {
			t.Errorf("missed %v: %d rows, %+v, %v", missed, len(met), o, err)
		}
	}
}

// It says that more follow, and refuses to show them: no pass can meet those rows, so chance says nothing.
func TestASetWhoseLaterPagesAreRefusedIsNotWhole(t *testing.T) {
	for _, pages := range []int{1, 10} {
		for _, counts := range []bool{true, false} {
			s := &plain{rows: plainRows(2500, 1), pages: pages, refuses: true, counts: counts}
			_, o := s.read(t, Always)
			if o.Whole || !strings.Contains(o.Why, "has none after") {
				t.Errorf("%d pages, counted %v: %+v after %d requests", pages, counts, o, s.requests)
			}
		}
	}
}

func TestASetThatIsReadOnceSaysWhyItCannotBeReadWhole(t *testing.T) {
	for why, s := range map[string]*plain{
		"has none after": {pages: 1, refuses: true, counts: true}, "was read once": {},
	} {
		s.rows = plainRows(2500, 1)
		o, err := drive(NewReader(true).Read(Set{Created: Always, Growing: true, Once: true}), s.ask)
		if err != nil || o.Whole || !strings.Contains(o.Why, why) {
			t.Errorf("%+v, %v, expected %q", o, err, why)
		}
	}
}

// Its parts fit a page each, and would take as many requests again. Where the service does not count them,
// only they show that the set was read whole.
func TestASetThatIsReadOnceAndCountedIsNotReadAgainInParts(t *testing.T) {
	for counts, again := range map[bool]bool{true: false, false: true} {
		s := &plain{rows: plainRows(2500, 25), counts: counts}
		o, err := drive(NewReader(true).Read(Set{Created: Always, Growing: true, Once: true}), s.ask)
		if err != nil || !o.Whole || o.Rows != 2500 || s.requests > 26 != again {
			t.Errorf("counted %v: %+v, %v, after %d requests", counts, o, err, s.requests)
		}
	}
}

func TestWhereTheCountIsAnEstimateASetWithoutAnEndIsNotWhole(t *testing.T) {
	s := &plain{rows: plainRows(950, 1), counts: true, forEver: true}
	o, err := drive(NewReader(false).Read(Set{Created: Always}), s.ask)
	if err != nil || o.Whole || !strings.Contains(o.Why, "counts nothing") {
		t.Errorf("%+v, %v", o, err)
	}
}

// Such a poll counts for lag.
func TestTheNewestRowsThatAnAnswerInDoubtShowsAreNotAll(t *testing.T) {
	for _, order := range []Order{Ascending, Descending} {
		for _, doubt := range []string{"", "from a cache"} {
			ask := func(_ Span, page, size int) (Answer, error) {
				row := Row{ID: uint64(page + 1), Updated: int64(page)}
				if order == Descending {
					row.Updated = int64(-page)
				}
				return Answer{Rows: []Row{row}, More: page < 9, Count: 10, Size: 1, Doubt: doubt}, nil
			}
			r := NewReader(true)
			r.Order, r.size = order, 1
			since := map[Order]int64{Ascending: 8, Descending: -1}[order]
			o, err := drive(r.Newest(Set{Created: Always, Growing: true}, since, 9, 5), ask)
			if err != nil || o.Whole != (doubt == "") {
				t.Errorf("order %d, %q: %+v, %v", order, doubt, o, err)
			}
		}
	}
}

// Two replicas: one has seen row 40 leave, the other has not. The last page comes from the first: row 100 is
// no longer on it. Page 0 comes from the second: row 100 is not yet on it. Row 40 makes up the number.
func TestARowBetweenThePagesOfTwoReplicasIsNotMadeUpForByOneThatHasLeft(t *testing.T) {
	before := plainRows(150, 1)
	after := slices.Delete(slices.Clone(before), 40, 41)
	for _, passes := range []int{1, 20} {
		asked := 0
		met := map[uint64]bool{}
		ask := func(_ Span, page, size int) (Answer, error) {
			asked++
			size = min(size, 100)
			rows := before
			if page > 0 || asked > 3*passes { // the second one catches up
				rows = after
			}
			a := Answer{More: len(rows) > (page+1)*size, Count: len(rows), Size: size}
			a.Rows = rows[min(page*size, len(rows)):min((page+1)*size, len(rows))]
			for _, row := range a.Rows {
				met[row.ID] = true
			}
			return a, nil
		}
		r := NewReader(true)
		r.full = 100
		o, err := drive(r.Count(Set{Created: Span{20_000, 20_000}}, 1, 5), ask)
		if err != nil || o.Whole && !met[101] {
			t.Errorf("in one pass: %+v, and row 101 was not met; %v", o, err)
		}
		o, err = drive(r.Read(Set{Created: Span{20_000, 20_000}}), ask)
		if err != nil || !o.Whole || !met[101] {
			t.Errorf("in several: %+v, row 101 was met: %v; %v", o, met[101], err)
		}
	}
}

// One row leaves while the forward pass goes on, so that row 101 slips to page 0 unread. Then another comes
// late, when the backward pass has read page 1: row 101 is back there, and the one that came would make up
// the number in its place.
func TestARowThatComesLateDoesNotMakeUpForOneThatItPushedAway(t *testing.T) {
	s := &plain{rows: plainRows(151, 1)}
	met, asked := map[uint64]bool{}, []int(nil) // pages
	ask := func(created Span, page, size int) (Answer, error) {
		if size == 1 { // how many rows are counted
			return s.ask(created, page, size)
		}
		asked = append(asked, page)
		switch {
		case slices.Equal(asked, []int{0, 1}):
			s.rows = s.rows[1:]
		case slices.Equal(asked, []int{0, 1, 1, 1, 0}): // the last page is asked for once more
			s.rows = slices.Insert(slices.Clone(s.rows), 0, Row{ID: 5000, Created: 20_000, Updated: -1})
		}
		a, err := s.ask(created, page, size)
		for _, row := range a.Rows {
			met[row.ID] = true
		}
		return a, err
	}
	r := NewReader(true)
	o, err := drive(r.Read(Set{Created: Span{20_000, 20_000}}), ask)
	if err != nil || !o.Whole || !met[101] || !met[5000] {
		t.Errorf("%+v after pages %v, row 101 was met: %v; %v", o, asked, met[101], err)
	}
}

// Row 101 slips to page 0 unread, as above. The backward pass then hears of page 1 that it is the last, has
// no row, and that there are none at all. Page 0 lacks its rows: none is met, as many as were counted.
func TestAnUntrueEmptyAnswerBesideAShortPageIsNoCount(t *testing.T) {
	s := &plain{rows: plainRows(102, 1), counts: true}
	met, asked := map[uint64]bool{}, []int(nil)
	ask := func(created Span, page, size int) (Answer, error) {
		if size == 1 {
			return s.ask(created, page, size)
		}
		asked = append(asked, page)
		if slices.Equal(asked, []int{0, 1}) {
			s.rows = s.rows[1:]
		}
		a, err := s.ask(created, page, size)
		switch {
		case slices.Equal(asked, []int{0, 1, 1}):
			a = Answer{Size: -1}
		case slices.Equal(asked, []int{0, 1, 1, 0}):
			a.Rows = nil
		}
		for _, row := range a.Rows {
			met[row.ID] = true
		}
		return a, err
	}
	r := NewReader(true)
	r.steady = 0 // the count is believed from the first pass on
	o, err := drive(r.Read(Set{Created: Span{20_000, 20_000}}), ask)
	if err != nil || !o.Whole || !met[101] {
		t.Errorf("%+v after pages %v, row 101 was met: %v; %v", o, asked, met[101], err)
	}
}

// No answer says whether more follow. Row 1 leaves behind the first answer, so row 3 moves up to page 0, and
// page 1 is empty: page 0 is asked for again, and shows row 3.
func TestThePageBeforeAnEmptyOneIsReadAgainIfItDoesNotSayThatItIsTheLast(t *testing.T) {
	for _, growing := range []bool{false, true} {
		s, asked, met := &plain{rows: plainRows(3, 1)}, 0, map[uint64]bool{}
		ask := func(created Span, page, size int) (Answer, error) {
			if asked++; asked == 2 {
				s.rows = s.rows[1:]
			}
			a, err := s.ask(created, page, min(size, 2))
			for _, row := range a.Rows {
				met[row.ID] = true
			}
			a.More, a.Unsure = false, len(a.Rows) > 0
			return a, err
		}
		o, err := drive(NewReader(true).Read(Set{Created: Span{20_000, 20_000}, Growing: growing}), ask)
		if err != nil || !o.Whole || !met[3] || asked > 6 {
			t.Errorf("growing %v: %+v after %d questions, row 3 was met: %v, %v", growing, o, asked, met[3], err)
		}
	}
}

// The service says of every page that no more follow, and counts the page.
func TestAFullPageBehindWhichRowsStandIsNotTheLastWhateverTheServiceSays(t *testing.T) {
	s := &plain{rows: plainRows(50, 1)}
	ask := func(created Span, page, size int) (Answer, error) {
		a, err := s.ask(created, page, min(size, 20))
		a.More, a.Count, a.Size = false, len(a.Rows), min(size, 20)
		return a, err
	}
	o, err := drive(NewReader(true).Read(Set{Created: Span{20_000, 20_000}}), ask)
	if err != nil || o.Whole {
		t.Errorf("%+v, %v", o, err)
	}
	s.rows = s.rows[:20]
	if o, err = drive(NewReader(true).Read(Set{Created: Span{20_000, 20_000}}), ask); err != nil || !o.Whole {
		t.Errorf("of one full page: %+v, %v", o, err)
	}
}
