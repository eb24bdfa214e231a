package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/schemas"
)

// horizon is a moment of the server: transactions with an id of next or more made their first write at time
// or later.
type horizon struct {
	time schemas.Instant
	next uint64
	// since is the time at which next was first read. time moves on while no transaction begins.
	since schemas.Instant
}

// allowedStep is the largest step of the server's clock that is ignored: overlap has room for it. Clocks run
// at different speeds, so each driftPer of time allows as much again.
const (
	allowedStep = time.Second
	driftPer    = 50 * time.Second
)

// maxHorizons bounds memory. With one horizon a second beside a transaction that is open for hours, the list
// is thinned. Settled then stops a little earlier than it could, never later.
const maxHorizons = 1024

// horizons applies doc.go's rule of settling. It is valid for one history of the database. Its zero value
// with an overlap is ready for use.
type horizons struct {
	overlap time.Duration
	// recorded is in order: neither time nor next falls.
	recorded []horizon
	// back is set if the clock was set back since the last consumeBack. It may have gone as low as lowest.
	back   bool
	lowest schemas.Instant

	// The others detect that the clock that stamps rows was set back or forward. They compare the time that has
	// passed on it with the time on our clock, which is monotonic. They do not detect a step back and a step
	// forward between two readings.

	allowed time.Duration // per step. Zero is for a clock that runs exactly as ours does
	// began is the clock of a primary at the beginning of the last pass. replayed is the last clock of a
	// standby, which does not move while the primary commits nothing. So time that passes on it proves nothing.
	began, replayed *clock
	// forward is a time of our clock. Until then a transaction may stamp before a step forward and write after
	// it.
	forward time.Time
}

// observe records the moment of c. begins is set for the first clock of a pass.
//
// If the clock was set back, a transaction with an id past a horizon makes its first write at the horizon's
// time or later, or after the step: so no earlier than the lowest time of the clock. The horizons hold with
// that time. If the clock was set forward, a transaction that stamped before the step may write after it, and
// an overlap on the clock is not an overlap in time. So no horizon is recorded until all such transactions
// have written.
//
// A step is the time that passed on the server's clock and not on ours. The time of our clock between two of
// the server's is known within the time that they took to answer.
func (hs *horizons) observe(c *clock, begins bool) {
	if !c.known {
		return
	}
	if before := hs.replayed; before != nil && c.time.Add(hs.allowed) < before.time {
		hs.wentBack(c.time.Add(before.asked.Sub(c.answered)))
	}
	if c.standby {
		hs.replayed = c
		hs.record(horizon{time: c.time, next: c.next})
		return
	}
	sure := c.time
	if before := hs.began; before != nil {
		least, most := c.asked.Sub(before.answered), c.answered.Sub(before.asked)
		sure = min(sure, before.time.Add(least)) // the rest may be a step forward
		switch {
		case c.time.Add(hs.tolerance(least)) < before.time.Add(least):
			hs.wentBack(c.time.Add(-most))
		case c.time > before.time.Add(most+hs.tolerance(most)):
			hs.forward = c.answered.Add(hs.overlap)
		}
	}
	if begins {
		hs.began = c
	}
	hs.lower(c.time)
	if !hs.unsettled(c) {
		hs.record(horizon{time: sure, next: c.next})
	}
}

// tolerance returns by how much the time passed on both clocks may differ.
func (hs *horizons) tolerance(passed time.Duration) time.Duration {
	return hs.allowed + time.Duration(float64(hs.allowed)*float64(passed)/float64(driftPer))
}

// unsettled returns true if, at c, a transaction may have stamped before a step forward and not written yet.
func (hs *horizons) unsettled(c *clock) bool { return !c.standby && c.asked.Before(hs.forward) }

// wentBack records that the clock was set back, maybe as low as low.
func (hs *horizons) wentBack(low schemas.Instant) {
	if !hs.back || low < hs.lowest {
		hs.back, hs.lowest = true, low
	}
	hs.lower(low)
}

// consumeBack returns from where on rows may have appeared because the clock was set back since the last
// call, or MaxInstant.
func (hs *horizons) consumeBack() schemas.Instant {
	if !hs.back {
		return schemas.MaxInstant
	}
	hs.back = false
	return hs.lowest.Add(-hs.overlap)
}

// lower makes no horizon later than to.
func (hs *horizons) lower(to schemas.Instant) {
	for i := len(hs.recorded) - 1; i >= 0 && hs.recorded[i].time > to; i-- {
		hs.recorded[i].time, hs.recorded[i].since = to, min(hs.recorded[i].since, to)
	}
}

// record adds a horizon. It ignores one that is behind the last one: it comes from a standby, whose clock is
// the time of its last replayed commit.
func (hs *horizons) record(h horizon) {
	if n := len(hs.recorded); n > 0 {
		last := &hs.recorded[n-1]
		if h.time < last.time || h.next < last.next {
			return
		}
		if h.next == last.next {
			last.time = h.time // no transaction has begun since, so the later time holds
			return
		}
	}
	if len(hs.recorded) >= maxHorizons { // thin: every second goes, but not the last
		for i := 1; i < len(hs.recorded)-1; i++ {
			hs.recorded = slices.Delete(hs.recorded, i, i+1)
		}
	}
	h.since = h.time
	hs.recorded = append(hs.recorded, h)
}

// reach returns the instant up to which a range may settle, if every part of it was read under a snapshot
// with this xmin or a larger one. No row with an earlier updated_at can appear in it any more. MinInstant
// means that the range may not settle.
func (hs *horizons) reach(xmin uint64) schemas.Instant {
	if h := hs.best(xmin); h != nil {
		return h.time.Add(-hs.overlap)
	}
	return schemas.MinInstant
}

// best returns the latest horizon that counts for such a snapshot, or nil: all transactions before it are
// over there.
func (hs *horizons) best(xmin uint64) *horizon {
	if i := hs.countUpTo(xmin); i > 0 {
		return &hs.recorded[i-1]
	}
	return nil
}

// delays returns why settled does not move for such snapshots, or "". c is the first of their clocks.
func (hs *horizons) delays(c *clock, xmin uint64) string {
	i := hs.countUpTo(xmin)
	switch {
	case !c.known:
		return "the database is a standby that has replayed no transaction since it started: " +
			"it has no clock to settle by"
	case hs.unsettled(c):
		return "the database's clock was set forward: settled waits for an overlap, until all transactions that " +
			"may have stamped before have written"
	case i == len(hs.recorded), c.time.Sub(hs.recorded[i].since) <= hs.overlap:
		return ""
	}
	when := "about" // a transaction is open for longer than overlap
	if i == 0 {     // it is older than all horizons of this process
		when = "before"
	}
	return fmt.Sprintf("a transaction (id %d) is open since %s %s and may still bring rows from "+
		"before: settled waits for its end", xmin, when, hs.recorded[i].since)
}

// countUpTo returns how many horizons count for a snapshot with this xmin. They are the first ones.
func (hs *horizons) countUpTo(xmin uint64) int {
	i, _ := slices.BinarySearchFunc(hs.recorded, xmin, func(h horizon, xmin uint64) int {
		if h.next <= xmin {
			return -1
		}
		return 1
	})
	return i
}

// prune drops the horizons that a later one has replaced for snapshots with this xmin, and so for all later
// snapshots.
func (hs *horizons) prune(xmin uint64) {
	if i := hs.countUpTo(xmin); i > 1 {
		hs.recorded = slices.Delete(hs.recorded, 0, i-1)
	}
}
