package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// batch is the records of one transaction, in three allocations and not three a row.
type batch struct {
	records []kgo.Record
	keys    []byte

	mu     sync.Mutex
	failed error // the first refusal of a record
}

// manyRows is more than polls find of changes. Larger transactions come from first loads, replays and
// sweeps. Their watermark follows the rows, which costs one more round trip (Session.write), and they take
// turns (batches).
const manyRows = 1000

// largeAtOnce is how many transactions of many rows one process writes at a time. Each takes some 300 bytes a
// row here and in the client. With five first loads at once, two at a time take 30 MiB less than five, and no
// longer: two are enough to keep a processor busy while another waits for the broker.
const largeAtOnce = 2

// batches gives out the batches of a process. Transactions of many rows use each other's memory again.
type batches struct {
	turns chan struct{}
	large sync.Pool // of *batch
}

func newBatches() *batches { return &batches{turns: make(chan struct{}, largeAtOnce)} }

// take returns a batch for a transaction of so many rows. If that is many, it waits while largeAtOnce
// others are being written.
func (p *batches) take(ctx context.Context, rows int) (*batch, error) {
	if rows <= manyRows {
		return new(batch), nil
	}
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b, ok := p.large.Get().(*batch); ok {
		return b, nil
	}
	return new(batch), nil
}

// giveBack ends the use of a batch that take returned for so many rows. If the transaction failed, the
// client may still hold the batch's records, so its memory is not used again.
func (p *batches) giveBack(b *batch, rows int, failed bool) {
	if rows <= manyRows {
		return
	}
	if !failed {
		clear(b.records) // or they would keep the rows
		p.large.Put(b)
	}
	<-p.turns
}

// recordMillis is the Kafka time of a row stamped t. Negative times have meanings of their own in Kafka
// (-1: none), so times before 1970 are written as 1970.
func recordMillis(t schemas.Instant) int64 { return max(t.Millis(), 0) }

// fill prepares everything but the watermark. future reports that a row carries the time of writing because
// its updated_at is later than that.
func (b *batch) fill(t *target, lettersTopic string, tx watermark.Transaction, written schemas.Instant) (
	future bool) {
	b.failed = nil
	rows := len(tx.Rows) + len(tx.Deletes) + len(tx.Strays)
	b.records = slices.Grow(b.records[:0], rows+len(tx.DeadLetters)+1) // and the watermark
	b.keys = slices.Grow(b.keys[:0], rows*watermark.MaxKeySize)        // in one piece: keys are parts of it
	topic := t.topic
	for i := range tx.Rows {
		row := &tx.Rows[i]
		schemas.SetSchemaID(row.Value, t.valueID)
		future = future || row.UpdatedAt > written
		b.records = append(b.records, kgo.Record{Topic: topic, Key: b.key(t, row.ID), Value: row.Value,
			Timestamp: time.UnixMilli(recordMillis(min(row.UpdatedAt, written)))})
	}
	now := time.UnixMilli(recordMillis(written))
	for _, id := range tx.Deletes {
		b.records = append(b.records, kgo.Record{Topic: topic, Key: b.key(t, id), Timestamp: now})
	}
	for _, stray := range tx.Strays {
		b.records = append(b.records, kgo.Record{Topic: topic, Key: b.key(t, stray.ID), Timestamp: now,
			Partition: pinned(stray.Partition)})
	}
	for _, letter := range tx.DeadLetters {
		record := deadLetterRecord(lettersTopic, t.limits[lettersTopic], t.resource.Name, letter)
		record.Timestamp = now
		b.records = append(b.records, record)
	}
	return future
}

func (b *batch) key(t *target, id int64) []byte {
	start := len(b.keys)
	b.keys = schemas.AppendKey(b.keys, id)
	key := b.keys[start:len(b.keys):len(b.keys)]
	schemas.SetSchemaID(key, t.keyID)
	return key
}

// send hands records to the client and waits until the brokers have each of them. It checks every promise,
// because the end of a transaction succeeds even if its records failed.
func (b *batch) send(ctx context.Context, cl *kgo.Client, records []kgo.Record) error {
	promise := b.note
	for i := range records {
		cl.Produce(ctx, &records[i], promise)
	}
	flushed := cl.Flush(ctx) // nil: every promise was kept or refused
	b.mu.Lock()
	defer b.mu.Unlock()
	if flushed != nil {
		return errors.Join(context.Cause(ctx), b.failed)
	}
	return b.failed
}

func (b *batch) note(r *kgo.Record, err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = fmt.Errorf("a record of topic %s: %w", r.Topic, err)
	}
}

const (
	mostRows   = 100_000 // beyond it a transaction gains nothing: measured, 10k and more cost the same a row
	fewestRows = 500
)

// batchSizer says how many rows a transaction of one resource should hold.
type batchSizer struct {
	max atomic.Int64 // 0: mostRows
}

func (s *batchSizer) rows() int { return int(cmp.Or(s.max.Load(), mostRows)) }

// adapt chooses the size of the next transaction by the time that one of so many rows took. After a third
// of the timeout it halves the size: the broker's clock and ours differ, and a transaction that times out
// was in vain. If there was time to spare, it adds a sixteenth.
func (s *batchSizer) adapt(rows int, took, timeout time.Duration, failed bool) {
	now := s.rows()
	switch {
	case took > timeout/3:
		s.max.Store(int64(max(min(now, max(rows, 1))/2, fewestRows)))
	case !failed && took < timeout/12 && rows >= now/2:
		s.max.Store(int64(min(now+now/16, mostRows)))
	}
}
