package postgres

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// allowedStep is by how much the server's clock may be set back or forward unnoticed: overlap has room for
// it. For each driftPer of time it may be as much again, because no two clocks run alike.
const (
	allowedStep = time.Second
	driftPer    = 50 * time.Second
)

// steps says when the clock that stamps rows was set back or forward. It compares what has passed on it with
// what has passed on ours, which is monotonic. A clock that goes back and forth between two looks at it is
// not found out.
type steps struct {
	allowed time.Duration // per step; 0 for a clock that runs exactly as ours does
	// began is the clock of a primary at the beginning of the last pass, replayed the last one of a standby.
	// That one stands still while the primary commits nothing: it can be compared with, and not counted on.
	began, replayed *clock
	// forward is until when, by our clock, there may be transactions that have stamped before the clock was set
	// forward, and have not written.
	forward time.Time
}

// before is the clock that c is compared with; nil: there is none yet.
func (s *steps) before(c *clock) *clock {
	if c.standby {
		return s.replayed
	}
	return s.began
}

// back says how low the clock may have gone, if it was set back since the last pass began; MaxInstant: it was
// not.
func (s *steps) back(c *clock) schemas.Instant {
	low := schemas.MaxInstant
	if before := s.began; before != nil && !c.standby {
		passed := c.asked.Sub(before.answered) // at least
		if c.time.Add(s.tolerance(passed)) < before.time.Add(passed) {
			low = c.time.Add(before.asked.Sub(c.answered))
		}
	}
	if before := s.replayed; before != nil && c.time.Add(s.allowed) < before.time {
		low = min(low, c.time.Add(before.asked.Sub(c.answered)))
	}
	return low
}

// sure is c's time, but no later than the clock at the beginning of the pass and what has passed since. What
// it went forward beyond that may be a step, and what stamped before the step may write after c.
func (s *steps) sure(c *clock) schemas.Instant {
	if before := s.began; before != nil && !c.standby {
		return min(c.time, before.time.Add(c.asked.Sub(before.answered)))
	}
	return c.time
}

// follow notes c. It is the clock at the beginning of a pass if begins says so.
func (s *steps) follow(c *clock, overlap time.Duration, begins bool) {
	if c.standby {
		s.replayed = c
		return
	}
	if before := s.began; before != nil {
		passed := c.answered.Sub(before.asked) // at most
		if c.time > before.time.Add(passed+s.tolerance(passed)) {
			s.forward = c.answered.Add(overlap)
		}
	}
	if begins {
		s.began = c
	}
}

// unsettled says whether, when c was read, there may still have been transactions that stamped before the
// clock was set forward and had not written.
func (s *steps) unsettled(c *clock) bool { return !c.standby && c.asked.Before(s.forward) }

// tolerance is by how much the clocks may differ in what has passed on both.
func (s *steps) tolerance(passed time.Duration) time.Duration {
	return s.allowed + time.Duration(float64(s.allowed)*float64(passed)/float64(driftPer))
}
