package postgres

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// frontier says where a read may begin, later than settled, and still meet every row that has become visible
// since the read before it. It is for the time in which one long transaction holds settled back. Without it,
// every poll would read again everything since then.
//
// Take a row that the polls so far have not met, written by transaction x. There are two cases:
//   - x had no id when the poll before noted its horizon. Then the row's stamp is that horizon's time -
//     overlap or later.
//   - x was in flight then, and is over now. So for each id in flight the frontier remembers from where on
//     its rows can be: from the lower bound of the first poll that met it in flight.
//
// The next read therefore begins at the lowest of these. What it reads settles nothing: settled moves only
// over a range that was read in one piece from settled on. So a batch that was read here and never published
// cannot be lost.
type frontier struct {
	overlap time.Duration
	prev    horizon // of the read before
	// low is by id of a transaction in flight. The server does not list ids from xmax to prev.next one by one:
	// they share tail.
	low  map[uint64]schemas.Instant
	xmax uint64
	tail schemas.Instant
}

// newFrontier begins after a read of everything from settled on. c is the clock of that read's first
// snapshot.
func newFrontier(overlap time.Duration, c *clock, settled schemas.Instant) *frontier {
	low := map[uint64]schemas.Instant{}
	for id := range c.running {
		low[id] = settled
	}
	return &frontier{overlap: overlap, prev: c.horizon(), low: low, xmax: c.xmax, tail: settled}
}

// reach says where a read under c, or later snapshots, has to begin, and which rows it looks for from there
// on: the others were met before.
func (f *frontier) reach(c *clock) (schemas.Instant, rowFilter) {
	newest := f.prev.time.Add(-f.overlap)
	from, filter := newest, rowFilter{newest: newest, writer: noWriter}
	for id, low := range f.low {
		if !c.inFlight(id) {
			from, filter.writer = min(from, low), min(filter.writer, id)
		}
	}
	// The server has counted past xmax: an id of the tail is over, maybe a savepoint's, which no list has.
	if c.xmax > f.xmax && f.prev.next > f.xmax {
		from, filter.writer = min(from, f.tail), min(filter.writer, f.xmax)
	}
	return from, filter
}

// advance says that everything that reach(c) names has been read under c or later snapshots.
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
	f.low, f.xmax, f.tail, f.prev = low, c.xmax, tail, c.horizon()
}
