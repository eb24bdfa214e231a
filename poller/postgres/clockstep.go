package postgres

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// steppedBack returns the lowest time that the clock may have gone to, if it was set back since the last pass
// began, or MaxInstant.
func (hs *horizons) steppedBack(c *clock) schemas.Instant {
	low := schemas.MaxInstant
	if before := hs.began; before != nil && !c.standby {
		passed := c.asked.Sub(before.answered) // at least
		if c.time.Add(hs.tolerance(passed)) < before.time.Add(passed) {
			low = c.time.Add(before.asked.Sub(c.answered))
		}
	}
	if before := hs.replayed; before != nil && c.time.Add(hs.allowed) < before.time {
		low = min(low, c.time.Add(before.asked.Sub(c.answered)))
	}
	return low
}

// sure returns c's time, but no later than the clock at the beginning of the pass plus the time passed
// since. The rest may be a step forward, and a transaction that stamped before the step may write after c.
func (hs *horizons) sure(c *clock) schemas.Instant {
	if before := hs.began; before != nil && !c.standby {
		return min(c.time, before.time.Add(c.asked.Sub(before.answered)))
	}
	return c.time
}

// follow records c. begins is set if c is the clock at the beginning of a pass.
func (hs *horizons) follow(c *clock, begins bool) {
	if c.standby {
		hs.replayed = c
		return
	}
	if before := hs.began; before != nil {
		passed := c.answered.Sub(before.asked) // at most
		if c.time > before.time.Add(passed+hs.tolerance(passed)) {
			hs.forward = c.answered.Add(hs.overlap)
		}
	}
	if begins {
		hs.began = c
	}
}

// unsettled returns true if, at c, a transaction may have stamped before a step forward and not written yet.
func (hs *horizons) unsettled(c *clock) bool { return !c.standby && c.asked.Before(hs.forward) }

// tolerance returns by how much the time passed on both clocks may differ.
func (hs *horizons) tolerance(passed time.Duration) time.Duration {
	return hs.allowed + time.Duration(float64(hs.allowed)*float64(passed)/float64(driftPer))
}
