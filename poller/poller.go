package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// The wait after the first poll that failed, and the longest. After a BlockedError the longest comes at
// once.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
	// restStep is how often a paused poller looks whether the pause is over.
	restStep = time.Second
	// soonRetry is the wait after a BlockedError with Soon.
	soonRetry = 2 * time.Second
)

// ErrTakeover ends Run when the state no longer suits the watermark. A reset was accepted, or earlier reads
// no longer count (then the error also wraps a *LostError), or a takeover that lacked memory would restore
// more now. The watermark has the change, and a takeover goes on with it.
var ErrTakeover = errors.New("a takeover goes on")

// Poller polls one resource from one takeover to the next.
type Poller struct {
	cfg     *Config
	board   *board
	state   *state
	writer  *writer
	sweeper *sweeper
	retry   backoff.BackOff
	nulls   map[string]bool // fields whose nulls have been logged (noteNulls)
}

// New makes a poller that goes on from the watermark of the session. RestorePublished has to give it the
// rows before Run.
func New(cfg Config) *Poller {
	cfg.Failures = cmp.Or(cfg.Failures, &Failures{Log: cfg.Log, Now: cfg.now})
	s, b := newState(&cfg, cfg.Clock()), &board{now: cfg.now}
	policyInForce(&cfg, &s.mark)
	w := &writer{cfg: &cfg, board: b, state: s, commits: context.Background(), told: s.mark.Trouble,
		results: s.mark.Results}
	w.show()
	sweeps := &sweeper{cfg: &cfg, board: b, state: s, writer: w, born: cfg.wall(),
		retry: doubling(firstSweepRetry, lastSweepRetry)}
	sweeps.found()
	return &Poller{cfg: &cfg, board: b, state: s, writer: w, sweeper: sweeps,
		retry: doubling(firstRetry, lastRetry), nulls: map[string]bool{}}
}

// doubling is the waits first, 2*first, 4*first and so on, up to last.
func doubling(first, last time.Duration) backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = first, last, 2, 0
	return b
}

// RestorePublished takes a record of the data topic, in offset order within each partition, while a takeover
// rebuilds dedup.
func (p *Poller) RestorePublished(r watermark.Published) {
	p.state.dedup.restore(r, &p.state.mark)
}

// Close frees the poller's memory. After it only Status may be called.
func (p *Poller) Close() {
	p.state.dedup.rows.Close()
	p.sweeper.newest = nil // its file closes, while Status still has the Poller
}

// Status is safe to call from any goroutine.
func (p *Poller) Status() Status {
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	return p.board.status
}

// Run polls until ctx is cancelled, a write fails, or a takeover is to go on (ErrTakeover). It returns the
// error, and the Poller is finished. It shows an error of the source, waits, and tries again.
//
// If ctx is cancelled with the cause ErrStopping, Run finishes the batch in hand, writes the watermark and
// returns nil. With any other cause it drops everything at once: the resource belongs to another instance.
// Either way a sweep in hand did not die: the caller calls HandSweepOver then.
func (p *Poller) Run(ctx context.Context) error {
	var cancel func()
	p.writer.commits, cancel = outliving(ctx)
	defer cancel()
	defer p.sweeper.end()
	for ctx.Err() == nil {
		if err := p.acceptRequests(); err != nil {
			return err
		}
		began, renewed := p.cfg.now(), p.cfg.Renewed() // before the poll uses the credentials
		rests, err := p.rests()
		if err != nil {
			return err
		}
		if rests {
			p.wait(ctx, renewed, began.Add(min(p.cfg.Interval, restStep)))
			continue
		}
		next := began
		err = p.poll(ctx)
		if err == nil {
			next = p.ended(began, nil)
			err = p.sweeper.step(ctx)
		}
		switch {
		case err == nil:
		case p.writer.failed != nil, errors.Is(err, ErrTakeover):
			return err
		case ctx.Err() != nil, len(p.requests()) > 0: // it was interrupted
			continue
		default:
			next = p.ended(began, err)
			if err := p.writer.reportFailure(err, p.cfg.Failures.Since); err != nil {
				return err
			}
		}
		p.wait(ctx, renewed, next)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ErrStopping) {
		return cause
	}
	p.sweeper.end()
	return p.writer.commit(watermark.Transaction{}) // a successor begins there
}

// handOverWithin bounds how long the group waits for the last word on a sweep.
const handOverWithin = 2 * time.Second

// HandSweepOver notes that a sweep in hand goes on with the next owner. It does so in the watermark that was
// committed last, because the state's own may cover a batch that was dropped.
func (p *Poller) HandSweepOver(ctx context.Context) {
	mark := p.cfg.Session.Watermark()
	if mark.Sweep == nil || mark.Sweep.Tried == nil {
		return
	}
	mark.HandSweepOver()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverWithin)
	defer cancel()
	if err := p.cfg.Session.Commit(ctx, watermark.Transaction{Watermark: mark}); err != nil {
		p.cfg.Log.Info("the sweep in hand could not be handed over: the next owner takes it for one that died",
			zap.Error(err))
	}
}

// poll makes one pass, and the second looks that are due. Its error is one of the
// source, of a write, a *BlockedError if a limit is reached, or ErrTakeover. If ctx ends, or a request comes
// in, it ends early with any error.
func (p *Poller) poll(ctx context.Context) error {
	ctx, cancel := p.untilAsked(ctx)
	defer cancel()
	p.cfg.Doing("polling")
	pass := p.state.nextPass(p.cfg.Clock())
	if p.sweeper.inHand == nil { // a sweep sees the rows of all reads
		pass.Find = p.state.dedup.find
	}
	err := p.state.noteSource()
	if err == nil {
		err = p.publish(p.read(ctx, pass))
	}
	if err != nil || p.state.restoresMore() {
		return p.beginAgain(err)
	}
	if due := p.state.deferred.due(p.cfg.now()); len(due) > 0 {
		looks := p.read(ctx, p.state.secondLook(due, p.cfg.Clock()))
		if err := p.publish(looks); err != nil {
			return err
		}
		p.state.deferred.giveUp(due, p.cfg.now())
	}
	return nil
}

// beginAgain returns ErrTakeover if a takeover has to go on after a pass that ended with err. If err is a
// *LostError, the watermark forgets the earlier readings. If the error leaves the watermark as it was, it is
// a failure like others: a takeover would ask the source the same again.
func (p *Poller) beginAgain(err error) error {
	lost, isLost := errors.AsType[*LostError](err)
	switch {
	case p.writer.failed != nil:
		return err // the watermark in hand covers rows that may not be in the topic
	case isLost:
		p.sweeper.end() // it does not die: the takeover that comes goes on with it
		if lost.Sweep {
			p.sweeper.begunAnew()
		}
		settled := p.state.mark.Settled
		if !p.state.lose(lost) {
			return err
		}
		p.cfg.Log.Warn("what was read before does not count any more: it is read again",
			zap.String("why", lost.Why), zapInstant("from", p.state.mark.Settled), zapInstant("settled", settled))
	case !p.state.restoresMore():
		return err
	default:
		p.sweeper.end()
	}
	if err := p.writer.commit(watermark.Transaction{}); err != nil {
		return err
	}
	if isLost {
		return fmt.Errorf("%w: %w", ErrTakeover, lost)
	}
	return ErrTakeover
}

// publish is the way of all rows from the source to the topic: it decides about each batch and commits the
// decision, in as many transactions as MaxRows asks for. Only the last transaction of a batch moves the
// watermark past it, unless makeRoom has to settle earlier for a full memory. If a limit is reached,
// publish returns a *BlockedError: the rows before that are committed, and the watermark stays before the
// batch.
func (p *Poller) publish(batches iter.Seq2[Batch, error]) error {
	for b, err := range batches {
		if err != nil {
			return err
		}
		p.cfg.Metrics.RowsRead.Add(float64(len(b.Rows) + len(b.Same) + len(b.Rejects)))
		p.noteNulls(b.Nulls)
		at, loading := p.cfg.Clock(), p.state.mark.AsOf == schemas.MinInstant
		for more := true; more; {
			var tx watermark.Transaction
			var blocked error
			tx, more, blocked = p.state.decide(&b, at, p.cfg.Session.MaxRows())
			if b.Done != nil && p.state.wanted == nil && !more && blocked == nil {
				p.writer.wait = nil // if the service asked for a pause, it is over
			}
			if err := cmp.Or(p.writer.commitIfDue(tx), blocked); err != nil {
				return err
			}
			if more { // a commit takes time, and the clock may step meanwhile
				next := p.cfg.Clock()
				b.Age, at = b.Age+next.Now.Sub(at.Now), next
			}
		}
		if s := &p.state.mark; loading && s.AsOf != schemas.MinInstant {
			p.cfg.Log.Info("first load finished", zap.Int64("rows", s.Rows), zapInstant("settled", s.Settled))
		}
	}
	return nil
}

// noteNulls counts the values that were read as null, and logs each field once.
func (p *Poller) noteNulls(rows map[string]int) {
	for field, n := range rows {
		p.cfg.Metrics.ReadAsNull(field).Add(float64(n))
		if !p.nulls[field] {
			p.nulls[field] = true
			p.cfg.Log.Info("values that are NaN, infinite, false or an empty time are read as null",
				zap.String("field", field), zap.Int("rows", n))
		}
	}
}

// ended logs, counts and shows how a poll ended, and says when the next one begins.
func (p *Poller) ended(began time.Time, err error) time.Time {
	now := p.cfg.now()
	p.cfg.Metrics.PollDuration.Observe(now.Sub(began).Seconds())
	p.cfg.Failures.Note(err)
	outcome, doing, next := "ok", "waiting to try again", began.Add(p.cfg.Interval)
	switch fault, blocked := errors.AsType[*BlockedError](err); {
	case err == nil:
		p.retry.Reset()
		doing = "waiting for the next poll"
	case blocked && fault.Soon:
		outcome, next = "blocked", now.Add(max(p.cfg.Interval, soonRetry))
	case blocked:
		outcome, next = "blocked", now.Add(lastRetry)
	default:
		outcome, next = "failed", now.Add(max(p.cfg.Interval, p.retry.NextBackOff()))
	}
	p.cfg.Metrics.Polls(outcome).Inc()
	p.cfg.Doing(doing)
	p.board.change(func(s *Status) { s.Err, s.FailedSince = err, p.cfg.Failures.Since })
	return next
}

// wait waits until next, or until ctx is done, renewed is closed or a request for this resource comes in.
func (p *Poller) wait(ctx context.Context, renewed <-chan struct{}, next time.Time) {
	ctx, cancel := p.untilAsked(ctx)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-renewed:
	case <-time.After(next.Sub(p.cfg.now())):
	}
}
