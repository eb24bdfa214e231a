package postgres

import (
	"context"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

const (
	// While settled is held back, a complete pass takes at most one part in so many of the time: on a primary once settled could move, on a standby,
	// which does not tell what has ended, whenever this time is over.
	dutyPrimary = 4
	dutyStandby = 10
	leastRest   = time.Second
)

// newest reads only what can have become visible since the read before, while a long transaction holds settled back (see frontier). false: a
// complete pass is due instead.
func (s *Source) newest(ctx context.Context, r poller.Request, emit func(poller.Batch) error) (bool, error) {
	if s.front == nil || r.Kind != poller.Pass || r.Cursor != nil || r.From != s.frontFrom {
		return false, nil
	}
	probe, err := s.read(ctx, nil, key{})
	if err != nil {
		return false, err
	}
	c := &probe.clock
	if !c.known || c.time < s.front.prev.time || s.due(c, r.From) {
		return false, nil
	}
	s.settle.note(c.mark())
	from, newest, oldest := s.front.reach(c)
	from = max(from, r.From)
	held := s.held(c, c.xmin)
	var bad *badPage
	err = s.walk(ctx, changed(newest, oldest), keyAt(from), func(chunk *chunk, _ key) error {
		b := poller.Batch{Rows: chunk.rows, Rejects: chunk.rejects, Settled: schemas.MinInstant}
		if chunk.bad() {
			bad, b.Rejects = pageError(chunk), nil
		}
		if chunk.last && bad == nil {
			b.Done = &poller.Done{Started: r.Started, Held: held}
		}
		return emit(b)
	})
	switch {
	case err != nil:
		return false, err
	case bad != nil:
		return false, bad.hold(s.Resource.Table)
	}
	s.front.advance(c) // not before every batch was taken over
	return true, nil
}

// due says whether to read everything from settled on, which alone can move it.
func (s *Source) due(c *clock, settled schemas.Instant) bool {
	rest := dutyPrimary * s.cost
	if c.standby {
		rest = dutyStandby * s.cost
	} else if s.settle.reach(c.xmin) <= settled {
		return false
	}
	return time.Since(s.completed) >= max(rest, leastRest)
}
