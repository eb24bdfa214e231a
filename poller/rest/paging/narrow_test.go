package paging

import (
	"slices"
	"testing"
)

// A service shows ten full pages of more, and counts nothing. The question that would show it fails.
func TestAFailureDoesNotShowThatAFullPageIsTheLast(t *testing.T) {
	s := &plain{rows: plainRows(2500, 1), pages: 10}
	ask := func(created Span, page, size int) (Answer, error) {
		if size == 99 {
			return Answer{Failed: "500"}, nil
		}
		return s.ask(created, page, size)
	}
	r := NewReader(true)
	o, err := drive(r.Read(Set{Created: Span{20_000, 20_000}}), ask)
	if err != nil || o.Whole || o.Rows != 1000 {
		t.Errorf("%+v, %v", o, err)
	}
}

// A row without a day of creation is missed, and in no part of the set. Only counts show it, and they fail.
func TestAFailureDoesNotShowThatEveryRowHasADay(t *testing.T) {
	for _, fails := range []bool{false, true} {
		s := &plain{rows: plainRows(250, 25), counts: true}
		ask := func(created Span, page, size int) (Answer, error) {
			if fails && size == 1 {
				return Answer{Failed: "500"}, nil
			}
			a, err := s.ask(created, page, size)
			if created == Always {
				a.Count++
			}
			return a, err
		}
		r := NewReader(true)
		o, err := drive(r.Read(Set{Created: Always, Today: 20_030}), ask)
		if err != nil || o.Whole || o.Rows != 250 {
			t.Errorf("counts fail: %v: %+v, %v", fails, o, err)
		}
	}
}

// Nothing of a page is answered: that is no single row, and its rows are not looked at one by one.
func TestAPageOfWhichNoRowIsAnsweredEndsTheReading(t *testing.T) {
	for _, growing := range []bool{false, true} {
		asked := 0
		ask := func(_ Span, page, size int) (Answer, error) {
			asked++
			return Answer{Failed: "422"}, nil
		}
		r := NewReader(true)
		o, err := drive(r.Read(Set{Created: Always, Growing: growing}), ask)
		if err != nil || o.Whole || !o.Failed || o.ButRows || o.Why != "422" || asked > 4 {
			t.Errorf("%+v after %d requests, %v", o, asked, err)
		}
	}
}

// Pages go down to 100 rows, and come back after many good answers.
func TestThePageSizeComesBackSlowly(t *testing.T) {
	rows, heavy := plainRows(5000, 1), true
	var sizes []int
	ask := func(_ Span, page, size int) (Answer, error) {
		if !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
		if heavy && size > 100 {
			return Answer{Failed: "504"}, nil
		}
		a := Answer{Count: len(rows), Size: size, More: (page+1)*size < len(rows)}
		a.Rows = rows[min(page*size, len(rows)):min((page+1)*size, len(rows))]
		return a, nil
	}
	r := NewReader(true)
	set := Set{Created: Span{20_000, 20_000}}
	if o, err := drive(r.Read(set), ask); err != nil || !o.Whole || r.Page() != 100 || r.Tries() != fewTries {
		t.Fatalf("%+v, %v, pages of %d", o, err, r.Page())
	}
	heavy, sizes = false, nil
	for range 30 {
		if o, err := drive(r.Read(set), ask); err != nil || !o.Whole {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	if !slices.IsSorted(sizes) || r.Page() != PageSize || r.Tries() != 0 {
		t.Errorf("pages of %v, then of %d, and %d tries", sizes, r.Page(), r.Tries())
	}
}

// The service refuses page 1, though page 0 says that more follows. The newest rows may stand there.
func TestARefusedPageDoesNotEndTheSearchForTheNewestRows(t *testing.T) {
	for _, order := range []Order{Ascending, Descending} {
		ask := func(_ Span, page, size int) (Answer, error) {
			if page > 0 {
				return Answer{Beyond: true, Failed: "403", Count: -1}, nil
			}
			a := Answer{More: true, Count: -1, Size: size}
			for i := range size {
				at := int64(1000 + i)
				if order == Descending {
					at = int64(5000 - i)
				}
				a.Rows = append(a.Rows, Row{ID: uint64(i), Updated: at})
			}
			return a, nil
		}
		r := NewReader(true)
		r.size, r.Order = 10, order
		if o, err := drive(r.Newest(Set{Created: Always, Growing: true}, 2000, 1, 5), ask); err != nil || o.Whole {
			t.Errorf("order %d: %+v, %v", order, o, err)
		}
	}
}

// A row that cannot be read has no day of creation, and the service does not count: no part shows it.
func TestARowThatFailsAndIsInNoPartLeavesTheSetOpen(t *testing.T) {
	s := &plain{rows: plainRows(250, 25)}
	ask := func(created Span, page, size int) (Answer, error) {
		if created == Always { // it stands at place 120
			if page*size <= 120 && (page+1)*size > 120 {
				return Answer{Failed: "500"}, nil
			}
		}
		return s.ask(created, page, size)
	}
	r := NewReader(true)
	r.size = 100
	o, err := drive(r.Read(Set{Created: Always, Today: 20_030}), ask)
	if err != nil || o.Whole || o.Why == "" {
		t.Errorf("%+v, %v", o, err)
	}
}

// Sixty rows in a row fail, or pages are too heavy even if they are small. The rows behind are met.
func TestManyFailuresKeepNoRowsBehindThemFromBeingRead(t *testing.T) {
	for name, fails := range map[string]func(page, size int) bool{
		"sixty rows": func(page, size int) bool { return page*size < 400 && (page+1)*size > 340 },
		"heavy":      func(_, size int) bool { return size >= smallPage },
		"heavy, and one row": func(page, size int) bool {
			return size >= smallPage || page*size <= 340 && (page+1)*size > 340
		},
	} {
		met, asked := map[uint64]bool{}, 0
		s := &plain{rows: plainRows(2500, 1)}
		ask := func(created Span, page, size int) (Answer, error) {
			if asked++; fails(page, size) {
				return Answer{Failed: "500"}, nil
			}
			a, err := s.ask(created, page, size)
			for _, row := range a.Rows {
				met[row.ID] = true
			}
			return a, err
		}
		r := NewReader(true)
		o, err := drive(r.Read(Set{Created: Span{20_000, 20_000}}), ask)
		if err != nil || o.Whole || !met[2500] || len(met) < 2300 || r.Page() < smallPage || asked > 6000 {
			t.Errorf("%s: %d rows met with %d requests, pages of %d, %+v, %v", name, len(met), asked, r.Page(), o, err)
		}
	}
}
