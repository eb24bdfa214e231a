package poller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// SweepConfig is what a Poller sweeps with. The zero value: it never sweeps.
type SweepConfig struct {
	// Interval is from one sweep to the next; 0: only on request.
	Interval time.Duration
	// Tombstone: what the source no longer has is taken out of the topic; otherwise it is only reported.
	Tombstone bool
	// Source makes a source for the readings of one sweep that go on beside the polls.
	Source func() Source
	// Topic reads the data topic, as compare.Config says.
	Topic func(ctx context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error)
	// Turn, if not nil, is shared with other pollers: who sweeps has a place in it. It bounds memory and what is asked of the service at once.
	Turn chan struct{}
	// MaxSuspects bounds what one sweep repairs; 0: as package compare has it.
	MaxSuspects int
}

// sweep is a sweep in hand: the comparison of the whole topic with the whole source (package compare), and the repair of what differs. It finds what
// polls cannot: rows that came later than overlap, updates that did not touch updated_at, rows that are gone, and what others did to the topic.
//
//	reading  topic and source in full, in a goroutine and with a source of its own, while polls go on
//	a poll   that begins after it: what was under way is delivered
//	looking  again at what differed, in the same way
//	a poll
//	mending  in the poller's goroutine: one more look, and the repair of what differs still (mend.go)
//
// The last look and the repair are in the poller's goroutine because nothing else writes the topic (whoever did, by the same transactional id, has fenced
// us, and the repair is refused). So between that look and the repair no newer version of a row can have been published, which the repair would put an
// older one over. The first look is not, because over REST it may take minutes.
type sweep struct {
	cmp *compare.Comparison
	// request is the one that it carries out, -1: scheduled.
	request int64
	began   schemas.Instant
	step    step
	// working gives the error of the goroutine at work; nil: there is none. cancel ends it.
	working chan error
	cancel  context.CancelFunc

	// met are the dead letters whose row was met since it began, by a poll too, as one that cannot be published. well are the rows that had one when it began,
	// with the days on which they were shown as good ones. dead are the rows that it met itself and that cannot be published.
	met  map[string]bool
	well map[int64]Suspect
	dead []schemas.Reject
	// uncertain: there were more of those than are kept.
	uncertain bool
	// fresh are those that the last look met.
	fresh []schemas.Reject
	// everywhere: the last look looked also for rows of which no day is known.
	everywhere, asked bool

	// Older states are waited for (mend.go): due is when to look next, until when that ends.
	due, until time.Time
	result     watermark.Swept
}

type step int

const (
	reading step = iota
	looking
	mending
)

// maxDead bounds the rows kept that cannot be published. With more, something bigger is wrong, and the poller's own reads say so.
const maxDead = 10_000

// The wait after the first sweep that failed, and the longest.
const (
	firstSweepRetry = 5 * time.Second
	lastSweepRetry  = 30 * time.Minute
)

// sweepOn takes the sweep a step further, after a poll that went well. It returns what poll returns but for errors of a source: what the sweep fails
// with is shown and tried again later, and polls go on.
func (p *Poller) sweepOn(ctx context.Context, stop <-chan struct{}) error {
	s := p.sweep
	if s == nil {
		if p.sweepDue() {
			p.beginSweep(ctx, stop)
		}
		return nil
	}
	if s.working != nil {
		select {
		case err := <-s.working:
			s.working = nil
			if err != nil {
				p.sweepFailed(err)
				return nil
			}
		default:
			return nil
		}
		if s.step++; s.cmp.Suspects() > 0 || len(s.dead) > 0 {
			return nil // the next poll began later than what was read
		}
		s.step = mending // there is nothing to look at
	}
	if s.step == looking {
		p.showSweep("looking again")
		p.work(ctx, s.cmp.Look)
		return nil
	}
	if p.Now().Before(s.due) {
		return nil
	}
	return p.mend(ctx, stop)
}

// work does a part of the sweep beside the polls. One row that it cannot bear must not take the process down.
func (p *Poller) work(ctx context.Context, part func(context.Context) error) {
	s := p.sweep
	ctx, s.cancel = context.WithCancel(ctx)
	s.working = make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("a defect in storestream: the sweep panicked: %v\n%s", v, debug.Stack())
			}
			s.working <- err
		}()
		err = part(ctx)
	}()
}

// endSweep waits until nothing of the sweep runs any more.
func (p *Poller) endSweep() {
	s := p.sweep
	if s == nil {
		return
	}
	s.cancel()
	if s.working != nil {
		p.Log.Debug("sweep cut short", zap.Error(<-s.working))
	}
	if p.Sweep.Turn != nil {
		<-p.Sweep.Turn
	}
	p.sweep = nil
	p.showSweep("")
}

// patientPolls is how many polls in a row may fail before a sweep that waits for one makes room for others.
const patientPolls = 5

// sweepStalled hears of polls that fail, n in a row.
func (p *Poller) sweepStalled(err error, n int) {
	if p.sweep != nil && n >= patientPolls {
		p.sweepFailed(fmt.Errorf("polls fail: %w", err))
	}
}

// sweepFailed gives the sweep up for now. It is asked for still, or due still, and begins anew.
func (p *Poller) sweepFailed(err error) {
	p.endSweep()
	wait := max(p.Interval, min(firstSweepRetry<<min(p.sweepFailures, 20), lastSweepRetry))
	p.sweepFailures++
	p.sweepNext = p.Now().Add(wait)
	p.Log.Warn("sweep failed, it is tried again", zap.Error(err), zap.Duration("in", wait), zap.Int("failures", p.sweepFailures))
	p.show(func(s *Status) { s.Sweep.Err, s.Sweep.Next = err, p.sweepNext })
}

func (p *Poller) showSweep(doing string) {
	p.show(func(s *Status) {
		if s.Sweep.Doing != doing {
			s.Sweep = SweepStatus{Doing: doing, Since: p.Now(), Rows: s.Sweep.Rows, Of: s.Sweep.Of}
		}
		if doing == "" {
			s.Sweep = SweepStatus{}
		}
	})
}

// until is ctx, which ends also when stop is closed.
func until(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-stop:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}

// interrupted says whether err is the end of a look that is to be taken again, or is not to be taken any more.
func interrupted(ctx context.Context, stop <-chan struct{}, err error) bool {
	return ctx.Err() != nil || isClosed(stop) || errors.Is(err, errAsked) || errors.Is(err, errStopped)
}
