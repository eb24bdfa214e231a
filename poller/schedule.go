package poller

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// sweepDue: not before a first load is complete, or all of the rest would differ; not while a replay runs, which sends everything anyway; and never
// with `run --once`, which would not stay to the end.
func (p *Poller) sweepDue() bool {
	now := p.Now()
	if p.Sweep.Source == nil || p.Eager || p.mark.Replay != nil || p.mark.AsOf == schemas.MinInstant || now.Before(p.sweepNext) {
		return false
	}
	return p.mark.Sweep != nil || p.Sweep.Interval > 0 && !now.Before(nextSweep(p.Resource.Name, p.mark.LastSweep, p.born, p.Sweep.Interval))
}

// nextSweep is when the next scheduled sweep is due. Sweeps stand at fixed times, so that restarts do not put them off, and at another time for each
// resource. One that was asked for takes the place of the scheduled one if that is less than half an interval away.
func nextSweep(resource string, last schemas.Instant, born time.Time, interval time.Duration) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(resource)) // never fails
	phase := time.Duration(h.Sum64() % uint64(interval))
	after := born
	if last > schemas.MinInstant {
		after = last.Time().Add(interval / 2)
	}
	return after.Add(-phase).Truncate(interval).Add(interval + phase)
}

func (p *Poller) beginSweep(ctx context.Context, stop <-chan struct{}) {
	select {
	case p.sweepTurn() <- struct{}{}:
	default:
		p.showSweep("waiting for the sweep of another resource")
		return
	}
	s := &sweep{request: -1, began: schemas.InstantOf(p.Now()), met: map[string]bool{}, well: lettered(p.letters), cancel: func() {}}
	if p.mark.Sweep != nil {
		s.request = p.mark.Sweep.Request
	}
	read, createdAt := CompareSource(p.Sweep.Source(), p.Start, p.Now), CreatedAtIn(p.Resource)
	s.cmp = compare.New(compare.Config{Start: p.Start, CreatedAt: createdAt, Now: p.Now, MaxSuspects: p.Sweep.MaxSuspects,
		// A row that has a letter and could be published is a difference like any other: that heals it.
		Source: func(ctx context.Context, suspects []compare.Suspect, take func([]schemas.Record, []schemas.Reject)) error {
			if s.step == mending {
				return p.lookUp(ctx, stop, suspects, take)
			}
			return read(ctx, suspects, func(rows []schemas.Record, rejects []schemas.Reject) {
				p.Metrics.RowsRead.Add(float64(len(rows) + len(rejects)))
				s.bury(rejects)
				s.meet(rows, createdAt)
				take(rows, rejects)
			})
		},
		Topic: func(ctx context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error) {
			if s.step == mending {
				var cancel context.CancelFunc
				ctx, cancel = until(ctx, stop)
				defer cancel()
			}
			return p.Sweep.Topic(ctx, from, fold)
		},
	})
	p.sweep = s
	p.Log.Info("sweep begins", zapRequest(s.request))
	p.showSweep("reading")
	p.work(ctx, func(ctx context.Context) error {
		return s.cmp.First(ctx, func(at compare.Progress) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.status.Sweep.Rows, p.status.Sweep.Of = at.SourceRows, at.TopicRows
		})
	})
}

func (p *Poller) sweepTurn() chan<- struct{} {
	if p.Sweep.Turn == nil {
		return make(chan struct{}, 1)
	}
	return p.Sweep.Turn
}
