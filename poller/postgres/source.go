package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// SourceConfig says what to read. Resource (with a table) and Overlap are needed.
type SourceConfig struct {
	Resource *schemas.Resource
	// Overlap is how long after the time that it stamps a transaction may make its first write.
	Overlap time.Duration
	// Start bounds every read from below; schemas.MinInstant: none.
	Start schemas.Instant
	// MaxRows is the most rows of a batch; 0: 100,000.
	MaxRows int
	Metrics *metrics.Resource // nil: nothing is counted
	Log     *zap.Logger       // names the resource; nil: nothing is logged
	// Doing gets what a read is at, for people, "" when it ends; nil: nobody asks. It may be called from a goroutine of the source, never by two at a time.
	Doing func(string)
}

const defaultMaxRows = 100_000

// Source reads one table. It belongs to one takeover and to one goroutine; see poller.Source.
type Source struct {
	SourceConfig
	db *DB

	table  *table // nil: look
	looked time.Time
	told   string // the columns that the log was told to be missing
	at     string // what Doing was told last, but for waits
	size   sizer
	settle settler
	// latest is the clock of the last chunk that was used; lagging is since when servers showed less than that.
	latest  *clock
	lagging time.Time
	// front is there while a transaction holds settled back: reads need not go back to settled. frontFrom is the settled it is about.
	front     *frontier
	frontFrom schemas.Instant
	// The last complete pass: when it ended and how long it took.
	completed time.Time
	cost      time.Duration
}

var _ poller.Source = (*Source)(nil)

// NewSource makes a source for one takeover of one resource.
func NewSource(db *DB, c SourceConfig) *Source {
	if c.MaxRows <= 0 {
		c.MaxRows = defaultMaxRows
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Doing == nil {
		c.Doing = func(string) {}
	}
	return &Source{SourceConfig: c, db: db, size: newSizer(c.MaxRows), settle: settler{overlap: c.Overlap}}
}

// Read implements poller.Source.
func (s *Source) Read(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	s.recheck()
	defer s.does("")
	switch r.Kind {
	case poller.Full:
		s.does("reading everything, by id")
		return s.full(ctx, r, emit)
	case poller.Lookup:
		return s.lookup(ctx, r, emit)
	}
	return s.pass(ctx, r, emit)
}

// recheckEvery is how often the catalogue is asked for columns that the schema has and the table had not. Nothing else would tell:
// a SELECT of the others goes on working when such a column is added.
const recheckEvery = time.Minute

func (s *Source) recheck() {
	if s.table != nil && len(s.table.missing) > 0 && time.Since(s.looked) > recheckEvery {
		s.table = nil
	}
}

// tellMissing logs the columns that the table lacks, when they are others than before: what is published in their place is null.
func (s *Source) tellMissing() {
	now := strings.Join(s.table.missing, ", ")
	if now == s.told {
		return
	}
	if s.told = now; now == "" {
		s.Log.Info("the table has all columns again", zap.String("table", s.table.name))
		return
	}
	s.Log.Warn("the table lacks columns that the schema has: null is published in their place until they are there (noticed within a minute; a sweep mends the rows)",
		zap.String("table", s.table.name), zap.String("columns", now))
}

// forget drops all that was learned of the server's transactions: they are another cluster's.
func (s *Source) forget() {
	s.settle.reset()
	s.latest, s.front, s.lagging = nil, nil, time.Time{}
}
