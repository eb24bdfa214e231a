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

// SourceConfig says what to read. Resource (with a table), Overlap and Metrics are needed.
type SourceConfig struct {
	Resource *schemas.Resource
	// Overlap is how long after the time that it stamps a transaction may make its first write.
	Overlap time.Duration
	// Start bounds every read from below; schemas.MinInstant: none.
	Start schemas.Instant
	// MaxRows is the most rows of a batch; 0: 100,000.
	MaxRows int
	Metrics *metrics.Resource
	Log     *zap.Logger // names the resource; nil: nothing is logged
	// Doing gets what a read is doing, for people, and "" when the read ends; nil: nobody asks. Calls come
	// one at a time, but maybe from a goroutine of the source.
	Doing func(string)
}

const (
	defaultMaxRows = 100_000
	// namedAtOnce bounds the array of ids in one statement.
	namedAtOnce = 10_000
)

// Source reads one table. It belongs to one takeover and to one goroutine; see poller.Source.
type Source struct {
	// For the takeover.
	start  schemas.Instant
	chunks *chunkReader
	// Until the database turns out to be another one.
	horizons horizons
	// unfiltered is the floor of a table that has none in the watermark, of the last pass: it says where the
	// next one may begin, and not which rows it may leave out. nil: there is none.
	unfiltered *watermark.Floor
	final      bool      // a row was called final
	rewound    error     // why another history of the database answers than in the pass before; nil: none does
	lagging    time.Time // since when a standby lacks what was settled by; zero: it does not
	// rested is when a pass may begin that reads again what the last one read; see rest.
	rested time.Time
}

// longestRest is how long a source rests at most.
const longestRest = 30 * time.Second

var _ poller.Source = (*Source)(nil)

// NewSource makes a source for one takeover of one resource.
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
		chunks:   newChunkReader(db, c),
		horizons: horizons{overlap: c.Overlap, steps: steps{allowed: allowedStep}},
	}
}

// Read implements poller.Source.
func (s *Source) Read(ctx context.Context, r poller.Request) iter.Seq2[poller.Batch, error] {
	return poller.Pushed(func(emit func(poller.Batch) error) error { return s.read(ctx, r, emit) })
}

func (s *Source) read(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	defer s.chunks.activity.says("")
	s.chunks.catalogue.expect(r.Fields)
	s.chunks.catalogue.before = r.Identity
	r.From = max(r.From, s.start)
	read := s.pass
	switch r.Kind {
	case poller.Full:
		read = s.full
	case poller.Lookup:
		read = s.lookup
	}
	err := read(ctx, r, emit)
	if errors.Is(err, errRewound) {
		s.rewound = err
	}
	if r.Kind == poller.Pass && s.rewound != nil {
		return s.lose(lost(true, "%v", s.rewound))
	}
	return err
}

// pass reads what may have changed since r.From.
func (s *Source) pass(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	if s.rewound != nil {
		return s.rewound
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	trusted := r.Floor != nil || r.Cursor != nil || s.final
	began := time.Now()
	p, err := newPass(ctx, s, r)
	if err != nil {
		return err
	}
	p.trusted = trusted || p.filter.final != 0
	s.final = s.final || p.filter.final != 0
	if err := p.read(ctx, emit); err != nil {
		return err
	}
	if p.swapped && p.trusted {
		return s.lose(lost(true, "the table was replaced while it was read"))
	}
	s.horizons.prune(p.xmin)
	s.unfiltered = nil
	if p.table.noFloor != "" {
		s.unfiltered = p.floor // not before every batch was taken over
	}
	if p.clock.standby && p.held() != "" {
		s.rested = time.Now().Add(min(time.Since(began), longestRest))
	}
	return nil
}

// rest waits for as long as the last pass took, if that was held up on a standby: there each pass reads
// everything since the transaction that holds it up, and with many changes they would follow one another
// without a pause.
func (s *Source) rest(ctx context.Context) error {
	pause := time.Until(s.rested)
	if pause <= 0 {
		return nil
	}
	s.chunks.activity.says("resting: a transaction stays open, and on a standby each poll reads all since then")
	defer s.chunks.activity.says("")
	return wait.For(ctx, pause)
}

// waitFor ends a pass to which a lagging standby would show an older state, for as long as lagPatience.
func (s *Source) waitFor(lags bool) error {
	switch {
	case !lags:
		s.lagging = time.Time{}
	case s.lagging.IsZero():
		s.lagging = time.Now()
	}
	if lags && time.Since(s.lagging) < lagPatience {
		return s.chunks.explain(waitForReplay, errLagging, chunkSize{})
	}
	return nil
}

// lose ends a pass that cannot go by what was read before. What this Source has learned of the server's
// transactions and of its clock does not count either.
func (s *Source) lose(lost *poller.LostError) error {
	s.horizons = horizons{overlap: s.horizons.overlap, steps: steps{allowed: s.horizons.steps.allowed}}
	s.unfiltered, s.final, s.rewound = nil, false, nil
	return lost
}

// floorOf is what a pass for r over t goes by; nil: everything from r.From on is to be read.
func (s *Source) floorOf(r poller.Request, t *table) *watermark.Floor {
	if t.noFloor != "" {
		return s.unfiltered
	}
	return r.Floor
}

// changed says why rows of t may look different that nobody has written, "" if none do.
func (s *Source) changed(r poller.Request, t *table) string {
	switch {
	case r.Fields != nil && slices.ContainsFunc(t.fields, without(r.Fields)):
		return "a column has come"
	case t.noFloor != "" && r.Floor != nil:
		return t.noFloor
	}
	return ""
}

// without says of a name that it is none of names.
func without(names []string) func(string) bool {
	return func(name string) bool { return !slices.Contains(names, name) }
}

// full reads every row of r.IDs from r.From on by id.
func (s *Source) full(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	s.chunks.activity.says("reading everything, by id")
	s.chunks.catalogue.forget() // a sweep sees a column that was added
	done := &poller.Done{Started: r.Started, Complete: true}
	ids := poller.IDRange{First: math.MinInt64, Last: math.MaxInt64}
	if r.IDs != nil {
		ids = *r.IDs
	}
	return s.chunks.unsettled(ctx, since(r.From, ids), beforeID(ids.First), done, emit)
}

// lookup reads the suspects that are still there. Bad chunks are not left out: a row that cannot be published
// may be a suspect for just that reason.
func (s *Source) lookup(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	ids := make([]int64, len(r.Suspects))
	for i, x := range r.Suspects {
		ids[i] = x.ID
	}
	slices.Sort(ids)
	empty := true
	look := func(c *chunk) *poller.Batch {
		empty = empty && len(c.rows)+len(c.rejects) == 0
		return c.batch()
	}
	for some := range slices.Chunk(slices.Compact(ids), namedAtOnce) {
		if err := handOver(ctx, s.chunks.of(named(some)), beforeAll, emit, look); err != nil {
			return err
		}
	}
	if empty { // of these ids; is it of all?
		err := s.chunks.next(ctx, anyRow, beforeAll, func(c *chunk) error {
			empty = len(c.rows)+len(c.rejects) == 0
			return nil
		})
		if err != nil {
			return err
		}
	}
	done := &poller.Done{Started: r.Started, Complete: true, Empty: empty}
	return emit(poller.Batch{Settled: schemas.MinInstant, Done: done})
}
