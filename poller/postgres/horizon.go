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
	noted   []horizon // in order: neither time nor next ever falls
}

// note remembers a moment.
//
// When the clock has been set back, the horizons of a later time are worthless: a transaction with an id past
// such a horizon stamps by the new clock, before the horizon by as much as the clock was set back. They are
// dropped.
func (hs *horizons) note(h horizon) {
	for len(hs.noted) > 0 && hs.noted[len(hs.noted)-1].time > h.time {
		hs.noted = hs.noted[:len(hs.noted)-1]
	}
	if n := len(hs.noted); n > 0 && hs.noted[n-1].next >= h.next {
		if hs.noted[n-1].next == h.next {
			hs.noted[n-1].time = h.time // no transaction has begun since: the later moment says more
		}
		// A smaller next comes from a standby that lags. The horizon before it stays true, and will do.
		return
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
