package poller

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// idleWrite is how often a watermark is written that says nothing new but the time. Kafka keeps all of them
// until a segment rolls: at one a second a takeover would read half a gigabyte after some months.
const idleWrite = 10 * time.Second

// recordOverhead is what a record takes in a batch beside key and value: lengths, deltas and the batch's own
// 61 bytes.
const recordOverhead = 61 + 36

// publisher decides what becomes of each row (the table is in doc.go), and puts what is to be written
// together with the watermark that says so.
type publisher struct {
	cfg   *Config
	board *board

	mark        watermark.Watermark // the one that the next commit writes
	written     time.Time           // when a transaction last said so
	passes      int                 // complete ones since the takeover
	dedup       dedup
	heldBack    heldBack
	deadLetters *deadLetters
}

func newPublisher(cfg *Config, b *board) *publisher {
	p := &publisher{cfg: cfg, board: b, mark: cfg.Watermark, dedup: newDedup(cfg.Now),
		heldBack: heldBack{cfg.Overlap, map[int64]heldRow{}}, deadLetters: newDeadLetters(cfg)}
	p.show()
	return p
}

// writeError is an error of Config.Publish, which ends the poller.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// nextPass is the pass that comes next. The first one after a takeover is complete.
func (p *publisher) nextPass() Request {
	kind := Pass
	if p.cfg.Eager || p.mark.Replay != nil || p.passes == 0 {
		kind = CompletePass
	}
	return Request{Kind: kind, From: max(p.mark.Settled, p.cfg.Start), Cursor: p.mark.Cursor,
		Started: schemas.InstantOf(p.cfg.Now())}
}

// publish writes what is new in a batch of a pass, in as many transactions as MaxRows asks for. The last one
// moves the watermark.
func (p *publisher) publish(ctx context.Context, b Batch, from schemas.Instant) error {
	p.cfg.Metrics.RowsRead.Add(float64(len(b.Rows) + len(b.Rejects)))
	// The rows to publish move to the front of the slice that was read.
	tx := watermark.Transaction{Rows: b.Rows[:0]}
	for i := range b.Rejects {
		if r := &b.Rejects[i]; r.UpdatedAt != schemas.MinInstant && r.UpdatedAt < from {
			p.deadLetters.met(r)
			p.cfg.Metrics.Suppressed(metrics.BeforeStart).Inc()
		} else {
			p.deadLetters.write(&tx, r)
		}
	}
	limit := p.cfg.MaxRows()
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.UpdatedAt < from {
			// A source that reads by day returns such rows, and dedup knows nothing from before settled.
			p.cfg.Metrics.Suppressed(metrics.BeforeStart).Inc()
			continue
		}
		if p.decide(&tx, row) && len(tx.Rows) >= limit {
			if err := p.commit(ctx, tx); err != nil {
				return err
			}
			tx, limit = watermark.Transaction{Rows: b.Rows[i+1 : i+1]}, p.cfg.MaxRows()
		}
	}
	loading := p.mark.AsOf == schemas.MinInstant
	p.advance(&b)
	err := p.commitIfDue(ctx, tx)
	if err == nil && loading && p.mark.AsOf != schemas.MinInstant {
		p.cfg.Log.Info("first load finished", zap.Int64("rows", p.mark.Rows), zapInstant("settled", p.mark.Settled))
	}
	return err
}

// publishOnly writes what is new of the wanted rows in a batch of a lookup.
func (p *publisher) publishOnly(ctx context.Context, b Batch, wanted map[int64]Suspect) error {
	var tx watermark.Transaction
	for i := range b.Rejects {
		r := &b.Rejects[i]
		if _, ok := wanted[r.ID]; ok && r.HasID {
			p.deadLetters.write(&tx, r)
		}
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		if _, ok := wanted[row.ID]; ok {
			p.decide(&tx, row)
		}
	}
	return p.commitIfDue(ctx, tx)
}

// decide publishes a row in tx, suppresses it as a repeat, or holds it back as older. It says whether it put
// the row into tx.
func (p *publisher) decide(tx *watermark.Transaction, row *schemas.Record) bool {
	millis, hash := row.UpdatedAt.Millis(), schemas.Hash(row.Value)
	before, known := p.dedup.rows.Get(row.ID)
	switch {
	case known && !before.Marked && before.Equal(millis, hash):
		// If it was a dead letter in between it is now again what the topic holds: only the dead letter goes.
		p.deadLetters.takeOut(tx, row.ID)
		p.heldBack.forget(row.ID)
		p.cfg.Metrics.Suppressed(metrics.Seen).Inc()
		return false
	case known && millis < before.Millis && !p.heldBack.confirmed(row, hash, p.cfg.Now()):
		p.cfg.Metrics.Suppressed(metrics.Older).Inc()
		return false
	}
	return p.add(tx, row, hash)
}

// add puts a row into tx and remembers it. A row that is too large for the topic becomes a dead letter, and
// add returns false.
func (p *publisher) add(tx *watermark.Transaction, row *schemas.Record, hash uint64) bool {
	if size := len(row.Value) + schemas.HeaderSize + 10 + recordOverhead; size > p.cfg.MaxRecordBytes {
		p.deadLetters.writeTooLarge(tx, row, size)
		return false
	}
	p.deadLetters.takeOut(tx, row.ID)
	p.heldBack.forget(row.ID)
	if !p.dedup.remember(row, hash) {
		p.cfg.Metrics.SeenOverflow.Inc()
	}
	tx.Rows = append(tx.Rows, *row)
	return true
}

// delete puts a tombstone for a row into tx, and forgets what was published of it: if the row comes back, it
// is new.
func (p *publisher) delete(tx *watermark.Transaction, id int64) {
	tx.Deletes = append(tx.Deletes, id)
	p.dedup.rows.Remove(id)
	p.heldBack.forget(id)
	p.deadLetters.takeOut(tx, id)
}

// advance moves the watermark by what b says. Settled stays behind every row that is held back: a successor
// does not know of that row, and reads only from settled on.
func (p *publisher) advance(b *Batch) {
	p.mark.Settled = max(p.mark.Settled, min(b.Settled, p.heldBack.earliest()))
	p.mark.Cursor = b.Cursor
	if b.Done == nil {
		return
	}
	if b.Done.Complete {
		p.passes++
		p.mark.AsOf = max(p.mark.AsOf, b.Done.Started)
		if r := p.mark.Replay; r != nil && b.Done.Started >= r.At {
			p.mark.Replay = nil
			p.dedup.rows.Unmark()
			p.cfg.Log.Info("replay finished", zapInstant("from", r.From), zapRequest(r.Request))
		}
	}
	p.board.change(func(s *Status) { s.Good, s.Held = max(s.Good, b.Done.Started), b.Done.Held })
}

// beginReplay makes every row with updated_at at or after r.To be published again.
//
// Settled goes back, never forward: a reset to a later time would skip what lies between. The end offsets say
// which records are of this replay: only those suppress an equal row, also after a takeover in the middle.
// And the caller begins with a takeover: dedup has forgotten the rows between the reset's time and settled.
// Without them an old state that a lagging service still returns would be published over the newer one in the
// topic.
func (p *publisher) beginReplay(r watermark.Request, now schemas.Instant, ends []int64) {
	from := *r.To
	if running := p.mark.Replay; running != nil {
		from = min(from, running.From)
	}
	p.mark.Settled = min(p.mark.Settled, max(*r.To, p.cfg.Start))
	p.mark.Cursor = nil
	p.mark.Replay = &watermark.Replay{Request: r.ID, From: from, At: now, Ends: ends}
	p.cfg.Log.Info("replay begins", zapInstant("from", *r.To), zapRequest(r.ID), zap.String("by", r.By))
}

// endSweep notes in the watermark what the sweep for a request came to.
func (p *publisher) endSweep(result watermark.Swept) {
	p.mark.LastSweep, p.mark.Swept = schemas.InstantOf(p.cfg.Now()), &result
	if p.mark.Sweep != nil && p.mark.Sweep.Request == result.Request {
		p.mark.Sweep = nil
	}
}

// commitIfDue commits tx unless all that it would say is the time.
func (p *publisher) commitIfDue(ctx context.Context, tx watermark.Transaction) error {
	idle := tx.Len() == 0 && !p.cfg.Eager && p.mark.Replay == nil
	if idle && p.cfg.Now().Sub(p.written) < idleWrite {
		p.show()
		return nil
	}
	return p.commit(ctx, tx)
}

// commitIfFull commits tx and empties it when it holds as much as one transaction should.
func (p *publisher) commitIfFull(ctx context.Context, tx *watermark.Transaction) error {
	if tx.Len() < p.cfg.MaxRows() {
		return nil
	}
	full := *tx
	*tx = watermark.Transaction{}
	return p.commit(ctx, full)
}

// commit writes tx with the watermark as it is now. Its error is a *writeError.
func (p *publisher) commit(ctx context.Context, tx watermark.Transaction) error {
	now := p.cfg.Now()
	p.mark.Rows += int64(len(tx.Rows))
	p.mark.DedupFrom = p.dedup.future.from(p.mark.Settled)
	p.mark.Written = schemas.InstantOf(now)
	tx.Watermark = p.mark
	if err := p.cfg.Publish(ctx, tx); err != nil {
		return &writeError{err}
	}
	p.written = now
	p.cfg.Metrics.RowsPublished.Add(float64(len(tx.Rows)))
	p.dedup.committed(p.mark.Settled, now)
	p.show()
	return nil
}

// show puts on the board what can be read off the publisher.
func (p *publisher) show() {
	p.board.change(func(s *Status) {
		s.Watermark, s.Complete = p.mark, p.passes
		s.DeadLetters, s.DedupBytes = len(p.deadLetters.held), p.dedup.rows.Bytes()
	})
}
