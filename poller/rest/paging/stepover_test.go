package paging

import (
	"slices"
	"testing"
)

// listed answers with pages of three of these rows, which count all of them. Row 3 cannot be read.
func listed(page, size int, rows ...uint64) Answer {
	size = min(size, 3)
	a := Answer{More: len(rows) > (page+1)*size, Count: len(rows), Size: size}
	for _, id := range rows[min(page*size, len(rows)):min((page+1)*size, len(rows))] {
		a.Rows = append(a.Rows, Row{ID: id, Updated: NoTime})
	}
	if slices.ContainsFunc(a.Rows, func(r Row) bool { return r.ID == 3 }) {
		return Answer{Failed: "500"}
	}
	return a
}

// Row 0 is deleted behind the first answer, and row 3 slips to page 0, where it cannot be read. Row 7 comes.
// So as many rows are met as are counted.
func TestARowThatIsSteppedOverIsNotMadeUpForByOneThatWasDeleted(t *testing.T) {
	asked := 0
	ask := func(_ Span, page, size int) (Answer, error) {
		switch asked++; asked {
		case 1:
			return listed(page, size, 0, 1, 2, 3, 4, 5, 6), nil
		case 2:
			return listed(page, size, 1, 2, 3, 4, 5, 6), nil
		}
		return listed(page, size, 1, 2, 3, 4, 5, 6, 7), nil
	}
	r := NewReader(true)
	r.size = 3
	o, err := drive(r.Read(Set{Created: Span{1, 1}, Growing: true}), ask)
	if err != nil || o.Whole || !o.Failed || asked < 6 {
		t.Errorf("%+v after %d questions, %v", o, asked, err)
	}
}

// The same of a service that says for ever that more follow, and shows the last page again.
func TestARowThatIsSteppedOverIsNotMadeUpForIfPagesHaveNoEnd(t *testing.T) {
	asked := 0
	ask := func(_ Span, page, size int) (a Answer, _ error) {
		asked++
		switch place := page * size; {
		case asked == 1:
			a = listed(page, size, 0, 1, 2, 3, 4, 5, 6, 7, 8)
		case place < 9:
			a = listed(page, size, 1, 2, 9, 3, 4, 5, 6, 7, 8)
		default:
			a = listed(2, 3, 1, 2, 8, 3, 4, 5, 9, 6, 7)
		}
		a.More = a.Failed == ""
		return a, nil
	}
	r := NewReader(true)
	r.size = 3
	o, err := drive(r.Read(Set{Created: Span{1, 1}, Growing: true}), ask)
	if err != nil || o.Whole || !o.Failed || !r.CountsAll {
		t.Errorf("%+v after %d questions, %v", o, asked, err)
	}
}

// The first row fails, and the service counts each page. The question for a count would ask for that row, and
// its failure would be a doubt about all the others.
func TestIfTheFirstRowFailsItIsAllThatTheSetLacks(t *testing.T) {
	ask := func(_ Span, page, size int) (Answer, error) {
		a := listed(page, size, 3, 1, 2, 4, 5, 6, 7)
		a.Count = len(a.Rows)
		return a, nil
	}
	r := NewReader(true)
	r.size = 3
	o, err := drive(r.Read(Set{Created: Span{1, 1}}), ask)
	if err != nil || o.Whole || !o.ButRows || o.Rows != 6 {
		t.Errorf("%+v, %v", o, err)
	}
}
