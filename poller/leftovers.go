package poller

import "github.com/storestream/storestream/schemas"

// leftovers are rows that passes met and could not deal with, for want of room. Later passes meet them
// again, because settled stays before them.
//
// Not every pass does: a cheap one over REST shows only what changed lately. If the pass in hand alone
// counted, the hold would be told by one pass and not by the next, so whoever asks whether it has lasted for
// two hours (an alert) would never hear of it; and a pass that settled without meeting these rows would pass
// them. So what passes left over stays until a complete one has ended: then it is what that one left over.
type leftovers struct {
	inHand, before leftover // by the pass in hand, and by those before it
}

type leftover struct {
	rows     int             // of the pass that left most
	earliest schemas.Instant // the smallest updated_at, MaxInstant if there are none
}

var nothingLeft = leftover{earliest: schemas.MaxInstant}

func newLeftovers() leftovers { return leftovers{nothingLeft, nothingLeft} }

// add notes a row of the pass in hand.
func (l *leftovers) add(updatedAt schemas.Instant) {
	l.inHand = leftover{l.inHand.rows + 1, min(l.inHand.earliest, updatedAt)}
}

// newPass begins a pass.
func (l *leftovers) newPass() { l.inHand, l.before = nothingLeft, l.all() }

// completePass ends one that has met all that was left over before.
func (l *leftovers) completePass() { l.before = nothingLeft }

// all is what is to be met again.
func (l *leftovers) all() leftover {
	return leftover{max(l.inHand.rows, l.before.rows), min(l.inHand.earliest, l.before.earliest)}
}
