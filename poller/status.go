package poller

import (
	"errors"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
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
	// DeadLetters, DedupBytes are what it holds: rows in the dead-letter topic, and memory.
	DeadLetters, DedupBytes int
	// Replaying is true while a reset is being worked off.
	Replaying bool
	// Sweep is the sweep in hand. What the last one came to is in Watermark (LastSweep, Swept).
	Sweep SweepStatus
}

// SweepStatus is a sweep in hand, or one that failed and is tried again.
type SweepStatus struct {
	// Doing says what it does now ("reading", "looking again", ...), "" if there is none; Since when.
	Doing string
	Since time.Time
	// Rows of the source have been read so far, of about Of.
	Rows, Of int
	// Err is what the last try failed with, nil if nothing is wrong; Next is when it is tried again.
	Err  error
	Next time.Time
}

// Status is safe to call from any goroutine.
func (p *Poller) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// show changes the status, and puts in what can be read off the poller. The gauges stay when the poller ends: until another instance is known
// to have the resource, nobody else tells them.
func (p *Poller) show(change func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.status)
	s := &p.status
	s.Watermark, s.Replaying = p.mark, p.mark.Replay != nil
	s.DeadLetters, s.DedupBytes = len(p.letters), p.seen.Bytes()
	p.Metrics.LettersHeld.Set(float64(len(p.letters)))
	held := 0.0
	if s.Held != "" {
		held = 1
	}
	p.Metrics.SettlingHeld.Set(held)
	if p.mark.Settled != schemas.MinInstant {
		p.Metrics.Settled.Set(float64(p.mark.Settled) / 1e6)
	}
	if s.Good != schemas.MinInstant {
		p.Metrics.Lag.Since(s.Good.Time())
	}
}

// observe logs, counts and shows how a poll ended.
func (p *Poller) observe(began time.Time, err error, f *Failures) {
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
	f.Note(err)
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
