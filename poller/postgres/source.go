package postgres

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// SourceConfig configures a Source. Resource (with a table), Overlap and Metrics are required.
type SourceConfig struct {
	Resource *schemas.Resource
	// Overlap is the longest time from the updated_at that a transaction stamps to its first write.
	Overlap time.Duration
	// Start is the earliest updated_at or created_at that is read. schemas.MinInstant means no limit.
	Start schemas.Instant
	// MaxRows limits the rows of a transaction. Zero means 100,000.
	MaxRows int
	Metrics *metrics.Resource
	Log     *zap.Logger // with the resource's name, or nil for no log
	// Doing, if set, shows the user the present activity of a read, and "" when it ends.
	Doing func(string)
}

// namedAtOnce limits the ids in one statement.
const namedAtOnce = 10_000

// Source reads one table. It belongs to one takeover and to one goroutine; see poller.Source.
type Source struct {
	reader   *chunkReader
	horizons horizons // valid for one history of the database
	// shown is the lineage of the last batch that was handed on. A Source beside this one reads it.
	shown atomic.Pointer[lineage]
	// polls is the Source beside which this one reads, or nil.
	polls *Source
}

var _ poller.Source = (*Source)(nil)

// NewSource returns a source for one takeover of one resource.
func NewSource(db *DB, c SourceConfig) *Source {
	return &Source{reader: newChunkReader(db, c), horizons: horizons{overlap: c.Overlap, allowed: allowedStep}}
}

// Beside returns a source of the same table for comparisons with what s has read. It does not believe a
// server that shows less than s was shown before. Otherwise two looks at a standby that lags would confirm
// that a row is deleted, or has an older state, although s has published the newer one.
func (s *Source) Beside() *Source {
	beside := NewSource(s.reader.db, s.reader.SourceConfig)
	beside.reader.Doing, beside.polls = func(string) {}, s
	return beside
}

// Read implements poller.Source.
func (s *Source) Read(ctx context.Context, r poller.Request) iter.Seq2[poller.Batch, error] {
	return func(take func(poller.Batch, error) bool) {
		if s.polls != nil {
			s.reader.lineage.join(s.polls.shown.Load())
		}
		yield := func(b poller.Batch, err error) bool {
			shown := s.reader.lineage
			s.shown.Store(&shown)
			return take(b, err)
		}
		s.reader.expect(r.Fields)
		s.reader.before = r.Identity
		if t := s.reader.table; r.Kind == poller.Full || t != nil && len(t.missing) > 0 {
			s.reader.table = nil // a column may have been added, and no error would show it
		}
		r.From = max(r.From, s.reader.Start)
		var err error
		switch r.Kind {
		case poller.Pass:
			err = s.pass(ctx, r, nil, yield)
		case poller.Full:
			err = s.full(ctx, r, yield)
		case poller.Lookup:
			err = s.lookup(ctx, r, yield)
		}
		if lost, isLost := errors.AsType[*poller.LostError](err); isLost && r.Kind == poller.Pass {
			// The horizons and the lineage of earlier reads do not count either.
			s.horizons = horizons{overlap: s.reader.Overlap, allowed: allowedStep}
			s.reader.lineage = lineage{}
		} else if isLost {
			err = errors.New(lost.Why) // the next pass finds it too
		}
		if err != nil {
			yield(poller.Batch{}, err)
		}
	}
}

// pass reads the rows that may have changed since r.From. before is the load that it follows, or nil. It
// returns nil, as full and lookup do, if yield wants no more.
func (s *Source) pass(ctx context.Context, r poller.Request, before *pass,
	yield func(poller.Batch, error) bool) error {
	p := newPass(r, s.reader.Start, &s.horizons, before)
	if err := p.look(ctx, s.reader, r); err != nil {
		return err
	}
	if lost := p.lost(r, s.reader.Start); lost != nil {
		return lost
	}
	if err := s.reader.lineage.reached(p.identity.Timeline); err != nil {
		return err
	}
	if err := p.findLoad(ctx, s.reader, r); err != nil {
		return err
	}
	if lost := p.begin(r); lost != nil {
		return lost
	}
	for len(p.parts) > 0 {
		for c, err := range p.chunks(ctx, s.reader) {
			if err != nil {
				return err
			}
			b, err := p.batch(c)
			if err != nil {
				return err
			}
			if b != nil && !yield(*b, nil) {
				return nil
			}
		}
		p.parts = p.parts[1:]
	}
	if p.load != nil { // the rest has a clock of its own
		r.From, r.Load, r.Identity = p.load.Before, p.load, &p.identity
		return s.pass(ctx, r, p, yield)
	}
	if p.bad != nil {
		blocked := p.bad.blocked(p.table.name)
		blocked.Publishes = p.good > 0
		return blocked
	}
	s.horizons.prune(p.xmin)
	return nil
}

// full reads every row from r.From on by id. It leaves out bad chunks, and then ends in a
// BlockedError.
func (s *Source) full(ctx context.Context, r poller.Request, yield func(poller.Batch, error) bool) error {
	var bad *chunk
	for c, err := range s.reader.chunks(ctx, since(r.From), beforeAll) {
		switch {
		case err != nil:
			return err
		case c.bad():
			bad = cmp.Or(bad, c)
			continue
		}
		if c.last && bad == nil {
			c.Done = &poller.Done{Started: r.Started, Complete: true}
		}
		if !yield(c.Batch, nil) {
			return nil
		}
	}
	if bad != nil {
		return bad.blocked(s.reader.Resource.Table)
	}
	return nil
}

// lookup reads the suspects that are still there. It does not leave out bad chunks: a row that cannot be
// published may be a suspect for that reason. A doubtful chunk ends it.
func (s *Source) lookup(ctx context.Context, r poller.Request, yield func(poller.Batch, error) bool) error {
	ids := make([]int64, len(r.Suspects))
	for i, x := range r.Suspects {
		ids[i] = x.ID
	}
	slices.Sort(ids)
	empty := true
	for some := range slices.Chunk(slices.Compact(ids), namedAtOnce) {
		for c, err := range s.reader.chunks(ctx, named(some), beforeAll) {
			switch {
			case err != nil:
				return err
			case c.doubtful:
				return c.blocked(s.reader.Resource.Table)
			}
			if empty = empty && c.count() == 0; !yield(c.Batch, nil) {
				return nil
			}
		}
	}
	for failures := 0; empty; { // no row has one of these ids: are there other rows?
		t, err := s.reader.describe(ctx)
		if err == nil {
			none := statement{sql: "SELECT NOT EXISTS (SELECT FROM " + t.name + ")", locks: t.lockable}
			if _, err = s.reader.db.ask(ctx, t, &s.reader.lineage, &none, &empty); err == nil {
				break
			}
		}
		if err = s.reader.retry(ctx, &failures, nil, err); err != nil {
			return err
		}
	}
	done := &poller.Done{Started: r.Started, Complete: true, Empty: empty}
	yield(poller.Batch{Settled: schemas.MinInstant, Done: done}, nil)
	return nil
}
