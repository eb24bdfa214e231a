package catchup

import (
	"reflect"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// progress is how far a resource has come.
type progress struct {
	mark  watermark.Watermark // the last one that was a step further
	moved time.Time           // when that was seen
	// ahead is the last as of that lay ahead of our clock, and seen is how many there were.
	ahead   schemas.Instant
	seen    int
	trouble *watermark.Trouble // the last watermark's
}

// enoughAhead is the one that was seen first, and two more.
const enoughAhead = 3

func (p *progress) note(mark watermark.Watermark, now time.Time) {
	if further(p.mark, mark) {
		p.mark, p.moved = mark, now
	}
	if mark.AsOf > schemas.InstantOf(now) && mark.AsOf != p.ahead {
		p.ahead = mark.AsOf
		p.seen++
	}
	p.trouble = mark.Trouble
}

// further reports whether b is further than a. A watermark that was written again is no progress, because a
// poller that meets the same rows again and again writes one every ten seconds.
func further(a, b watermark.Watermark) bool {
	if !reflect.DeepEqual(a.Cursor, b.Cursor) || !reflect.DeepEqual(a.Load, b.Load) {
		return true
	}
	return a.Settled != b.Settled || a.Rows != b.Rows || a.AsOf != b.AsOf
}

// done reports whether all that was visible at moment is published.
func (p *progress) done(moment schemas.Instant) bool {
	return p.mark.AsOf >= moment && (p.mark.AsOf != p.ahead || p.seen >= enoughAhead)
}

// waitsSince returns since when it stands still. A resource that waits to look at rows again does not.
func (p *progress) waitsSince() time.Time {
	if p.trouble != nil && p.trouble.Until != nil && p.trouble.Until.Time().After(p.moved) {
		return p.trouble.Until.Time()
	}
	return p.moved
}
