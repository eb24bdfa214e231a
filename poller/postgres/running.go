package postgres

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// frontier lets a read begin later than settled, and still meet every row that has become visible since the read before it. It is for the
// time in which one long transaction holds settled back, when everything since then would otherwise be read again with every poll.
//
// A row that a poll has not met, written by transaction x, was either
//   - written by an x that had no id when the poll before was noted: by the mark rule its stamp is that mark's time - overlap or later;
//   - or written by an x that was in flight then, and is over now. So for each id in flight the frontier remembers from where its rows
//     can be: from the lower bound of the first poll that met it in flight.
//
// The next read therefore begins at the lowest of these. What is read so settles nothing: settled moves only over a range that was read in one
// piece from settled on (settle.go), so a batch that was read here and never published cannot be lost.
type frontier struct {
	overlap time.Duration
	prev    mark
	// low is by id of a transaction in flight; ids from xmax to prev.next, which the server does not list one by one, share tail.
	low  map[uint64]schemas.Instant
	xmax uint64
	tail schemas.Instant
}

// newFrontier begins after a read of everything from settled on, whose first snapshot was c.
func newFrontier(overlap time.Duration, c *clock, settled schemas.Instant) *frontier {
	f := &frontier{overlap: overlap, prev: c.mark(), low: map[uint64]schemas.Instant{}, xmax: c.xmax, tail: settled}
	for id := range c.running {
		f.low[id] = settled
	}
	return f
}

// reach is from where a read under c, or later snapshots, has to begin. oldest is the smallest id whose rows it looks for below newest: an
// earlier one's were met before (noFilter: it need not look below).
func (f *frontier) reach(c *clock) (from, newest schemas.Instant, oldest uint64) {
	newest = f.prev.time.Add(-f.overlap)
	from, oldest = newest, noFilter
	for id, low := range f.low {
		if !c.inFlight(id) {
			from, oldest = min(from, low), min(oldest, id)
		}
	}
	// An id of the tail is over (maybe a savepoint's, which is in no list): the server has counted past xmax.
	if c.xmax > f.xmax && f.prev.next > f.xmax {
		from, oldest = min(from, f.tail), min(oldest, f.xmax)
	}
	return from, newest, oldest
}

// advance says that everything from reach(c) on has been read under c or later snapshots.
func (f *frontier) advance(c *clock) {
	bound := f.prev.time.Add(-f.overlap)
	lowOf := func(id uint64) schemas.Instant {
		switch low, listed := f.low[id]; {
		case listed:
			return low
		case id >= f.xmax && id < f.prev.next:
			return f.tail
		}
		return bound
	}
	low := make(map[uint64]schemas.Instant, len(c.running))
	for id := range c.running {
		low[id] = lowOf(id)
	}
	tail := bound
	if c.xmax < f.prev.next {
		tail = min(tail, f.tail)
	}
	f.low, f.xmax, f.tail, f.prev = low, c.xmax, tail, c.mark()
}
