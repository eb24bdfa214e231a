package paging

import (
	"strings"
	"testing"
)

// A set that is too big for a bound is not taken for whole, and says why.

func TestMorePagesThanAPassMayHaveAreTold(t *testing.T) {
	for _, growing := range []bool{false, true} {
		asked := 0
		ask := func(_ Span, page, _ int) (Answer, error) {
			asked++
			return Answer{Rows: []Row{{ID: uint64(page)}}, More: true, Count: -1, Size: 1}, nil
		}
		r := NewReader(true)
		o, err := drive(r.Read(Set{Created: Always, Growing: growing}), ask)
		told := strings.Contains(o.Why, "more pages than one pass reads (50000)")
		if err != nil || o.Whole || !told || asked > maxPages+2 {
			t.Errorf("%+v, %v after %d requests", o, err, asked)
		}
	}
}

func TestPagesThatBringNothingNewForEverAreTold(t *testing.T) {
	ask := func(_ Span, page, _ int) (Answer, error) {
		return Answer{Rows: []Row{{ID: uint64(page % 7)}}, More: true, Count: -1, Size: 1}, nil
	}
	r := NewReader(true)
	o, err := drive(r.Read(Set{Created: Always}), ask)
	if err != nil || o.Whole || !strings.Contains(o.Why, "for ever") || o.Requests > 4*maxIdle {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestMorePartsThanASetMayHaveAreTold(t *testing.T) {
	ask := func(created Span, page, size int) (Answer, error) { // a row on each day
		first, days := max(created.From, 0), min(created.To, maxParts+100)
		a := Answer{Count: -1, Size: size}
		for d := first + Day(page*size); d <= days && len(a.Rows) < size; d++ {
			a.Rows = append(a.Rows, Row{ID: uint64(d), Created: d})
		}
		a.More = first+Day((page+1)*size) <= days
		return a, nil
	}
	r := NewReader(true)
	r.size = 1
	o, err := drive(r.Read(Set{Created: Always}), ask)
	if err != nil || o.Whole || !strings.Contains(o.Why, "too many parts (more than 20000)") {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestPassesThatNeverAgreeAreTold(t *testing.T) {
	next := uint64(0)
	ask := func(_ Span, page, _ int) (Answer, error) { // rows that none saw before
		next += 2
		rows := []Row{{ID: next}, {ID: next + 1}}
		return Answer{Rows: rows[:1+page%2], More: page < 3, Count: -1, Size: -1}, nil
	}
	r := NewReader(true)
	o, err := drive(r.Read(Set{Created: Span{1, 1}, Began: 1}), ask)
	if err != nil || o.Whole || !strings.Contains(o.Why, "60 passes over") {
		t.Errorf("%+v, %v", o, err)
	}
}
