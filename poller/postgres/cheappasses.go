package postgres

import (
	"context"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

const (
	// While a transaction holds settled back, complete passes take at most 1/n of the time, n being this. On a
	// primary one begins once settled could move. A standby does not say what has ended: there one begins
	// whenever this time is over.
	dutyPrimary = 4
	dutyStandby = 10
	leastRest   = time.Second
)

// cheapPasses read only what can have become visible since the read before, while a long transaction holds
// settled back; see frontier. They begin with the complete pass that found this out, and live until the next
// complete pass.
type cheapPasses struct {
	chunks   *chunkReader
	horizons *horizons
	frontier *frontier
	settled  schemas.Instant // the settled that the frontier began at
	// When the complete pass ended, and how long it took.
	ended time.Time
	cost  time.Duration
}

func newCheapPasses(s *Source, p *completePass, cost time.Duration) *cheapPasses {
	return &cheapPasses{
		chunks: s.chunks, horizons: &s.horizons,
		frontier: newFrontier(s.horizons.overlap, p.first, p.settled), settled: p.settled,
		ended: time.Now(), cost: cost,
	}
}

// read makes one cheap pass. False: it read nothing, a complete pass is due.
func (p *cheapPasses) read(
	ctx context.Context, r poller.Request, emit func(poller.Batch) error,
) (done bool, err error) {
	if r.From != p.settled {
		return false, nil
	}
	c, err := p.chunks.clock(ctx)
	if err != nil {
		return false, err
	}
	if !c.known || c.time < p.frontier.prev.time || p.completeDue(c) {
		return false, nil
	}
	p.horizons.note(c.horizon())
	from, filter := p.frontier.reach(c)
	end := &poller.Done{Started: r.Started, Held: p.horizons.held(c, c.xmin)}
	if err := p.chunks.unsettled(ctx, changed(filter), keyAt(max(from, r.From)), end, emit); err != nil {
		return false, err
	}
	p.frontier.advance(c) // not before every batch was taken over
	return true, nil
}

// completeDue says whether to read everything from settled on: only that can move settled.
func (p *cheapPasses) completeDue(c *clock) bool {
	rest := dutyPrimary * p.cost
	if c.standby {
		rest = dutyStandby * p.cost
	} else if p.horizons.reach(c.xmin) <= p.settled {
		return false
	}
	return time.Since(p.ended) >= max(rest, leastRest)
}
