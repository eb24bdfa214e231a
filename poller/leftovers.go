package poller

import "github.com/storestream/storestream/schemas"

// leftovers are rows that passes read and had no room for. Settled stays before them, so later passes read
// them again.
//
// Not every pass does: a cheap one over REST shows only what changed lately. If the pass in hand alone
// counted, one pass would report the delay and the next would not, so an alert that waits for a delay of two
// hours would never fire. And a pass that settles without reading these rows would pass them. So they stay
// until a complete pass has ended: then those count that this pass left over.
type leftovers struct {
	inHand, before                 int // rows of the pass in hand, and of the pass before it that left most
	earliestInHand, earliestBefore schemas.Instant
}

func newLeftovers() leftovers {
	return leftovers{earliestInHand: schemas.MaxInstant, earliestBefore: schemas.MaxInstant}
}

// add notes a row of the pass in hand.
func (l *leftovers) add(updatedAt schemas.Instant) {
	l.inHand++
	l.earliestInHand = min(l.earliestInHand, updatedAt)
}

// newPass begins a pass.
func (l *leftovers) newPass() {
	l.before, l.earliestBefore = l.rows(), l.earliest()
	l.inHand, l.earliestInHand = 0, schemas.MaxInstant
}

// completePass ends a pass that has read every row that was left over before.
func (l *leftovers) completePass() { l.before, l.earliestBefore = 0, schemas.MaxInstant }

// rows returns how many rows are left over, about.
func (l *leftovers) rows() int { return max(l.inHand, l.before) }

// earliest returns the smallest updated_at that is left over, or MaxInstant.
func (l *leftovers) earliest() schemas.Instant { return min(l.earliestInHand, l.earliestBefore) }
