package rest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// SourceConfig is what a Source works with.
type SourceConfig struct {
	Resource *schemas.Resource
	// Client is the way to the service, and Zone what the sources of one process know of its days; they share both.
	Client *client.Client
	Zone   *Zone
	// Overlap is how long after its updated_at a row may become readable.
	Overlap time.Duration
	// Start bounds every read from below; schemas.MinInstant: from the earliest row.
	Start   schemas.Instant
	Metrics *metrics.Resource
	Log     *zap.Logger // names the resource; nil: none
	// Doing gets what a read is at, for people ("closing 2026-11-20"), "" when it ends; nil: nobody asks.
	Doing func(string)
}

// Source reads one resource. See poller.Source; it uses no cursor: a pass settles day by day, and one that was cut short begins at settled.
type Source struct {
	SourceConfig
	endpoint *client.Endpoint
	clock    *client.Clock
	parser   *schemas.RowParser
	// pageBase is what meta.page says of page 0.
	pageBase int

	// What makes reads cheaper. None of it decides what is settled.
	granted map[int]int
	cuts    cuts
	sorting sorting
	// Of the windows of the past: how many days the next one has, how many pages it may take, how many at most for now, and how many rows a day the last had.
	stretch, pages, most int
	density              float64
	linger               time.Duration

	// wide: the service is known to cut days in another zone than UTC (see zone.go). neighbour: a pass has looked at the day before its first.
	wide, neighbour bool
	strays          bool // said already that rows come from outside of what was asked for

	// memory is what earlier reads came to. It is good only if all they read was published, which a Read that returned nil says.
	memory memory
	// hard are the days that did not come clean.
	hard map[day]*hardDay
}

// NewSource returns a source of one resource.
func NewSource(cfg SourceConfig) *Source {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Doing == nil {
		cfg.Doing = func(string) {}
	}
	count := client.Counters{
		Request: func(code string) { cfg.Metrics.HTTPRequests(code).Inc() },
		Refused: cfg.Metrics.RateLimited.Add,
	}
	return &Source{SourceConfig: cfg, endpoint: cfg.Client.Endpoint(cfg.Resource.Path, count), clock: cfg.Client.Clock(), parser: schemas.NewRowParser(cfg.Resource), pageBase: -1,
		granted: map[int]int{}, memory: newMemory(), hard: map[day]*hardDay{}, stretch: 1, pages: 1, most: widest, linger: flushEvery}
}

// Read implements poller.Source.
func (s *Source) Read(ctx context.Context, r poller.Request, emit func(poller.Batch) error) error {
	if r.Kind == poller.Pass || r.Kind == poller.CompletePass {
		s.memory.seize(r.From)
	}
	defer s.Doing("")
	settled := schemas.MinInstant // by this Read, so far
	for {
		rd := s.begin(r, func(b poller.Batch) error {
			// What this Read has settled may be read a second time (beside a neighbour, or again when the zone was found out). The caller has forgotten
			// what it published of it, and would publish it twice.
			b.Rows = slices.DeleteFunc(b.Rows, func(row schemas.Record) bool { return row.UpdatedAt < settled })
			settled = max(settled, b.Settled)
			if err := emit(b); err != nil {
				return err
			}
			return context.Cause(ctx) // a batch handed over while the caller stops may be dropped
		})
		err := rd.run(ctx)
		s.learnPages(rd.largest)
		if errors.Is(err, errZone) {
			s.Zone.notUTC.Store(true)
			continue
		}
		if err != nil {
			// What was read may not be published: the batch in hand is dropped when the caller stops.
			s.memory = newMemory()
		}
		return err
	}
}

// learnPages takes over how large pages were in this read, so that a service that grants fewer from now on is noticed.
func (s *Source) learnPages(largest map[int]int) {
	for size, n := range largest {
		s.granted[size] = n
	}
}

// read is one Read in hand.
type read struct {
	*Source
	reader *reader
	req    poller.Request
	emit   func(poller.Batch) error
	batch  poller.Batch
	// flushed is when the last batch was emitted.
	flushed time.Time
	// settled is what the next batch says; MinInstant: nothing. closed is what it may say once the window after it was read (zone.go).
	settled, closed schemas.Instant
	// spoiled is the first page that could not be published at all.
	spoiled error
	// largest is how many rows the largest page had that was not the last, by size asked for.
	largest map[int]int
	// why the resource settles no further.
	why []string
}

func (s *Source) begin(r poller.Request, emit func(poller.Batch) error) *read {
	s.widen()
	rd := &read{Source: s, req: r, emit: emit, flushed: time.Now(), settled: schemas.MinInstant, closed: schemas.MinInstant, largest: map[int]int{}}
	rd.reader = &reader{fetch: rd.fetch, size: pageSize, steady: steadyPasses, chance: hiddenChance, granted: s.granted, claimed: map[int]int{}, cuts: new(cuts),
		ascending: s.sorting == ascending, now: s.clock.Service,
		passed: s.Metrics.PagePasses.Inc, toTheEnd: func(*walk) {}, left: func(int) {}}
	return rd
}

func (rd *read) run(ctx context.Context) error {
	if err := rd.hearClock(ctx); err != nil {
		return err
	}
	switch rd.req.Kind {
	case poller.Full:
		return rd.full(ctx)
	case poller.Lookup:
		return rd.lookup(ctx)
	default:
		rd.reader.cuts, rd.reader.toTheEnd = &rd.cuts, rd.seeOrder
		return rd.pass(ctx)
	}
}

// hearClock makes sure that the service's clock was heard before anything is planned: which days are over depends on it.
func (rd *read) hearClock(ctx context.Context) error {
	if rd.clock.Heard() {
		return nil
	}
	today := dayOf(schemas.InstantOf(rd.clock.Now()))
	_, err := rd.anyRow(ctx, window{updated: span{today, future}, created: always})
	return err
}

// finish emits what is left, with done, and returns the error that the read ends with.
func (rd *read) finish(done *poller.Done) error {
	if rd.spoiled != nil {
		if err := rd.flush(nil); err != nil {
			return err
		}
		return rd.spoiled
	}
	return rd.flush(done)
}
