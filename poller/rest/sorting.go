package rest

import "github.com/storestream/storestream/schemas"

// sorting is how the service was seen to sort.
type sorting int

const (
	unsorted sorting = iota // or not known
	ascending
	descending
)

// sortedBy judges the pages of a forward pass, in order. Rows that the pass had met already are left out: a row that is updated while we
// page pushes others onto the next page. shown is false where the pages do not tell: one alone, or rows that all have one updated_at.
func sortedBy(pages []glimpse) (by sorting, shown bool) {
	var least, most schemas.Instant
	met := map[key]bool{}
	up, down, crossed := true, true, false
	for n, g := range pages {
		for _, s := range g.rows {
			if s.updated == schemas.MinInstant || met[s.key] {
				continue
			}
			if len(met) == 0 {
				least, most = s.updated, s.updated
			}
			met[s.key] = true
			up, down = up && s.updated >= most, down && s.updated <= least
			crossed = crossed || n > 0
			least, most = min(least, s.updated), max(most, s.updated)
		}
	}
	switch {
	case !crossed || least == most:
		return unsorted, false
	case up:
		return ascending, true
	case down:
		return descending, true
	}
	return unsorted, true
}

// seeOrder learns from a forward pass how the service sorts.
func (rd *read) seeOrder(w *walk) {
	if by, shown := sortedBy(w.seen); shown {
		rd.sorting = by
		rd.reader.ascending = by == ascending
	}
}

// fits tells whether one page is sorted as the service was seen to sort.
func (o sorting) fits(g glimpse) bool {
	before := schemas.MinInstant
	for _, s := range g.rows {
		if s.updated == schemas.MinInstant {
			continue
		}
		if before != schemas.MinInstant && (o == ascending && s.updated < before || o == descending && s.updated > before) {
			return false
		}
		before = s.updated
	}
	return true
}

// oldest is the smallest updated_at on g; MaxInstant where it has none.
func (g glimpse) oldest() schemas.Instant {
	least := schemas.MaxInstant
	for _, s := range g.rows {
		if s.updated != schemas.MinInstant {
			least = min(least, s.updated)
		}
	}
	return least
}
