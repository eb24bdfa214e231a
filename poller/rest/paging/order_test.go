package paging

import "testing"

// A row that is updated between two pages pushes others onto the next page, where they come again.
func TestTheOrderIsFoundThoughRowsComeAgain(t *testing.T) {
	for name, of := range map[string]struct {
		pages [][]int64 // updated, which is the id too
		order Order
		shown bool
	}{
		"nothing":                    {nil, Unknown, false},
		"one page":                   {[][]int64{{1, 2, 3}}, Unknown, false},
		"ascending":                  {[][]int64{{1, 2, 3}, {4, 5}}, Ascending, true},
		"descending":                 {[][]int64{{9, 8, 7}, {6, 5, 4}, {3}}, Descending, true},
		"one came again":             {[][]int64{{9, 8, 7}, {7, 6, 5}, {4}}, Descending, true},
		"as many as a page came":     {[][]int64{{9, 8, 7}, {9, 8, 7}, {6}}, Descending, true},
		"an older one came late":     {[][]int64{{9, 8, 7}, {5, 6}}, Unknown, true},
		"none":                       {[][]int64{{3, 1, 2}, {9, 4}}, Unknown, true},
		"the first page had no time": {[][]int64{{NoTime}, {4, 3}}, Unknown, false},
		"some have no time":          {[][]int64{{4, NoTime, 3}, {NoTime, 2}}, Descending, true},
		"an empty page":              {[][]int64{{4, 3}, {}, {2}}, Descending, true},
		"one page, and it again":     {[][]int64{{3, 1, 2}, {3, 1, 2}}, Unknown, false},
	} {
		var f orderFinder
		for _, page := range of.pages {
			rows := make([]Row, 0, len(page))
			for _, updated := range page {
				rows = append(rows, Row{ID: uint64(updated), Updated: updated})
			}
			f.see(rows)
		}
		if order := f.found(-1); order != of.order && of.shown || of.shown == (order == -1) {
			t.Errorf("%s: order %d; expected %d, shown %v", name, order, of.order, of.shown)
		}
	}
}
