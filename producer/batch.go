package producer

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// recordOverhead is what a record and the batch around it take beside key and value: 61 bytes of batch, up to 31 of lengths and deltas, and room for our
// key.
const recordOverhead = 128

// batch is the records of one transaction. It is used again for the next: three allocations a transaction instead of three a row.
type batch struct {
	records []kgo.Record
	keys    []byte

	mu     sync.Mutex
	failed error // the first refusal of a record
}

// recordMillis is the Kafka time of a row stamped t. Negative times have meanings of their own in Kafka (-1: none), so what lies before 1970 is
// written as 1970.
func recordMillis(t schemas.Instant) int64 { return max(t.Millis(), 0) }

// fill prepares everything but the watermark, and says whether a row carries the time of writing because its updated_at lies ahead of it.
func (b *batch) fill(s *Session, tx watermark.Transaction, written schemas.Instant) (ahead bool) {
	const keySize = schemas.HeaderSize + 10
	b.failed = nil
	n := len(tx.Rows) + len(tx.Deletes) + len(tx.Strays) + len(tx.DeadLetters)
	if cap(b.records) < n+1 {
		b.records = make([]kgo.Record, 0, n+1)
	}
	b.records = b.records[:0]
	if need := (len(tx.Rows) + len(tx.Deletes) + len(tx.Strays)) * keySize; cap(b.keys) < need {
		b.keys = make([]byte, 0, need)
	}
	b.keys = b.keys[:0]
	for i := range tx.Rows {
		row := &tx.Rows[i]
		schemas.SetSchemaID(row.Value, s.valueID)
		ahead = ahead || row.UpdatedAt > written
		b.records = append(b.records, kgo.Record{Topic: s.topic.name, Key: b.key(s, row.ID), Value: row.Value,
			Timestamp: time.UnixMilli(recordMillis(min(row.UpdatedAt, written)))})
	}
	now := time.UnixMilli(recordMillis(written))
	for _, id := range tx.Deletes {
		b.records = append(b.records, kgo.Record{Topic: s.topic.name, Key: b.key(s, id), Timestamp: now})
	}
	for _, stray := range tx.Strays {
		b.records = append(b.records, kgo.Record{Topic: s.topic.name, Key: b.key(s, stray.ID), Timestamp: now, Partition: place(stray.Partition)})
	}
	for _, letter := range tx.DeadLetters {
		record := s.letterRecord(letter)
		record.Timestamp = now
		b.records = append(b.records, record)
	}
	return ahead
}

func (b *batch) key(s *Session, id int64) []byte {
	start := len(b.keys)
	b.keys = schemas.AppendKey(b.keys, id)
	key := b.keys[start:len(b.keys):len(b.keys)]
	schemas.SetSchemaID(key, s.keyID)
	return key
}

// send hands records to the client. Every promise is kept before Flush returns without an error, and refused then says what any of them said.
func (b *batch) send(ctx context.Context, cl *kgo.Client, records []kgo.Record) {
	promise := b.note
	for i := range records {
		cl.Produce(ctx, &records[i], promise)
	}
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

func (b *batch) refused() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// batchLimits are the largest batches, in bytes, that the topics of a resource take.
func (c *Cluster) batchLimits(ctx context.Context, resource string) (map[string]int, error) {
	limits := make(map[string]int)
	for _, topic := range []string{c.Topic(resource), c.DeadLetters(), c.Watermarks()} {
		settings, err := c.settings(ctx, topic)
		if err != nil {
			return nil, err
		}
		limit, err := strconv.Atoi(settings["max.message.bytes"])
		if err != nil {
			limit = 1000012 // what the client assumes: the broker's default
		}
		limits[topic] = min(max(limit, 1024), 8<<20)
	}
	return limits, nil
}
