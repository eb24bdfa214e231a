package reconcile

import (
	"time"

	"github.com/storestream/storestream/internal/rowset"
)

// Confirmation is the rule by which a state of a row comes to count that one read alone does not prove: a
// copy of the service that lags shows an older state, and over REST a row that is being updated may be
// nowhere for a while. A state counts once two reads, an overlap apart, have shown it, and no read in between
// has shown another one. Otherwise two moments of a lag, or of two updates, would prove it:
//
//	first look  a poll      last look, an overlap later
//	nothing     version 2   nothing: version 3 is under way
//
// A state is a version of the row, or another one that no version equals, such as that it was not shown. The
// zero Confirmation has been shown nothing.
type Confirmation struct {
	state rowset.Version
	since time.Time // the end of the first read that showed state
	last  time.Time // the start of the last one after it, zero if there was none
}

// Shown notes that a read between the two times showed this state.
func (c *Confirmation) Shown(state rowset.Version, from, to time.Time) {
	if c.since.IsZero() || c.state != state {
		*c = Confirmation{state: state, since: to}
	} else {
		c.last = from
	}
}

// Counts reports whether this state counts.
func (c *Confirmation) Counts(state rowset.Version, overlap time.Duration) bool {
	return c.state == state && !c.last.IsZero() && c.last.Sub(c.since) >= overlap
}

// State returns the state that was shown last.
func (c *Confirmation) State() rowset.Version { return c.state }

// Due returns the time from which on another read may confirm that state.
func (c *Confirmation) Due(overlap time.Duration) time.Time { return c.since.Add(overlap) }
