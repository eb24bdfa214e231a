package poller

import (
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/schemas"
)

// seen remembers, for each row published with an updated_at at or after settled, what was published: so that a read that overlaps
// the one before publishes a row again only where it changed (K9: a filter on "new since" would throw the changed ones away). A
// marked version was published before the replay in hand: it does not suppress an equal row, but still tells an older one.
//
// Its memory is capped. At the cap new rows are not remembered, and the next overlapping read publishes them again: repeated and
// counted, never lost (K4).
type seen struct {
	*rowset.Set
	swept time.Time
}

// DefaultSeenBytes keeps some 2.7 million rows of one resource.
const DefaultSeenBytes = 64 << 20

func newSeen(maxBytes int) seen {
	if maxBytes == 0 {
		maxBytes = DefaultSeenBytes
	}
	return seen{Set: rowset.New(maxBytes)}
}

// sweep drops what settled has passed: when there is much of it, or once a minute. Nothing depends on when.
func (s *seen) sweep(settled schemas.Instant, now time.Time) {
	const much = 1 << 15
	if now.Sub(s.swept) >= time.Minute || s.Len() >= much && s.Added() >= s.Len()/2 {
		s.Evict(settled)
		s.swept = now
	}
}
