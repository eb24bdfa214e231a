package poller

import (
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// decide decides about the rows of a batch, up to maxRows of them to publish, and takes them out of the
// batch. It returns the next transaction. more is set if the batch has rows that tx has no room for. at is
// the moment of this transaction, to which the batch's Age belongs. The last transaction of a batch of a
// pass moves the watermark (advance).
//
// The error is a *BlockedError if the next row cannot be published before a limit is over. The rows before
// it are in tx, and the rest of the batch is left for a later read.
func (s *state) decide(b *Batch, at Moment, maxRows int) (tx watermark.Transaction, more bool,
	blocked error) {
	s.dedup.mu.Lock()
	defer s.dedup.mu.Unlock()
	tx.Rows = b.Rows[:0] // the rows to publish move to the front of the slice that was read
	for i := range b.Rejects {
		s.decideReject(&tx, &b.Rejects[i])
	}
	b.Rejects = nil
	shown := at.Now.Add(-b.Age)
	for ; len(b.Rows) > 0; b.Rows = b.Rows[1:] {
		if len(tx.Rows) >= maxRows {
			return tx, true, nil
		}
		row, final := &b.Rows[0], len(b.Final) > 0 && b.Final[0] && s.dealtWithAll()
		err := s.decideRow(&tx, row, shown, at, final)
		if err != nil && s.makeRoom(b) {
			err = s.decideRow(&tx, row, shown, at, final)
		}
		if err != nil {
			s.dedup.batchDealtWith(false)
			return tx, false, err
		}
		if len(b.Final) > 0 {
			b.Final = b.Final[1:]
		}
	}
	for i := range b.Same {
		s.decideSame(&tx, &b.Same[i], shown, at)
	}
	if s.wanted == nil {
		s.advance(b, at, len(tx.Rows))
	}
	return tx, false, nil
}

// decideSame suppresses a row as a repeat that had the text of the published version when the source read it.
// If another version was published since, perhaps this one is older. The row has no Value to publish. So it
// is deferred in any case, and the second look brings the value.
func (s *state) decideSame(tx *watermark.Transaction, same *rowset.Noted, shown time.Time, at Moment) {
	switch before, known := s.dedup.rows.Get(same.ID); {
	case known && before == same.Version:
		s.repeat(tx, same.ID)
	case same.Version.Millis >= max(s.from, s.mark.Settled).Millis():
		row := schemas.Record{ID: same.ID, UpdatedAt: schemas.InstantOfMillis(same.Version.Millis)}
		s.deferred.note(&row, same.Version.Hash, at.Now, shown)
		s.deferrals++
	}
}

// repeat suppresses a row. If it was a dead letter in between, the topic has it again: only the dead letter
// goes.
func (s *state) repeat(tx *watermark.Transaction, id int64) {
	if len(s.deadLetters.known) > 0 {
		s.heal(tx, id)
	}
	delete(s.deferred.rows, id)
	s.repeats++
}

// decideReject decides about a row that cannot be published.
func (s *state) decideReject(tx *watermark.Transaction, r *schemas.Reject) {
	switch _, wanted := s.wanted[r.ID]; {
	case s.wanted != nil && !(wanted && r.HasID):
	case r.UpdatedAt != schemas.MinInstant && r.UpdatedAt < s.from:
		s.deadLetters.meet(r)
		s.beforeStart++
	default:
		s.writeLetter(tx, r)
	}
}

// decideRow publishes a row in tx, suppresses it as a repeat, or defers it as one that may be older. The
// source had the row as it is here at shown, or later. final is its Batch.Final. An error is
// add's.
func (s *state) decideRow(tx *watermark.Transaction, row *schemas.Record, shown time.Time, at Moment,
	final bool) error {
	if s.wanted != nil {
		if _, wanted := s.wanted[row.ID]; !wanted {
			return nil
		}
	}
	if row.UpdatedAt < s.from {
		// A source that reads by day returns such rows, and dedup knows nothing from before settled.
		s.beforeStart++
		return nil
	}
	millis, hash := row.UpdatedAt.Millis(), schemas.Hash(row.Value)
	before, known := s.dedup.rows.Get(row.ID)
	switch {
	case !known && s.dedup.lacking > 0:
		return s.memoryLacks()
	case known && !before.Marked && before.Equal(millis, hash):
		if row.Text != 0 {
			s.dedup.rows.Note(row.ID, row.Text)
		}
		s.repeat(tx, row.ID)
		return nil
	case known && !before.Equal(millis, hash) && s.mayBeOlder(row, before.Millis):
		if counts := s.deferred.note(row, hash, at.Now, shown); !counts {
			s.deferrals++
			return nil
		}
	}
	_, err := s.add(tx, row, hash, final, at.Wall)
	return err
}

// mayBeOlder reports whether a row that differs from its published version may be an older state (deferred
// says why). published is that version's updated_at.
func (s *state) mayBeOlder(row *schemas.Record, published int64) bool {
	switch millis := row.UpdatedAt.Millis(); {
	case millis != published:
		return millis < published
	case s.settings.CatchesUp: // no read shows an older state than a read before, so this one is newer
		return false
	}
	// Below settled every copy of the service shows the same. So other content at the same time is an
	// update that left updated_at alone. Only a replay or a sweep reads such a row. The published version
	// may be later than this row within their millisecond: so the whole millisecond has to lie below
	// settled.
	end := schemas.InstantOfMillis(published + 1)
	if s.mark.Replay != nil && end <= s.mark.Replay.Settled {
		return false
	}
	return end > s.mark.Settled
}
