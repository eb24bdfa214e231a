package paging

import "slices"

// collection is the different rows that one pass met. It takes them in any order and as often as they come.
type collection struct {
	sorted tallies
	// Not yet in sorted: ids of rows that have not changed since the beginning, and of those that have.
	same, changed []uint64
}

// minPending is how many rows are collected at least before they are sorted and merged. Later it is a quarter
// of those that are: then each is rewritten five times in all, however many come.
const minPending = 4096

func (c *collection) insert(id uint64, changed bool) {
	pending := &c.same
	if changed {
		pending = &c.changed
	}
	if len(*pending) >= max(minPending, c.sorted.n/4) {
		*pending = c.merge(*pending, changed)
	}
	*pending = append(*pending, id)
}

// merge adds pending to sorted, and returns it empty. A row that was met twice has changed if it had when it
// was met once: a change is not taken back.
func (c *collection) merge(pending []uint64, changed bool) []uint64 {
	slices.Sort(pending)
	var fresh tallies
	for i, id := range pending {
		if i == 0 || id != pending[i-1] {
			fresh.append(tally{id: id, changed: changed})
		}
	}
	if c.sorted.n == 0 {
		c.sorted = fresh
		return pending[:0]
	}
	c.sorted = merge(&c.sorted, &fresh, func(a, b *tally) tally {
		if a == nil || b != nil && b.changed {
			return *b
		}
		return *a
	})
	return pending[:0]
}

// rows returns the rows so far.
func (c *collection) rows() *tallies {
	if len(c.same) > 0 {
		c.same = c.merge(c.same, false)
	}
	if len(c.changed) > 0 {
		c.changed = c.merge(c.changed, true)
	}
	return &c.sorted
}

// len returns how many different rows were met.
func (c *collection) len() int { return c.rows().n }
