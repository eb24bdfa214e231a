package paging

import "math"

// Order is how the service was seen to sort.
type Order int

// Orders. By any other order than that of updates, or by none, changes can stand on every page.
const (
	Unknown Order = iota
	Ascending
	Descending
)

// fits tells whether one page is sorted by o.
func (o Order) fits(rows []Row) bool {
	before := int64(NoTime)
	for _, row := range rows {
		if row.Updated == NoTime {
			continue
		}
		if before != NoTime && (o == Ascending && row.Updated < before || o == Descending && row.Updated > before) {
			return false
		}
		before = row.Updated
	}
	return true
}

// orderOf finds the order in the answers of a forward pass. It leaves out rows that the pass had met already:
// a row that is updated while we page pushes others onto the next page. shown is false where the pages do not
// tell: there is one alone, or all rows have one time.
func orderOf(answers []Answer) (by Order, shown bool) {
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	met := map[key]bool{}
	up, down, crossed := true, true, false
	for n, a := range answers {
		for _, row := range a.Rows {
			if row.Updated == NoTime || met[row.key()] {
				continue
			}
			met[row.key()] = true
			crossed = crossed || n > 0
			up, down = up && row.Updated >= most, down && row.Updated <= least
			least, most = min(least, row.Updated), max(most, row.Updated)
		}
	}
	switch {
	case !crossed || least == most:
		return Unknown, false
	case up:
		return Ascending, true
	case down:
		return Descending, true
	}
	return Unknown, true
}
