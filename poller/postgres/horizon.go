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
	// since is when next was first met: time moves on while no transaction begins.
	since schemas.Instant
}

// maxHorizons bounds memory. At one horizon a second and one transaction open for hours they are thinned.
// Settling then stops a little short of what was possible, never beyond it.
const maxHorizons = 1024

// horizons says how far a range may settle: the rule of doc.go, and nothing else. It lives as long as its
// Source, or until the database turns out to be another one. Its zero value with an overlap is ready.
type horizons struct {
	overlap time.Duration
	steps   steps
	noted   []horizon // in order: neither time nor next ever falls
	// back: the clock was set back since somebody asked (takeBack), and may have gone as low as lowest.
	back   bool
	lowest schemas.Instant
}

// see notes the moment that c says. begins: it is the one that a pass begins with.
//
// Where the clock was set back, a transaction with an id past a horizon makes its first write at the
// horizon's time or later, or after the step: so at the lowest that the clock went to, or later. The horizons
// hold with that time. Where it was set forward, a transaction that stamped before the step may write after
// it, so that overlap on the clock is not overlap in time: no horizon is noted until all such transactions
// have written.
func (hs *horizons) see(c *clock, begins bool) {
	if !c.known {
		return
	}
	if low := hs.steps.back(c); low < schemas.MaxInstant {
		hs.wentBack(low)
	}
	if !c.standby {
		hs.lower(c.time)
	}
	sure := hs.steps.sure(c)
	if hs.steps.follow(c, hs.overlap, begins); !hs.steps.unsettled(c) {
		hs.note(horizon{time: sure, next: c.next})
	}
}

// wentBack notes that the clock was set back, to low at least.
func (hs *horizons) wentBack(low schemas.Instant) {
	if !hs.back || low < hs.lowest {
		hs.back, hs.lowest = true, low
	}
	hs.lower(low)
}

// takeBack says from where on rows may have appeared because the clock was set back since it was last asked;
// MaxInstant: it was not.
func (hs *horizons) takeBack() schemas.Instant {
	if !hs.back {
		return schemas.MaxInstant
	}
	hs.back = false
	return hs.lowest.Add(-hs.overlap)
}

// lower makes no horizon later than to.
func (hs *horizons) lower(to schemas.Instant) {
	for i := len(hs.noted) - 1; i >= 0 && hs.noted[i].time > to; i-- {
		hs.noted[i].time, hs.noted[i].since = to, min(hs.noted[i].since, to)
	}
}

// note remembers a horizon, unless the last one says more: then this one comes from a standby, whose clock is
// that of what it has replayed.
func (hs *horizons) note(h horizon) {
	if n := len(hs.noted); n > 0 {
		last := &hs.noted[n-1]
		if h.time < last.time || h.next < last.next {
			return
		}
		if h.next == last.next {
			last.time = h.time // no transaction has begun since: the later moment says more
			return
		}
	}
	if len(hs.noted) >= maxHorizons {
		hs.thin()
	}
	h.since = h.time
	hs.noted = append(hs.noted, h)
}

// thin drops every second horizon but the first and the last.
func (hs *horizons) thin() {
	kept := hs.noted[:0]
	for i, h := range hs.noted {
		if i%2 == 0 || i == len(hs.noted)-1 {
			kept = append(kept, h)
		}
	}
	hs.noted = kept
}

// reach says how far a range may settle of which every part was read under a snapshot with this xmin or a
// larger one: no row with an earlier updated_at can appear in it any more. MinInstant: it may not settle.
func (hs *horizons) reach(xmin uint64) schemas.Instant {
	h, ok := hs.best(xmin)
	if !ok {
		return schemas.MinInstant
	}
	return h.time.Add(-hs.overlap)
}

// best is the latest horizon that counts for such a snapshot: the transactions before it are all over there.
func (hs *horizons) best(xmin uint64) (horizon, bool) {
	i := hs.countUpTo(xmin)
	if i == 0 {
		return horizon{}, false
	}
	return hs.noted[i-1], true
}

// held says why settled stands still for such snapshots: a transaction has been open for longer than overlap.
// "": it does not stand still. c is the first of their clocks.
func (hs *horizons) held(c *clock, xmin uint64) string {
	if hs.steps.unsettled(c) {
		return "the database's clock was set forward: settled waits for an overlap, until all transactions that " +
			"may have stamped before have written"
	}
	i := hs.countUpTo(xmin)
	if i == len(hs.noted) || !c.known || c.time.Sub(hs.noted[i].since) <= hs.overlap {
		return ""
	}
	when := "about"
	if i == 0 { // it is older than all that this process knows
		when = "before"
	}
	return fmt.Sprintf("a transaction (id %d) is open since %s %s and may still bring rows from "+
		"before: settled waits for its end", xmin, when, hs.noted[i].since)
}

// after counts the horizons that count for a snapshot with this xmin. They are the first ones.
func (hs *horizons) countUpTo(xmin uint64) int {
	i, _ := slices.BinarySearchFunc(hs.noted, xmin, func(h horizon, xmin uint64) int {
		if h.next <= xmin {
			return -1
		}
		return 1
	})
	return i
}

// prune drops the horizons that a better one has replaced for snapshots with this xmin, and so for all later
// ones.
func (hs *horizons) prune(xmin uint64) {
	if i := hs.countUpTo(xmin); i > 1 {
		hs.noted = slices.Delete(hs.noted, 0, i-1)
	}
}
