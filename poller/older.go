package poller

import (
	"context"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// older holds the rows that came with an older updated_at than was published for them. Such a row is either a lie (a replica that
// lags, a page that a cache kept) or the truth (two transactions that commit in the other order, a correction). Published at once, a
// lie would put an old state over a new one for ever: compaction keeps the last record. Thrown away, the truth would be lost. So it is
// looked at again after the overlap, and the same older state met twice, that far apart, is published.
type older map[int64]heldBack

type heldBack struct {
	updatedAt schemas.Instant
	hash      uint64
	since     time.Time
}

// maxOlder bounds the memory and the second looks. Beyond it rows are held back without being noted: a sweep finds them.
const maxOlder = 10_000

// confirmed notes an older state of a row. It is true when the same state was noted at least overlap ago.
func (o older) confirmed(id int64, updatedAt schemas.Instant, hash uint64, now time.Time, overlap time.Duration) bool {
	held, there := o[id]
	if there && held.updatedAt == updatedAt && held.hash == hash {
		return now.Sub(held.since) >= overlap
	}
	if there || len(o) < maxOlder {
		o[id] = heldBack{updatedAt, hash, now}
	}
	return false
}

func (o older) forget(id int64) {
	if len(o) > 0 {
		delete(o, id)
	}
}

// earliest is the smallest updated_at held back: settled must not pass it, or a successor would not read the row.
func (o older) earliest() schemas.Instant {
	e := schemas.MaxInstant
	for _, held := range o {
		e = min(e, held.updatedAt)
	}
	return e
}

// due are the rows to be looked at again now.
func (o older) due(now time.Time, overlap time.Duration) []Suspect {
	var rows []Suspect
	for id, held := range o {
		if now.Sub(held.since) >= overlap {
			rows = append(rows, Suspect{ID: id, UpdatedAt: held.updatedAt, CreatedAt: schemas.MinInstant})
		}
	}
	return rows
}

// lookAgain gives the rows held back for an overlap their second look. A row that comes back newer, equal, or not at all is a row
// like any other, or none.
func (p *Poller) lookAgain(ctx context.Context, stop <-chan struct{}) error {
	suspects := p.older.due(p.Now(), p.Overlap)
	if len(suspects) == 0 {
		return nil
	}
	wanted := make(map[int64]bool, len(suspects))
	for _, s := range suspects {
		wanted[s.ID] = true
	}
	err := p.read(ctx, stop, Request{Kind: Lookup, Suspects: suspects, Started: schemas.InstantOf(p.Now())}, func(b Batch) error {
		var tx watermark.Transaction
		for i := range b.Rejects {
			if r := &b.Rejects[i]; r.HasID && wanted[r.ID] {
				p.reject(&tx, r, schemas.MinInstant)
			}
		}
		for i := range b.Rows {
			if row := &b.Rows[i]; wanted[row.ID] {
				p.judge(&tx, row, false)
			}
		}
		return p.writeIfDue(ctx, tx)
	})
	if err != nil {
		return err
	}
	for id := range wanted { // gone from where it was, or turned into another state meanwhile: a pass meets that one
		if held, there := p.older[id]; there && p.Now().Sub(held.since) >= p.Overlap {
			p.older.forget(id)
		}
	}
	return nil
}
