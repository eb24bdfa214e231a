package paging

import "slices"

// collection is the different rows that one pass met. It takes them in any order and as often as they come.
type collection struct {
	ids    []uint64
	sorted int // so many of ids are in order, each once
	// changed are the rows that had changed since the beginning. A change is not taken back.
	changed map[uint64]bool
}

func (c *collection) insert(id uint64, changed bool) {
	c.ids = append(c.ids, id)
	if changed {
		if c.changed == nil {
			c.changed = map[uint64]bool{}
		}
		c.changed[id] = true
	}
}

// rows returns the rows so far, in order.
func (c *collection) rows() []uint64 {
	if c.sorted < len(c.ids) {
		slices.Sort(c.ids)
		c.ids = slices.Compact(c.ids)
		c.sorted = len(c.ids)
	}
	return c.ids
}

// len returns how many different rows were met.
func (c *collection) len() int { return len(c.rows()) }
