package poller

import (
	"errors"
	"time"

	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/watermark"
	"go.uber.org/zap"
)

// Status is what a person may know of a poller.
type Status struct {
	// Doing says what it does now ("polling", "waiting", ...), Since when.
	Doing string
	Since time.Time
	// Watermark is what is true now; a transaction says so soon.
	Watermark watermark.Watermark
	// Good is the start of the last pass that met every change before it: what lag is counted from. MinInstant: none yet.
	Good schemas.Instant
	// Complete counts the complete passes of this poller.
	Complete int
	// Held says why the resource does not settle further, "" if it does.
	Held string
	// Err is the failure that it is in, nil if none; FailedSince when that began.
	Err         error
	FailedSince time.Time
	// DeadLetters, SeenRows and SeenBytes are what it holds.
	DeadLetters, SeenRows, SeenBytes int
	// Replaying is true while a reset is being worked off.
	Replaying bool
}

// Status is safe to call from any goroutine.
func (p *Poller) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// show changes the status, and puts in what can be read off the poller.
func (p *Poller) show(change func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.status)
	s := &p.status
	s.Watermark, s.Replaying = p.mark, p.mark.Replay != nil
	s.DeadLetters, s.SeenRows, s.SeenBytes = len(p.letters), p.seen.n, p.seen.bytes
	if p.mark.Settled != schemas.MinInstant {
		p.Metrics.Settled.Set(float64(p.mark.Settled) / 1e6)
	}
	if s.Good != schemas.MinInstant {
		p.Metrics.Lag.Since(s.Good.Time())
	}
}

// observe logs, counts and shows how a poll ended.
func (p *Poller) observe(began time.Time, err error, f *failures) {
	p.Metrics.PollDuration.Observe(p.Now().Sub(began).Seconds())
	var hold *HoldError
	switch {
	case err == nil:
		p.Metrics.Polls("ok").Inc()
	case errors.As(err, &hold):
		p.Metrics.Polls("held").Inc()
	default:
		p.Metrics.Polls("failed").Inc()
	}
	f.note(err)
	p.show(func(s *Status) {
		s.Doing, s.Since, s.Err = "waiting", p.Now(), err
		switch {
		case err == nil:
			s.FailedSince = time.Time{}
		case s.FailedSince.IsZero():
			s.FailedSince = p.Now()
		}
	})
}

// failures logs a failure when it begins, then once a minute with a count, and its end: a service that is down all night leaves some
// hundred lines, not a hundred thousand.
type failures struct {
	log    *zap.Logger
	now    func() time.Time
	n      int // in a row
	since  time.Time
	logged time.Time
	quiet  int // since the last line
}

const repeatEvery = time.Minute

func (f *failures) note(err error) {
	now := f.now()
	if err == nil {
		if f.n > 0 {
			f.log.Info("polling again", zap.Int("failures", f.n), zap.Duration("after", now.Sub(f.since)))
		}
		f.n, f.quiet, f.logged = 0, 0, time.Time{}
		return
	}
	if f.n++; f.n == 1 {
		f.since = now
	}
	f.quiet++
	if now.Sub(f.logged) >= repeatEvery {
		f.log.Error("poll failed", zap.Error(err), zap.Int("failures", f.n), zap.Int("since_last_line", f.quiet), zap.Time("since", f.since))
		f.quiet, f.logged = 0, now
	}
}
