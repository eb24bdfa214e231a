package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// SourceConfig is what a Source works with.
type SourceConfig struct {
	Resource *schemas.Resource
	// Client is the way to the service, and Dialect what is known of it. The sources of one process share both.
	Client  *client.Client
	Dialect *dialect.Dialect
	// Overlap is how long after its updated_at a row may become readable.
	Overlap time.Duration
	// Start bounds every read from below; schemas.MinInstant: from the earliest row.
	Start   schemas.Instant
	Metrics *metrics.Resource
	Log     *zap.Logger // names the resource; nil: none
	// Doing gets what a read is doing, for people ("closing 2026-11-20"), and "" when it ends; nil: nobody asks.
	Doing func(string)
	// Days gets what is known of the days that are not settled, whenever a pass has learned something of them;
	// nil: nobody asks.
	Days func([]DayRange)
}

// Source reads one resource. See poller.Source; it uses no cursor: a pass settles day by day, and one that
// was cut short begins at settled.
type Source struct {
	cfg      SourceConfig
	endpoint *client.Endpoint
	clock    *client.Clock
	parser   *schemas.RowParser
	linger   time.Duration // how long rows wait for a batch to fill

	// What was learned of the service. Apart from the calendar none of it decides what is settled.
	calendar  calendar
	reader    *paging.Reader
	firstPage int // what the service calls page 0; -1: not known
	past      batchOfDays
	earliest  day       // before it there was no row; past: not known
	unsorted  time.Time // until then the service's order is none (see judgeOrder)
	noEndSaid bool      // the log has said that more pages follow for ever

	// What earlier reads came to.
	from schemas.Instant // where the last pass began
	days days
	open openWindow
}

// NewSource returns a source of one resource.
func NewSource(cfg SourceConfig) *Source {
	cfg.Log = cmp.Or(cfg.Log, zap.NewNop())
	if cfg.Doing == nil {
		cfg.Doing = func(string) {}
	}
	if cfg.Days == nil {
		cfg.Days = func([]DayRange) {}
	}
	count := client.Counters{
		Request: func(code string) { cfg.Metrics.HTTPRequests(code).Inc() },
		Refused: cfg.Metrics.RateLimited.Add,
	}
	clock := cfg.Client.Clock()
	s := &Source{
		cfg: cfg, endpoint: cfg.Client.Endpoint(cfg.Resource.Path, count), clock: clock,
		parser: schemas.NewRowParser(cfg.Resource), linger: flushEvery,
		calendar: calendar{clock: clock, overlap: cfg.Overlap, dialect: cfg.Dialect, begun: past}, firstPage: -1,
		past: newBatchOfDays(), earliest: past, days: newDays(),
		reader: paging.NewReader(func() int64 { return int64(clock.Service()) }, cfg.Metrics.PagePasses.Inc,
			cfg.Dialect.Counts()),
	}
	s.forget()
	return s
}

// forget drops what earlier reads came to. The days that are held stay so.
func (s *Source) forget() {
	s.from, s.open = schemas.MinInstant, openWindow{}
	clear(s.days.closed)
}

// Read implements poller.Source.
func (s *Source) Read(ctx context.Context, r poller.Request) iter.Seq2[poller.Batch, error] {
	return poller.Pushed(func(emit func(poller.Batch) error) error { return s.readAll(ctx, r, emit) })
}

func (s *Source) readAll(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	if r.Kind == poller.Pass {
		if r.From < s.from { // a replay: all from there on is to be read again
			s.forget()
		}
		s.from = r.From
	}
	defer s.cfg.Doing("")
	settled := schemas.MinInstant // by this Read, so far
	for range mostAnew {
		if s.calendar.adopt() {
			s.forget()
		}
		rd := &read{src: s, req: r, flushed: time.Now(), settled: schemas.MinInstant,
			fields: newFields(s.cfg.Resource, r.Fields), made: schemas.MinInstant}
		rd.emit = func(b poller.Batch) error {
			// What this Read has settled may be read a second time (beside a neighbor, or again when the zone was
			// found out). The caller has forgotten what it published of it, and would publish it twice.
			b.Rows = slices.DeleteFunc(b.Rows, func(row schemas.Record) bool { return row.UpdatedAt < settled })
			settled = max(settled, b.Settled)
			if err := emit(b); err != nil {
				return err
			}
			return context.Cause(ctx) // a batch handed over while the caller stops may be dropped
		}
		err := s.read(ctx, rd)
		s.sayNoEnd()
		if errors.Is(err, errAskAnew) {
			continue
		}
		if err != nil {
			s.forget() // what was read may not be published: the batch in hand is dropped when the caller stops
		}
		return err
	}
	s.forget()
	return fmt.Errorf("the service's answers contradict each other: %d times in this read they showed that it "+
		"cuts days otherwise than before", mostAnew)
}

// mostAnew is how often a read may begin again because an answer showed how the service cuts days.
const mostAnew = 8

func (s *Source) read(ctx context.Context, rd *read) error {
	if err := s.hearClock(ctx, rd); err != nil {
		return err
	}
	switch rd.req.Kind {
	case poller.Full:
		return s.full(ctx, rd)
	case poller.Lookup:
		return s.lookup(ctx, rd)
	default:
		if err := s.calendar.wentBack(rd.req.From); err != nil && rd.req.From > s.cfg.Start {
			return err
		}
		return s.pass(ctx, rd)
	}
}

// hearClock makes sure that the service's clock was heard before anything is planned: which days are over
// depends on it.
func (s *Source) hearClock(ctx context.Context, rd *read) error {
	if s.clock.Heard() {
		return nil
	}
	today := dayOf(schemas.InstantOf(s.clock.Now()))
	_, _, err := rd.anyRow(ctx, window{updated: span{From: today, To: future}, created: always})
	return err
}

// sayNoEnd tells once that the service does not say where its pages end.
func (s *Source) sayNoEnd() {
	if s.noEndSaid || !s.reader.NoEnd() {
		return
	}
	s.noEndSaid = true
	s.cfg.Log.Warn("the service says for ever that more pages follow, also behind the last row: from now on " +
		"two empty pages are the end, and a day is closed only where meta.count shows that all of it was read")
}

// pagesLeft tells people how much of a window is left: settled does not move meanwhile.
func (s *Source) pagesLeft(doing string) func(pages int) {
	return func(pages int) { s.cfg.Doing(doing + ", " + terminal.Plural(pages, "page") + " left") }
}
