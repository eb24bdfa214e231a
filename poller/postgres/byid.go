package postgres

import (
	"context"
	"math"
	"slices"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// namedAtOnce bounds the array of ids in one statement.
const namedAtOnce = 10_000

// full reads every row from r.From on by id: it settles nothing.
func (s *Source) full(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	s.table = nil // a sweep sees a column that was added
	var bad *badPage
	err := s.walk(ctx, byID(max(r.From, s.Start)), key{id: math.MinInt64}, func(c *chunk, _ key) error {
		b := poller.Batch{Rows: c.rows, Rejects: c.rejects, Settled: schemas.MinInstant}
		if c.bad() {
			bad, b.Rejects = pageError(c), nil
		}
		if c.last && bad == nil {
			b.Done = &poller.Done{Started: r.Started, Complete: true}
		}
		return emit(b)
	})
	if err == nil && bad != nil {
		err = bad.hold(s.Resource.Table)
	}
	return err
}

// lookup reads the suspects that still are there. Rows that cannot be published may be all of them: that is why they are suspects.
func (s *Source) lookup(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	ids := make([]int64, len(r.Suspects))
	for i, x := range r.Suspects {
		ids[i] = x.ID
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for len(ids) > 0 {
		some := ids[:min(namedAtOnce, len(ids))]
		ids = ids[len(some):]
		err := s.walk(ctx, named(some), key{id: math.MinInt64}, func(c *chunk, _ key) error {
			b := poller.Batch{Rows: c.rows, Rejects: c.rejects, Settled: schemas.MinInstant}
			if c.last && len(ids) == 0 {
				b.Done = &poller.Done{Started: r.Started, Complete: true}
			}
			return emit(b)
		})
		if err != nil {
			return err
		}
	}
	if len(r.Suspects) == 0 {
		return emit(poller.Batch{Settled: schemas.MinInstant, Done: &poller.Done{Started: r.Started, Complete: true}})
	}
	return nil
}
