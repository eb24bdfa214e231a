package poller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// poll makes one pass and the second looks that are due. It returns nil, a source's error, errAsked, or a *writeError.
func (p *Poller) poll(ctx context.Context, stop <-chan struct{}) error {
	kind := Pass
	if p.Eager || p.mark.Replay != nil || p.status.Complete == 0 {
		kind = CompletePass
	}
	p.show(func(s *Status) { s.Doing, s.Since = "polling", p.Now() })
	from := max(p.mark.Settled, p.Start)
	err := p.read(ctx, stop, Request{Kind: kind, From: from, Cursor: p.mark.Cursor, Started: schemas.InstantOf(p.Now())},
		func(b Batch) error { return p.publish(ctx, b, from) })
	if err != nil {
		return err
	}
	return p.lookAgain(ctx, stop)
}

// read runs one read of the source in a goroutine of its own, so that the next batch is read while this one is published; take gets
// the batches in order. When stop is closed or a request comes in, the batch in hand is finished and the read is cut short.
func (p *Poller) read(ctx context.Context, stop <-chan struct{}, r Request, take func(Batch) error) error {
	rctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan Batch)
	result := make(chan error, 1)
	go func() {
		defer close(batches)
		result <- readSafely(rctx, p.Source, r, func(b Batch) error {
			select {
			case batches <- b:
				// A batch that went to the drain below was dropped: the source must not take it for published.
				return context.Cause(rctx)
			case <-rctx.Done():
				return context.Cause(rctx)
			}
		})
	}()
	var failed error
	for failed == nil {
		changed := p.Changed()
		if len(p.Requests(p.mark.Request)) > 0 {
			failed = errAsked
			break
		}
		select {
		case b, open := <-batches:
			if !open {
				return <-result
			}
			failed = take(b)
		case <-stop:
			failed = errStopped
		case <-changed:
		}
	}
	cancel(failed)
	for range batches { // the reader's goroutine ends before read returns
	}
	if err := <-result; err != nil {
		p.Log.Debug("a read was cut short", zap.Error(err), zap.NamedError("because", failed))
	}
	return failed
}

// readSafely turns a panic of the source into an error: one row that a decoder cannot bear must not take the other resources down.
func readSafely(ctx context.Context, s Source, r Request, emit func(Batch) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a defect in storestream: reading panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return s.Read(ctx, r, emit)
}

var errStopped = errors.New("stopping")

// publish judges the rows of b and writes them, in as many transactions as MaxRows asks for; the last one moves the watermark.
// A batch that says nothing new waits for the next one, or for quietWrite.
func (p *Poller) publish(ctx context.Context, b Batch, from schemas.Instant) error {
	p.Metrics.RowsRead.Add(float64(len(b.Rows) + len(b.Rejects)))
	// The rows to be published move up to the front of those that were read, and stay where they are.
	tx := watermark.Transaction{Rows: b.Rows[:0]}
	for i := range b.Rejects {
		p.reject(&tx, &b.Rejects[i], from)
	}
	limit := p.MaxRows()
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.UpdatedAt < from {
			// Nothing can judge it: seen holds nothing from before settled. A source that reads by day returns such rows.
			p.Metrics.Suppressed(metrics.BeforeStart).Inc()
			continue
		}
		if p.judge(&tx, row, false) && len(tx.Rows) >= limit {
			if err := p.write(ctx, tx); err != nil {
				return err
			}
			tx, limit = watermark.Transaction{Rows: b.Rows[i+1 : i+1]}, p.MaxRows()
		}
	}
	loading := p.mark.AsOf == schemas.MinInstant
	p.advance(&b)
	err := p.writeIfDue(ctx, tx)
	if err == nil && loading && p.mark.AsOf != schemas.MinInstant {
		p.Log.Info("first load finished", zap.Int64("rows", p.mark.Rows), zapInstant("settled", p.mark.Settled))
	}
	return err
}

// advance moves the watermark by what b says. Settled stays behind every row that is held back: a crash would lose the poller's memory
// of it, and a successor would not read it again.
func (p *Poller) advance(b *Batch) {
	p.mark.Settled = max(p.mark.Settled, min(b.Settled, p.older.earliest()))
	p.mark.Cursor = b.Cursor
	if b.Done == nil {
		return
	}
	if b.Done.Complete {
		p.mark.AsOf = max(p.mark.AsOf, b.Done.Started)
		if r := p.mark.Replay; r != nil && b.Done.Started >= r.At {
			p.mark.Replay = nil
			p.seen.Unmark()
			p.Log.Info("replay finished", zapInstant("from", r.From), zapRequest(r.Request))
		}
	}
	p.show(func(s *Status) {
		s.Good, s.Held = max(s.Good, b.Done.Started), b.Done.Held
		if b.Done.Complete {
			s.Complete++
		}
	})
}

// writeIfDue writes tx unless all it would say is the time.
func (p *Poller) writeIfDue(ctx context.Context, tx watermark.Transaction) error {
	quiet := len(tx.Rows) == 0 && len(tx.Deletes) == 0 && len(tx.Strays) == 0 && len(tx.DeadLetters) == 0
	if quiet && !p.Eager && p.mark.Replay == nil && p.Now().Sub(p.written) < quietWrite {
		p.show(func(*Status) {})
		return nil
	}
	return p.write(ctx, tx)
}

// flush writes what is known and was not written yet, for a successor to begin there.
func (p *Poller) flush(ctx context.Context) error {
	var write *writeError
	if err := p.write(ctx, watermark.Transaction{}); errors.As(err, &write) {
		return write.err
	}
	return nil
}

// write commits tx with the watermark as it is now.
func (p *Poller) write(ctx context.Context, tx watermark.Transaction) error {
	now := p.Now()
	p.mark.Rows += int64(len(tx.Rows))
	p.mark.DedupFrom = p.ahead.seenFrom(p.mark.Settled)
	p.mark.Written = schemas.InstantOf(now)
	tx.Watermark = p.mark
	tx.Watermark.Version = watermark.Version
	if err := p.Publish(ctx, tx); err != nil {
		return &writeError{err}
	}
	p.written, p.clock = now, schemas.MinInstant
	p.Metrics.RowsPublished.Add(float64(len(tx.Rows)))
	p.seen.sweep(p.mark.Settled, now)
	p.Metrics.SeenBytes.Set(float64(p.seen.Bytes()))
	p.show(func(*Status) {})
	return nil
}
