package postgres

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// allowedStep is the largest step of the server's clock that is ignored: overlap has room for it. Clocks run
// at different speeds, so each driftPer of time allows as much again.
const (
	allowedStep = time.Second
	driftPer    = 50 * time.Second
)

// steps detects that the clock that stamps rows was set back or forward. It compares the time that has
// passed on it with the time on our clock, which is monotonic. It does not detect a step back and a step
// forward between two readings.
type steps struct {
	allowed time.Duration // per step; 0 for a clock that runs exactly as ours does
	// began is the clock of a primary at the beginning of the last pass. replayed is the last clock of a
	// standby, which does not move while the primary commits nothing. So time that passes on it proves nothing.
	began, replayed *clock
	// forward is a time of our clock. Until then a transaction may stamp before a step forward and write after
	// it.
	forward time.Time
}

// before returns the clock to compare c with, or nil if there is none yet.
func (s *steps) before(c *clock) *clock {
	if c.standby {
		return s.replayed
	}
	return s.began
}

// back returns the lowest time that the clock may have gone to, if it was set back since the last pass began,
// or MaxInstant.
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

// sure returns c's time, but no later than the clock at the beginning of the pass plus the time passed
// since. The rest may be a step forward, and a transaction that stamped before the step may write after c.
func (s *steps) sure(c *clock) schemas.Instant {
	if before := s.began; before != nil && !c.standby {
		return min(c.time, before.time.Add(c.asked.Sub(before.answered)))
	}
	return c.time
}

// follow records c. begins is set if c is the clock at the beginning of a pass.
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

// unsettled returns true if, at c, a transaction may have stamped before a step forward and not written yet.
func (s *steps) unsettled(c *clock) bool { return !c.standby && c.asked.Before(s.forward) }

// tolerance returns by how much the time passed on both clocks may differ.
func (s *steps) tolerance(passed time.Duration) time.Duration {
	return s.allowed + time.Duration(float64(s.allowed)*float64(passed)/float64(driftPer))
}
