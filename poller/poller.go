package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Config is what a Poller works with. All fields are needed unless they say otherwise.
type Config struct {
	Resource *schemas.Resource
	Source   Source
	// SourceName is postgres or rest. It goes into the watermark and the header of dead letters.
	SourceName string
	Interval   time.Duration
	Overlap    time.Duration
	// Memory bounds, in bytes, what is remembered of rows that a poll may meet again; 0: nothing bounds it.
	Memory int
	// CatchesUp: where the source shows an older state of a row after a newer one, it lags, and a pass meets the
	// newer one again once it has caught up. Otherwise the older state may stand for good.
	CatchesUp bool
	// Start bounds every read from below; schemas.MinInstant: none.
	Start schemas.Instant

	// Watermark is what the takeover found, DeadLetters those in the topic (key to the row's hash).
	Watermark   watermark.Watermark
	DeadLetters map[string]uint64

	// Publish writes one transaction. It returns nil only when the transaction is known to be committed.
	Publish func(context.Context, watermark.Transaction) error
	// MaxRows and MaxRecordBytes bound the next transaction and the key and value of each record in it.
	MaxRows        func() int
	MaxRecordBytes int
	// EndOffsets are the data topic's, by partition: a replay notes them when it begins.
	EndOffsets func(context.Context) ([]int64, error)
	// Requests returns the requests for this resource after the one with the given id and uid, in order. Changed
	// returns a channel that is closed when the next request arrives, for whichever resource.
	Requests func(after int64, uid string) []watermark.Request
	Changed  func() <-chan struct{}
	// Waits says what pause the source has been asked for and has not got beyond; nil: none, as is a nil Waits.
	Waits func() *Wait
	// Renewed returns a channel that is closed when what sources log in with may be another.
	Renewed func() <-chan struct{}

	// Eager, for `run --once`: every pass is complete, every watermark is written at once, and nothing is swept.
	Eager bool
	Sweep SweepConfig
	// Now's times are compared with each other alone, which a step of the clock does not touch (time.Now). Clock
	// is the clock on the wall: what it says is shown and kept, and it may step at any time, by any amount.
	Now     func() time.Time
	Clock   func() schemas.Instant
	Metrics *metrics.Resource
	Log     *zap.Logger
	// Failures is the row that takeovers before this one began, which a good poll ends; nil: a new one.
	Failures *Failures
}

// The wait after the first poll that failed, and the longest. After a HoldError the longest comes at once.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
	// soonRetry is the wait where HoldError.Soon says so.
	soonRetry = 2 * time.Second
)

// Poller polls one resource from one takeover to the next.
type Poller struct {
	cfg       *Config
	board     *board
	publisher *publisher
	sweeper   *sweeper
	eraser    *eraser
	failures  *Failures
	polls     pollLog
	retry     backoff.BackOff
}

// New makes a poller that goes on where cfg.Watermark stands. Rows come by RestorePublished, before Run.
func New(cfg Config) *Poller {
	p := &Poller{cfg: &cfg, board: newBoard(&cfg), polls: pollLog{rows: cfg.Watermark.Rows},
		failures: cmp.Or(cfg.Failures, &Failures{Log: cfg.Log, Now: cfg.Now}),
		retry:    doubling(firstRetry, lastRetry)}
	p.publisher = newPublisher(&cfg, p.board)
	p.eraser = &eraser{cfg: &cfg, publisher: p.publisher, missing: map[int64]absence{}, sights: newSights()}
	p.sweeper = newSweeper(&cfg, p.board)
	cfg.Source = witness{cfg.Source, []*sights{p.eraser.sights, p.sweeper.sights}}
	if newSource := cfg.Sweep.Source; newSource != nil {
		cfg.Sweep.Source = func() Source { return witness{newSource(), []*sights{p.eraser.sights}} }
	}
	p.eraser.read = p.read
	p.sweeper.found(&p.publisher.mark)
	return p
}

// doubling is the waits first, 2*first, 4*first and so on, up to last.
func doubling(first, last time.Duration) backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = first, last, 2, 0
	return b
}

// RestorePublished takes a record of the data topic, in offset order within each partition, while a takeover
// rebuilds what was published lately.
func (p *Poller) RestorePublished(r watermark.Published) {
	p.publisher.dedup.restore(r, &p.publisher.mark)
}

// Close gives back what the poller remembers. Nothing may be called any more but Status.
func (p *Poller) Close() { p.publisher.dedup.rows.Close() }

// Status is safe to call from any goroutine.
func (p *Poller) Status() Status { return p.board.get() }

// Run polls until ctx is cancelled, a write fails, or a takeover is to go on (ErrTakeover). It returns the
// error, and the Poller is finished. It shows an error of the source, waits, and tries again.
//
// If ctx is cancelled with the cause ErrStopping, Run finishes the batch in hand, writes the watermark and
// returns nil. With any other cause it drops everything at once: the resource belongs to another instance.
func (p *Poller) Run(ctx context.Context) error {
	var cancel func()
	p.publisher.commits, cancel = outliving(ctx)
	defer cancel()
	p.cfg.Metrics.Owned.Set(1)
	defer p.cfg.Metrics.Owned.Set(0)
	defer p.sweeper.end()
	if p.board.get().Good == schemas.MinInstant {
		p.cfg.Metrics.Lag.Begin(p.cfg.Now()) // no pass is known: as far behind as we have been trying
	}
	for ctx.Err() == nil {
		if err := p.acceptRequests(); err != nil {
			return err
		}
		began, renewed := p.cfg.Now(), p.cfg.Renewed() // before the poll uses what there is
		next := began
		err := p.poll(ctx)
		if err == nil {
			next = p.ended(began, nil)
			err = p.sweep(ctx)
		}
		switch {
		case err == nil:
		case p.publisher.failed != nil, errors.Is(err, ErrTakeover):
			return err
		case ctx.Err() != nil, p.asked(): // it was interrupted
			continue
		default:
			next = p.ended(began, err)
			p.sweeper.pollFailed(&p.publisher.mark, err, p.failures.N)
			if err := p.publisher.tellFailure(err, p.failures.Since); err != nil {
				return err
			}
		}
		p.wait(ctx, renewed, next)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ErrStopping) {
		return cause
	}
	p.sweeper.end()
	p.publisher.mark.HandSweepOver()
	return p.publisher.commit(watermark.Transaction{}) // a successor begins there
}

// read reads the source. It reports the service's pauses before each batch and while the source is silent.
func (p *Poller) read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for batch, err := range ahead(ctx, p.cfg.Source, r) {
			if err == nil && p.cfg.Waits != nil {
				err = p.publisher.tellWait(p.cfg.Waits())
			}
			if err != nil {
				yield(Batch{}, err)
				return
			}
			if batch != nil && !yield(*batch, nil) {
				return
			}
		}
	}
}

// poll makes one pass, the second looks that are due, and a step of the erasures. Its error is one of the
// source, of a write, a *HoldError if a limit is reached, or ErrTakeover. If ctx ends, or a request comes in,
// it ends early with any error. A *LostError that changes nothing is a failure like others: a takeover would
// ask the source the same again.
func (p *Poller) poll(ctx context.Context) error {
	ctx, cancel := p.untilAsked(ctx)
	defer cancel()
	p.board.change(func(s *Status) { s.Doing, s.Since = "polling", p.cfg.Now() })
	if err := p.pass(ctx); err != nil {
		return err
	}
	if err := p.secondLook(ctx); err != nil {
		return err
	}
	return p.eraser.step(ctx)
}

// pass makes one pass. If what was read before does not count any more, a takeover goes on from there.
func (p *Poller) pass(ctx context.Context) error {
	r, err := p.publisher.nextPass(), p.publisher.otherSource()
	if err == nil {
		for batch, readErr := range p.read(ctx, r) {
			if err = readErr; err == nil {
				err = p.publisher.publish(batch, r.From)
			}
			if err != nil {
				break
			}
		}
	}
	if p.publisher.failed != nil {
		return err // the watermark in hand tells of rows that may not be in the topic
	}
	lost, _ := errors.AsType[*LostError](err)
	if lost != nil {
		p.sweeper.end()
		p.publisher.mark.HandSweepOver()
		if lost.Sweep {
			p.sweeper.begunAnew(&p.publisher.mark)
		}
		if !p.publisher.lose(lost) {
			return err
		}
	}
	if lost != nil || p.publisher.restoresMore() {
		if err := p.publisher.commit(watermark.Transaction{}); err != nil {
			return err
		}
		if lost != nil {
			return fmt.Errorf("%w: %w", ErrTakeover, lost)
		}
		return ErrTakeover
	}
	return err
}

// secondLook looks at the rows that have been held back for an overlap.
func (p *Poller) secondLook(ctx context.Context) error {
	due := p.publisher.heldBack.due(p.cfg.Now())
	if len(due) == 0 {
		return nil
	}
	r := p.publisher.lookup(slices.Collect(maps.Values(due)))
	for batch, err := range p.read(ctx, r) {
		if err == nil {
			err = p.publisher.publishOnly(batch, due)
		}
		if err != nil {
			return err
		}
	}
	p.publisher.heldBack.giveUp(due, p.cfg.Now())
	return nil
}

// sweep takes the sweep a step further, after a poll that went well. It returns what poll returns but for
// errors of a source: with those the sweeper deals, and polls go on.
func (p *Poller) sweep(ctx context.Context) error {
	mark := &p.publisher.mark
	if p.publisher.passes == 0 {
		return nil // polls come first: a new owner is up to date before it sweeps
	}
	found, begin := p.sweeper.step(ctx, mark)
	if begin {
		p.sweeper.begin(mark)
		if err := p.publisher.commit(watermark.Transaction{}); err != nil {
			p.sweeper.giveTurnBack()
			return err
		}
		p.sweeper.start(ctx, mark, p.publisher.deadLetters)
		return nil
	}
	if found == nil {
		return nil
	}
	p.board.sweeping("repairing")
	repairing, cancel := p.untilAsked(ctx)
	defer cancel()
	r := &repair{cfg: p.cfg, publisher: p.publisher, read: p.read, found: found, sights: p.sweeper.sights}
	again, err := r.run(repairing)
	switch {
	case err == nil && !again.IsZero():
		p.sweeper.resumeAt(again)
	case err == nil:
		p.sweeper.finish(mark)
	case p.publisher.failed != nil, repairing.Err() != nil:
		return err
	default:
		p.sweeper.fail(mark, err)
	}
	return nil
}

// ended logs, counts and shows how a poll ended, and says when the next one begins.
func (p *Poller) ended(began time.Time, err error) (next time.Time) {
	now := p.cfg.Now()
	p.cfg.Metrics.PollDuration.Observe(now.Sub(began).Seconds())
	p.failures.Note(err)
	outcome := "ok"
	hold, held := errors.AsType[*HoldError](err)
	switch {
	case held:
		outcome = "held"
	case err != nil:
		outcome = "failed"
	}
	p.cfg.Metrics.Polls(outcome).Inc()
	took := now.Sub(began)
	polls := p.polls.add(Poll{Began: p.cfg.Clock().Add(-took), Took: took, Outcome: outcome, began: began},
		p.publisher.mark.Rows)
	p.board.change(func(s *Status) {
		s.Doing, s.Since, s.Err, s.FailedSince, s.Polls = "waiting", now, err, p.failures.Since, polls
	})
	if err == nil {
		p.retry.Reset()
		return began.Add(p.cfg.Interval)
	}
	pause := max(p.cfg.Interval, p.retry.NextBackOff())
	switch {
	case held && hold.Soon:
		return now.Add(max(p.cfg.Interval, soonRetry))
	case held:
		return now.Add(lastRetry)
	}
	return now.Add(pause)
}

// wait waits until next, or until ctx is done, renewed is closed or a request for this resource comes in.
func (p *Poller) wait(ctx context.Context, renewed <-chan struct{}, next time.Time) {
	timer := time.NewTimer(next.Sub(p.cfg.Now()))
	defer timer.Stop()
	for {
		changed := p.cfg.Changed()
		if p.asked() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-renewed:
			return
		case <-changed:
		case <-timer.C:
			return
		}
	}
}

// asked says whether a request for this resource came in that was not accepted yet.
func (p *Poller) asked() bool { return len(p.requests()) > 0 }

// requests are those for this resource that were not accepted yet.
func (p *Poller) requests() []watermark.Request {
	return p.cfg.Requests(p.publisher.mark.Request, p.publisher.mark.RequestUID)
}

// ErrTakeover ends Run when what is known of the topic no longer suits the watermark: a reset was accepted,
// or the source says that what was read before does not count (then there is a *LostError beside it), or a
// takeover that lacked memory would restore more now. The watermark says so, and a takeover goes on with it.
var ErrTakeover = errors.New("a takeover goes on")

// resetAhead allows for the difference between the clock of whoever asks and ours.
const resetAhead = time.Minute

// acceptRequests applies the requests that came in since the last one accepted, in order, with one
// transaction. From then on the watermark carries them, and a successor goes on with them.
func (p *Poller) acceptRequests() error {
	asked := p.requests()
	if len(asked) == 0 {
		return nil
	}
	replay := false
	var accepted []watermark.Request
	for _, r := range asked {
		p.publisher.mark.Request, p.publisher.mark.RequestUID = r.ID, r.UID
		now := p.cfg.Clock()
		switch {
		case r.Kind == watermark.Sweeps:
			p.publisher.mark.Sweep = &watermark.Sweep{Request: r.ID, RequestUID: r.UID, At: now,
				ConfirmedDeletes: p.confirmed(r, now)}
			p.sweeper.hurry()
		case r.Kind == watermark.Erases:
			good := r
			good.ConfirmedDeletes = p.confirmed(r, now)
			p.publisher.mark.AcceptErase(good, now)
		case r.Kind != watermark.Reset:
			p.cfg.Log.Warn("request of an unknown kind, ignored", zapAsked(r), zap.String("kind", string(r.Kind)))
			continue
		case r.To == nil || *r.To > now.Add(resetAhead):
			p.cfg.Log.Warn("reset refused: it has no time, or one in the future", zapAsked(r))
			continue
		default:
			ends, err := p.cfg.EndOffsets(p.publisher.commits)
			if err != nil {
				return err
			}
			p.publisher.beginReplay(r, now, ends)
			replay = true
		}
		accepted = append(accepted, r)
	}
	if err := p.publisher.commit(watermark.Transaction{}); err != nil {
		return err
	}
	for _, r := range accepted { // from here on nobody accepts it once more
		p.cfg.Log.Info("request accepted", zapAsked(r), zap.String("kind", string(r.Kind)),
			zap.Int("confirmed_deletes", r.ConfirmedDeletes), zap.Int("rows", len(r.Rows)))
	}
	if replay {
		return ErrTakeover
	}
	return nil
}

// confirmedFor is how long after a request its author may be taken to know which rows were deleted.
const confirmedFor = time.Hour

// confirmed returns how many deletions r confirms. It returns 0 if the confirmation is not valid any more. A
// request may be done once more after the watermark is lost, and it may wait for weeks until an instance
// polls the resource. By then other rows are missing than those that its author looked at.
func (p *Poller) confirmed(r watermark.Request, now schemas.Instant) int {
	good := p.publisher.mark.AsOf != schemas.MinInstant && now.Sub(r.At) < confirmedFor
	if good || r.ConfirmedDeletes == 0 {
		return r.ConfirmedDeletes
	}
	p.cfg.Log.Warn("a request goes on without its --confirm-deletes: no pass is complete yet, or the request "+
		"is more than an hour old", zapAsked(r), zapInstant("asked", r.At))
	return 0
}

// zapAsked says which record of which topic a request is, and by whom, as its writer says.
func zapAsked(r watermark.Request) zap.Field {
	return zap.Inline(zapcore.ObjectMarshalerFunc(func(line zapcore.ObjectEncoder) error {
		line.AddString("topic", r.Topic)
		line.AddInt64("request", r.ID)
		line.AddString("by", r.By)
		return nil
	}))
}

func zapInstant(key string, i schemas.Instant) zap.Field { return zap.Stringer(key, i) }
func zapRequest(id int64) zap.Field                      { return zap.Int64("request", id) }
