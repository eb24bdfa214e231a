package postgres

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
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
	// MaxRows limits the rows of a batch. Zero means 100,000.
	MaxRows int
	Metrics *metrics.Resource
	Log     *zap.Logger // with the resource's name, or nil for no log
	// Doing, if set, shows the user the present activity of a read, and "" when the read ends. Calls come one
	// at a time, but maybe from a goroutine of the source.
	Doing func(string)
}

const (
	defaultMaxRows = 100_000
	// namedAtOnce limits the ids in one statement.
	namedAtOnce = 10_000
	// longestRest limits the pause after a pass beside a transaction that stays open: see Source.pass.
	longestRest = 30 * time.Second
)

// Source reads one table. It belongs to one takeover and to one goroutine; see poller.Source.
type Source struct {
	start  schemas.Instant
	reader *chunkReader

	// The last pass sets horizons, unfiltered and final. They are valid for one history of the database.

	horizons horizons
	// unfiltered is the last pass's floor if the watermark has none for this table. The next pass may begin by
	// it, but may not leave out rows.
	unfiltered *watermark.Floor
	final      bool // a row was called final
	// lost is the error for the next pass: a read of another kind has found another history of the database.
	lost *poller.LostError
	// lagging is the time since which a standby has lacked settled transactions. Zero means that it does not.
	lagging time.Time
	// rested is the time before which no pass begins: see Source.pass.
	rested time.Time
}

var _ poller.Source = (*Source)(nil)

// NewSource returns a source for one takeover of one resource.
func NewSource(db *DB, c SourceConfig) *Source {
	if c.MaxRows <= 0 {
		c.MaxRows = defaultMaxRows
	}
	c.Log = cmp.Or(c.Log, zap.NewNop())
	if c.Doing == nil {
		c.Doing = func(string) {}
	}
	return &Source{
		start:    c.Start,
		reader:   newChunkReader(db, c),
		horizons: horizons{overlap: c.Overlap, steps: steps{allowed: allowedStep}},
	}
}

// Read implements poller.Source.
func (s *Source) Read(ctx context.Context, r poller.Request) iter.Seq2[poller.Batch, error] {
	return func(yield func(poller.Batch, error) bool) {
		defer s.reader.show("")
		s.reader.catalogue.expect(r.Fields)
		s.reader.catalogue.before = r.Identity
		r.From = max(r.From, s.start)
		var err error
		switch r.Kind {
		case poller.Pass:
			err = s.pass(ctx, r, yield)
		case poller.Full:
			err = s.full(ctx, r, yield)
		case poller.Lookup:
			err = s.lookup(ctx, r, yield)
		}
		lost, isLost := errors.AsType[*poller.LostError](err)
		switch {
		case isLost && r.Kind == poller.Pass: // what is known of transactions and the clock does not count either
			s.horizons = horizons{overlap: s.horizons.overlap, steps: steps{allowed: s.horizons.steps.allowed}}
			s.unfiltered, s.final, s.lost = nil, false, nil
		case isLost: // the next pass returns it
			s.lost, err = lost, errors.New(lost.Why)
		}
		if err != nil {
			yield(poller.Batch{}, err)
		}
	}
}

// pass reads what may have changed since r.From. It returns nil, as full and lookup do, if yield wants no
// more.
//
// A standby does not list transactions, so while one stays open each pass reads all rows that were written
// since it began. The poller's interval counts from the beginning of a poll, so such passes would follow one
// another without a pause. After one of them the next pass waits for as long as it took.
func (s *Source) pass(ctx context.Context, r poller.Request, yield func(poller.Batch, error) bool) error {
	if s.lost != nil {
		return s.lost
	}
	if pause := time.Until(s.rested); pause > 0 {
		s.reader.show("resting: a transaction stays open, and on a standby each poll reads all rows since then")
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
		s.reader.show("")
	}
	began := time.Now()
	trusted := r.Floor != nil || r.Cursor != nil || s.final
	p, err := newPass(ctx, s, r)
	if err != nil {
		return err
	}
	p.trusted = p.trusted || trusted
	s.final = s.final || p.filter.final != 0
	for len(p.parts) > 0 {
		part := p.parts[0]
		for c, err := range s.reader.chunks(ctx, part.query(), part.after, part.until) {
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
	if p.bad != nil {
		blocked := p.bad.blocked(p.table.name)
		blocked.Publishes = p.good > 0
		return blocked
	}
	s.horizons.prune(p.xmin)
	s.unfiltered = nil
	if p.table.noFloor != "" {
		s.unfiltered = p.floor // not before every batch was taken over
	}
	if p.clock.standby && p.delays() != "" {
		s.rested = time.Now().Add(min(time.Since(began), longestRest))
	}
	return nil
}

// waitFor returns an error if the server lags, for as long as lagPatience: it would show an older state.
func (s *Source) waitFor(lags bool) error {
	switch {
	case !lags:
		s.lagging = time.Time{}
	case s.lagging.IsZero():
		s.lagging = time.Now()
	}
	if lags && time.Since(s.lagging) < lagPatience {
		return s.reader.explain(errLagging)
	}
	return nil
}

// floorOf returns the floor for a pass over t. Nil means that everything from r.From on has to be read.
func (s *Source) floorOf(r poller.Request, t *table) *watermark.Floor {
	if t.noFloor != "" {
		return s.unfiltered
	}
	return r.Floor
}

// changed returns why rows of t may look different although no transaction has written them, or "".
func (s *Source) changed(r poller.Request, t *table) string {
	switch {
	case r.Fields != nil && slices.ContainsFunc(t.fields, without(r.Fields)):
		return "a column has come"
	case t.noFloor != "" && r.Floor != nil:
		return t.noFloor
	}
	return ""
}

// without returns a function that is true for a name that is none of names.
func without(names []string) func(string) bool {
	return func(name string) bool { return !slices.Contains(names, name) }
}

// full reads every row of r.IDs from r.From on by id. It leaves out bad chunks, and then ends in a
// BlockedError.
func (s *Source) full(ctx context.Context, r poller.Request, yield func(poller.Batch, error) bool) error {
	s.reader.show("reading everything, by id")
	s.reader.catalogue.forget() // a sweep reads a column that was added
	ids := poller.IDRange{First: math.MinInt64, Last: math.MaxInt64}
	if r.IDs != nil {
		ids = *r.IDs
	}
	var bad *chunk
	for c, err := range s.reader.chunks(ctx, since(r.From), beforeID(ids.First), &key{id: ids.Last}) {
		switch {
		case err != nil:
			return err
		case c.bad():
			bad = cmp.Or(bad, c)
			continue
		}
		b := c.batch()
		if c.last && bad == nil {
			b.Done = &poller.Done{Started: r.Started, Complete: true}
		}
		if !yield(b, nil) {
			return nil
		}
	}
	if bad != nil {
		return bad.blocked(s.reader.resource.Table)
	}
	return nil
}

// lookup reads the suspects that are still there. It does not leave out bad chunks: a row that cannot be
// published may be a suspect for that reason.
func (s *Source) lookup(ctx context.Context, r poller.Request, yield func(poller.Batch, error) bool) error {
	ids := make([]int64, len(r.Suspects))
	for i, x := range r.Suspects {
		ids[i] = x.ID
	}
	slices.Sort(ids)
	empty := true
	for some := range slices.Chunk(slices.Compact(ids), namedAtOnce) {
		for c, err := range s.reader.chunks(ctx, named(some), beforeAll, nil) {
			if err != nil {
				return err
			}
			if empty = empty && c.count() == 0; !yield(c.batch(), nil) {
				return nil
			}
		}
	}
	if empty { // there are none of these ids: are there others?
		for c, err := range s.reader.chunks(ctx, anyRow, beforeAll, nil) {
			if err != nil {
				return err
			}
			empty = c.count() == 0
			break // one row is enough
		}
	}
	done := &poller.Done{Started: r.Started, Complete: true, Empty: empty}
	yield(poller.Batch{Settled: schemas.MinInstant, Done: done}, nil)
	return nil
}
