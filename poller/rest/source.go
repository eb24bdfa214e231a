package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// SourceConfig configures a Source.
type SourceConfig struct {
	Resource *schemas.Resource
	// Client is the way to the service, and Dialect the knowledge of it. The sources of one process share
	// both.
	Client  *client.Client
	Dialect *dialect.Dialect
	// Overlap is how long after its updated_at a row may become readable.
	Overlap time.Duration
	// Start bounds every read from below. schemas.MinInstant means from the earliest row.
	Start schemas.Instant
	// MaxRows is how many rows make a batch full: the page that reaches it is the batch's last. Zero means
	// 10,000.
	MaxRows int
	Metrics *metrics.Resource
	Log     *zap.Logger // names the resource. Nil logs nothing
	// Doing, if set, gets the activity of a read, for people ("closing 2026-11-20"), and "" when it ends.
	Doing func(string)
	// Days, if set, gets the state of the days that are not settled, whenever a pass has learned of a change.
	Days func([]health.Days)
}

// Source reads one resource. See poller.Source; it uses no cursor: a pass settles day by day, and one that
// was cut short begins at settled.
type Source struct {
	cfg      SourceConfig
	endpoint *client.Endpoint
	clock    *client.Clock
	parser   *schemas.RowParser
	linger   time.Duration // how long rows wait for a batch to fill

	// Knowledge of the service. Only the calendar decides what is settled.
	calendar  calendar
	reader    *paging.Reader
	firstPage int         // the service's number of page 0. -1 if unknown
	batches   batchOfDays // of past days
	earliest  day         // before it there was no row. past if unknown
	answered  window      // whose page 0 was answered last. Zero if there is none
	// The form in which windows are asked for: see learnForm. alone is set if the service refuses a window of
	// both dimensions. Then one that is bounded by updated_at is not cut by created_at.
	form  int
	alone bool

	// Results of earlier reads.
	from schemas.Instant // From of the last pass
	days days
	open openWindow
}

// NewSource returns a source of one resource.
func NewSource(cfg SourceConfig) *Source {
	cfg.Log, cfg.MaxRows = cmp.Or(cfg.Log, zap.NewNop()), cmp.Or(cfg.MaxRows, maxBatchRows)
	if cfg.Doing == nil {
		cfg.Doing = func(string) {}
	}
	if cfg.Days == nil {
		cfg.Days = func([]health.Days) {}
	}
	counted := func(code string) { cfg.Metrics.HTTPRequests(code).Inc() }
	endpoint := cfg.Client.Endpoint(cfg.Resource.Path, counted, cfg.Metrics.RateLimited.Add)
	clock := cfg.Client.Clock()
	s := &Source{
		cfg: cfg, endpoint: endpoint, clock: clock, parser: schemas.NewRowParser(cfg.Resource), linger: flushEvery,
		calendar: calendar{clock: clock, overlap: cfg.Overlap, dialect: cfg.Dialect, begun: past}, firstPage: -1,
		batches: batchOfDays{days: 1}, earliest: past, days: days{},
		reader: paging.NewReader(cfg.Dialect.Value(dialect.Count) != dialect.Estimate),
	}
	s.forget()
	return s
}

// forget drops the results of earlier reads. The days that are not closed stay so.
func (s *Source) forget() {
	s.from, s.open = schemas.MinInstant, openWindow{}
	s.days.forgetClosed()
}

// Read implements poller.Source. It makes a plan and reads by it. If the service turns out to cut days
// otherwise than the plan assumes, it makes another one.
func (s *Source) Read(ctx context.Context, r poller.Request) iter.Seq2[poller.Batch, error] {
	return func(yield func(poller.Batch, error) bool) {
		defer s.cfg.Doing("")
		if r.Kind == poller.Pass {
			if r.From < s.from { // a replay: everything from there on is to be read again
				s.forget()
			}
			s.from = r.From
		}
		handed := schemas.MinInstant
		for range mostPlans {
			if s.calendar.adopt() {
				s.forget()
			}
			s.parser.Missing(nil) // of the page that showed the plan before to be wrong
			rd := &read{src: s, req: r, yield: yield, handed: handed, flushed: time.Now(),
				settled: schemas.MinInstant, fields: newFields(s.cfg.Resource, r.Fields)}
			var err error
			if !s.clock.Heard() { // which days are over depends on the service's clock
				today := on(updated, span{From: dayOf(schemas.InstantOf(s.clock.Now())), To: future})
				_, err = rd.glance(ctx, today, 0, 1, func(client.Page) bool { return true })
			}
			switch {
			case err != nil:
			case r.Kind == poller.Full:
				err = s.full(ctx, rd)
			case r.Kind == poller.Lookup:
				err = s.lookup(ctx, rd)
			default:
				if err = s.planPass(ctx, rd); err == nil {
					err = rd.closeDays(ctx, updated)
				}
				if err == nil {
					err = s.readOpenWindow(ctx, rd)
				}
			}
			if err != nil {
				s.forget() // the rows may not be published: the caller drops the batch in hand when it stops
			}
			if errors.Is(err, errReplan) {
				handed = rd.handed
				continue
			}
			if err != nil && !errors.Is(err, errBrokenOff) {
				yield(poller.Batch{}, err)
			}
			return
		}
		s.forget()
		yield(poller.Batch{}, fmt.Errorf("the service's answers contradict each other: %d times in this read they "+
			"showed that it cuts days otherwise than before", mostPlans))
	}
}

// errBrokenOff ends a read whose caller takes no more batches.
var errBrokenOff = errors.New("the caller takes no more batches")

// mostPlans is how many plans one read may make. It makes another one if an answer shows how the service cuts
// days.
const mostPlans = 8
