package poller

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// ahead knows the rows whose updated_at lies in the future of their writing (a clock that is not ours, a date far ahead). Brokers refuse
// record times in the future, so such a record carries the time of its writing, and a takeover that looked for records from settled on
// would not find it: the row would be published a second time. seenFrom is therefore the smallest record time among all that seen holds.
//
// Rows are kept in spans of record time, not one by one: with a service whose clock runs ahead every row is such a row.
type ahead struct{ spans []span }

type span struct {
	from  schemas.Instant // smallest record time
	until schemas.Instant // largest updated_at
}

const (
	maxSpans = 256
	spanWide = time.Minute
	// aheadMargin covers the step back that the writer's clock may take between this note and the producer's stamp.
	aheadMargin = time.Minute
)

// note a record written with the given record time. Records that carry their updated_at need no note.
func (a *ahead) note(recordTime, updatedAt schemas.Instant) {
	if recordTime.Millis() >= updatedAt.Millis() {
		return
	}
	if n := len(a.spans); n > 0 {
		last := &a.spans[n-1]
		if d := recordTime.Sub(last.from); d >= 0 && d < spanWide || n == maxSpans {
			last.from, last.until = min(last.from, recordTime), max(last.until, updatedAt)
			return
		}
	}
	a.spans = append(a.spans, span{recordTime, updatedAt})
}

// seenFrom is the smallest record time that a row with an updated_at at or after settled can have in the data topic.
func (a *ahead) seenFrom(settled schemas.Instant) schemas.Instant {
	from, kept := settled, a.spans[:0]
	for _, s := range a.spans {
		if s.until >= settled {
			from, kept = min(from, s.from.Add(-aheadMargin)), append(kept, s)
		}
	}
	a.spans = kept
	return from
}
