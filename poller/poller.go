package poller

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// Config is what a Poller works with. All fields are needed unless they say otherwise.
type Config struct {
	Resource *schemas.Resource
	Source   Source
	// SourceName goes into the header of dead letters: postgres or rest.
	SourceName string
	Interval   time.Duration
	Overlap    time.Duration
	// Start bounds every read from below; schemas.MinInstant: none.
	Start schemas.Instant

	// Watermark, DeadLetters: what the takeover found (letters: key to hash of its row). Rows come by RestorePublished, before Run.
	Watermark   watermark.Watermark
	DeadLetters map[string]uint64

	// Publish writes one transaction and returns nil only when it is known to be committed.
	Publish func(context.Context, watermark.Transaction) error
	// MaxRows and MaxRecordBytes bound the next transaction and each record in it (key and value, without the batch around them).
	MaxRows        func() int
	MaxRecordBytes int
	// EndOffsets are the data topic's, by partition: what a replay notes at its start.
	EndOffsets func(context.Context) ([]int64, error)
	// Requests returns the requests for this resource after the one with the given id, in order. Changed's channel is closed when the next
	// request arrives, for whichever resource.
	Requests func(after int64) []watermark.Request
	Changed  func() <-chan struct{}

	// Eager: `run --once`. Every pass is complete and every watermark is written at once.
	Eager bool
	// SeenBytes caps what is kept to recognise rows; 0: DefaultSeenBytes.
	SeenBytes int
	Sweep     SweepConfig
	Now       func() time.Time
	Metrics   *metrics.Resource
	Log       *zap.Logger
}

const (
	// quietWrite is how often a watermark is written that says nothing new but the time. Kafka keeps all of them until a segment
	// rolls: at one a second a takeover would read half a gigabyte after some months.
	quietWrite = 10 * time.Second
	// The wait after the first failure, and the longest; HoldErrors wait the longest at once.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Poller polls one resource for as long as this instance owns it.
type Poller struct {
	Config
	// mark is what is true now; written is when a transaction last said so.
	mark    watermark.Watermark
	written time.Time
	// clock is what the clock said when it was read for the transaction in hand.
	clock schemas.Instant

	seen    seen
	ahead   ahead
	older   older
	letters map[string]uint64

	// sweep is the one in hand, nil if none; sweepNext is when to try again after failures.
	sweep         *sweep
	sweepFailures int
	sweepNext     time.Time
	born          time.Time

	mu     sync.Mutex
	status Status
}

// New is a poller that goes on where cfg.Watermark stands.
func New(cfg Config) *Poller {
	p := &Poller{Config: cfg, mark: cfg.Watermark, seen: newSeen(cfg.SeenBytes), older: older{}, letters: map[string]uint64{}, born: cfg.Now()}
	maps.Copy(p.letters, cfg.DeadLetters)
	p.status = Status{Doing: "starting", Since: cfg.Now(), Good: cfg.Watermark.AsOf}
	p.show(func(*Status) {})
	return p
}

// RestorePublished takes a record of the data topic, in offset order within each partition, while a takeover rebuilds seen.
func (p *Poller) RestorePublished(r watermark.Published) {
	if r.Tombstone {
		p.seen.Remove(r.ID)
		return
	}
	old := r.Old && p.mark.Replay != nil && r.UpdatedAt.Millis() >= p.mark.Replay.From.Millis()
	if r.UpdatedAt.Millis() < p.mark.Settled.Millis() {
		// What a read from settled on cannot meet need not be known; but it ends what an earlier record of this row said.
		p.seen.Remove(r.ID)
		return
	}
	p.seen.Put(r.ID, rowset.Version{Millis: r.UpdatedAt.Millis(), Hash: r.Hash, Marked: old})
	p.ahead.note(r.Time, r.UpdatedAt)
}

// Run polls until ctx is done (drop everything: ownership is gone), stop is closed (finish the batch in hand, return nil) or a write
// fails (its error; the Poller is finished). What goes wrong with the source is shown, waited out and tried again.
func (p *Poller) Run(ctx context.Context, stop <-chan struct{}) error {
	p.Metrics.Owned.Set(1)
	defer p.Metrics.Owned.Set(0)
	defer p.endSweep()
	if p.mark.AsOf == schemas.MinInstant {
		p.Metrics.Lag.Begin(p.Now()) // no pass yet: as far behind as we have been trying
	}
	failures := Failures{Log: p.Log, Now: p.Now}
	for {
		if err := p.acceptRequests(ctx); err != nil {
			return err
		}
		began := p.Now()
		err := p.poll(ctx, stop)
		if err == nil {
			p.observe(began, nil, &failures)
			err = p.sweepOn(ctx, stop)
		}
		var write *writeError
		switch {
		case errors.As(err, &write):
			return write.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isClosed(stop):
			return p.flush(ctx)
		case errors.Is(err, errAsked):
			continue
		case err != nil:
			p.observe(began, err, &failures)
			p.sweepStalled(err, failures.N)
		}
		if !p.wait(ctx, stop, p.pause(began, err, failures.N)) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return p.flush(ctx)
		}
	}
}

// writeError marks an error of Publish on its way through a source's emit.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// errAsked ends a pass early because a request came in.
var errAsked = errors.New("a request came in")

// pause is how long to wait after a poll that began at began and ended with err, the n-th failure in a row.
func (p *Poller) pause(began time.Time, err error, n int) time.Duration {
	var hold *HoldError
	switch {
	case err == nil:
		return max(0, p.Interval-p.Now().Sub(began))
	case errors.As(err, &hold):
		return lastRetry
	default:
		return max(p.Interval, min(firstRetry<<min(n-1, 10), lastRetry))
	}
}

// wait returns false when ctx is done or stop is closed; a request for this resource ends it early.
func (p *Poller) wait(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		changed := p.Changed()
		if len(p.Requests(p.mark.Request)) > 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-stop:
			return false
		case <-changed:
		case <-timer.C:
			return true
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
