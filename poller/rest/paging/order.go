package paging

import "slices"

// Order is how the service sorts, as far as its answers show.
type Order int

// Orders. By any other order than that of updates, or by none, changes can stand on every page.
const (
	Unknown Order = iota
	Ascending
	Descending
)

// fits reports whether one page is sorted by o.
func (o Order) fits(rows []Row) bool {
	var f orderFinder
	f.see(rows)
	return (o != Ascending || !f.notUp) && (o != Descending || !f.notDown)
}

// orderFinder finds the order in the answers of a forward pass.
type orderFinder struct {
	notUp, notDown bool
	least, most    int64 // of the times so far
	timed          bool  // there is one
	crossed        bool  // the page in hand is not the first that has one
	page           []uint64
}

// see looks at the next page. It leaves out rows that came with the page before: a row that is updated while
// we page pushes others onto the next page. (More of them than a page has make any order look like none,
// until the next pass.)
func (f *orderFinder) see(rows []Row) {
	if f.notUp && f.notDown && f.crossed {
		return
	}
	first := !f.timed
	for _, row := range rows {
		falls, rises := row.Updated < f.most, row.Updated > f.least
		switch {
		case row.Updated == NoTime:
		case !f.timed:
			f.least, f.most, f.timed = row.Updated, row.Updated, true
		case (falls || rises) && slices.Contains(f.page, row.ID):
		default:
			f.notUp, f.notDown = f.notUp || falls, f.notDown || rises
			f.least, f.most = min(f.least, row.Updated), max(f.most, row.Updated)
			f.crossed = f.crossed || !first
		}
	}
	f.page = f.page[:0]
	for _, row := range rows {
		f.page = append(f.page, row.ID)
	}
}

// found returns the order. It returns before if the pages do not show it: there is only one, or all rows have
// one time.
func (f *orderFinder) found(before Order) Order {
	switch {
	case !f.crossed || f.least == f.most:
		return before
	case !f.notUp:
		return Ascending
	case !f.notDown:
		return Descending
	}
	return Unknown
}
