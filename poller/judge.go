package poller

import (
	"fmt"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// recordOverhead is what a record takes in a batch beside key and value: lengths, deltas and the batch's own 61 bytes.
const recordOverhead = 61 + 36

// judge decides about one row: publish it in tx, suppress it as equal to what was published, or hold it back as older. settledOlder
// says that an older row has passed its second look. It returns whether the row was put into tx.
func (p *Poller) judge(tx *watermark.Transaction, row *schemas.Record, settledOlder bool) bool {
	millis, hash := row.UpdatedAt.Millis(), schemas.Hash(row.Value)
	before, known := p.seen.Get(row.ID)
	switch {
	case known && !before.Marked && before.Equal(millis, hash):
		// A row that was a dead letter in between and is now again what the topic holds: nothing to say but that it is well.
		p.takeOut(tx, row.ID)
		p.older.forget(row.ID)
		p.Metrics.Suppressed(metrics.Seen).Inc()
		return false
	case known && millis < before.Millis && !settledOlder && !p.older.confirmed(row.ID, row.UpdatedAt, hash, p.Now(), p.Overlap):
		p.Metrics.Suppressed(metrics.Older).Inc()
		return false
	}
	return p.add(tx, row, hash)
}

// add puts a row into tx and remembers that, unless it is too large for the topic: then it is a dead letter, and add returns false.
func (p *Poller) add(tx *watermark.Transaction, row *schemas.Record, hash uint64) bool {
	if size := len(row.Value) + schemas.HeaderSize + 10 + recordOverhead; size > p.MaxRecordBytes {
		p.reject(tx, p.tooLarge(row, size), schemas.MinInstant)
		return false
	}
	p.takeOut(tx, row.ID)
	p.older.forget(row.ID)
	if row.UpdatedAt > p.clock { // the clock is read for the first row of a transaction, and for those that may lie ahead of it
		p.clock = schemas.InstantOf(p.Now())
		p.ahead.note(min(p.clock, row.UpdatedAt), row.UpdatedAt)
	}
	if !p.seen.Put(row.ID, rowset.Version{Millis: row.UpdatedAt.Millis(), Hash: hash}) {
		p.Metrics.SeenOverflow.Inc()
	}
	tx.Rows = append(tx.Rows, *row)
	return true
}

// reject writes a dead letter, unless the same one is there already: a restart does not repeat it (letters come with the takeover).
func (p *Poller) reject(tx *watermark.Transaction, r *schemas.Reject, from schemas.Instant) {
	key := watermark.DeadLetterKey(p.Resource.Name, *r)
	if p.sweep != nil {
		p.sweep.met[key] = true
	}
	if r.UpdatedAt != schemas.MinInstant && r.UpdatedAt < from {
		p.Metrics.Suppressed(metrics.BeforeStart).Inc()
		return
	}
	hash := watermark.DeadLetterHash(r.Row)
	if was, there := p.letters[key]; there && was == hash {
		p.Metrics.Suppressed(metrics.Seen).Inc()
		return
	}
	p.letters[key] = hash
	tx.DeadLetters = append(tx.DeadLetters, p.letter(key, r))
	field := r.Field
	if field == "" {
		field = "row"
	}
	p.Metrics.DeadLetters(field).Inc()
	p.Log.Warn("row cannot be published, written to dead letters", zap.String("letter", key), zap.String("field", field), zap.String("why", r.Err))
}

// letter is the record for r. One that would itself be too large keeps the id, the field and the error.
func (p *Poller) letter(key string, r *schemas.Reject) watermark.DeadLetter {
	row := r.Row
	if len(key)+len(row)+len(r.Err)+1024 > p.MaxRecordBytes {
		row = []byte("{}")
		if r.HasID {
			row = fmt.Appendf(nil, `{"id":%d}`, r.ID)
		}
	}
	return watermark.DeadLetter{Key: key, Row: row, Source: p.SourceName, Field: r.Field, Err: r.Err}
}

// takeOut removes the row's dead letter, if it has one.
func (p *Poller) takeOut(tx *watermark.Transaction, id int64) {
	if len(p.letters) == 0 {
		return
	}
	key := watermark.DeadLetterKey(p.Resource.Name, schemas.Reject{ID: id, HasID: true})
	if _, there := p.letters[key]; !there {
		return
	}
	delete(p.letters, key)
	tx.DeadLetters = append(tx.DeadLetters, watermark.DeadLetter{Key: key, Source: p.SourceName})
	p.Log.Info("row can be published again, taken out of dead letters", zap.String("letter", key))
}

// tooLarge turns a row that no broker would take into a reject (K18: elsewhere it is dropped with a warning).
func (p *Poller) tooLarge(row *schemas.Record, size int) *schemas.Reject {
	r := &schemas.Reject{ID: row.ID, HasID: true, UpdatedAt: row.UpdatedAt,
		Err: fmt.Sprintf("the record takes %d bytes, and at most %d go into the topic (its max.message.bytes, or 8 MiB where that is more, less what is around a record)", size, p.MaxRecordBytes)}
	if values, err := schemas.NewValueReader(p.Resource, ""); err == nil {
		if v, err := values.Read(row.Value); err == nil {
			r.Row = v.AppendJSON(nil, false)
		}
	}
	return r
}
