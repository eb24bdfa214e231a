package poller

import (
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// dedup knows what was published of each row with an updated_at at or after settled. So a read that overlaps
// the one before publishes a row again only where it changed. A marked version was published before the
// replay in hand: it does not suppress an equal row, but it still exposes an older one.
//
// Its memory is capped. At the cap new rows are not remembered, and the next read that overlaps publishes
// them again: repeated and counted, never lost.
type dedup struct {
	rows   *rowset.Set
	future futureRows
	now    func() time.Time
	clock  schemas.Instant // as it was read for the transaction in hand: it may step back between two
	// evicted is when rows were last dropped.
	evicted time.Time
}

// maxDedupBytes keeps some 2.7 million rows.
const maxDedupBytes = 64 << 20

func newDedup(now func() time.Time) dedup {
	return dedup{rows: rowset.New(maxDedupBytes), now: now, clock: schemas.MinInstant}
}

// restore takes a record of the data topic during a takeover, which goes on at mark.
func (d *dedup) restore(r watermark.Published, mark *watermark.Watermark) {
	millis := r.UpdatedAt.Millis()
	if r.Tombstone || millis < mark.Settled.Millis() {
		// No read meets such a row, but its record replaces what an earlier one said of it.
		d.rows.Remove(r.ID)
		return
	}
	old := r.Old && mark.Replay != nil && millis >= mark.Replay.From.Millis()
	d.rows.Put(r.ID, rowset.Version{Millis: millis, Hash: r.Hash, Marked: old})
	d.future.add(r.Time, r.UpdatedAt)
}

// remember notes that the transaction in hand publishes row; false: the cap is reached.
func (d *dedup) remember(row *schemas.Record, hash uint64) bool {
	// The clock is read for the first row of a transaction, and for rows that may lie in its future.
	if row.UpdatedAt > d.clock {
		d.clock = schemas.InstantOf(d.now())
		d.future.add(min(d.clock, row.UpdatedAt), row.UpdatedAt)
	}
	return d.rows.Put(row.ID, rowset.Version{Millis: row.UpdatedAt.Millis(), Hash: hash})
}

// committed ends a transaction, and drops what settled has passed: when there is much of it, or once a
// minute. Nothing depends on when.
func (d *dedup) committed(settled schemas.Instant, now time.Time) {
	const much = 1 << 15
	d.clock = schemas.MinInstant
	if now.Sub(d.evicted) >= time.Minute || d.rows.Len() >= much && d.rows.Added() >= d.rows.Len()/2 {
		d.rows.Evict(settled)
		d.evicted = now
	}
}

// futureRows knows the rows whose updated_at was in the future when they were written: the service's clock
// runs ahead, or somebody stamped a date far off. Brokers refuse record times in the future, so such a record
// carries the time of its writing. A takeover that read the topic from settled on would not find it, and the
// row would be published twice.
//
// They are kept by spans of record time: when the service's clock runs ahead, every row is such a row.
type futureRows struct{ spans []futureSpan }

type futureSpan struct {
	from  schemas.Instant // smallest record time
	until schemas.Instant // largest updated_at
}

const (
	maxFutureSpans  = 256
	futureSpanWidth = time.Minute
	// futureMargin allows for a step back of the writer's clock between this and the producer's stamp.
	futureMargin = time.Minute
)

// add notes a row that is written with this record time, unless that is its updated_at.
func (f *futureRows) add(recordTime, updatedAt schemas.Instant) {
	if recordTime.Millis() >= updatedAt.Millis() {
		return
	}
	if n := len(f.spans); n > 0 {
		last := &f.spans[n-1]
		if d := recordTime.Sub(last.from); d >= 0 && d < futureSpanWidth || n == maxFutureSpans {
			last.from, last.until = min(last.from, recordTime), max(last.until, updatedAt)
			return
		}
	}
	f.spans = append(f.spans, futureSpan{recordTime, updatedAt})
}

// from is the smallest record time that a row with an updated_at at or after settled can have in the data
// topic: a takeover must read back from there. The spans that settled has passed go.
func (f *futureRows) from(settled schemas.Instant) schemas.Instant {
	from, kept := settled, f.spans[:0]
	for _, s := range f.spans {
		if s.until >= settled {
			from, kept = min(from, s.from.Add(-futureMargin)), append(kept, s)
		}
	}
	f.spans = kept
	return from
}
