package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// batch is the records of one transaction, in three allocations and not three a row.
type batch struct {
	records []kgo.Record
	logs    [2]*writtenLog // of rows and dead letters

	mu     sync.Mutex
	failed error // the first refusal of a record
	// behind is the log in which a record got an offset that it had passed before, or nil. Once such a record is
	// committed the log can be as long as it was, and no longer shows that it lost its end.
	behind *writtenLog
	// data and letters are the offsets, by partition, that the two logs have reached once the batch is
	// committed: after its records and the marker that ends the transaction.
	data, letters []int64
}

// recordMillis is the Kafka time of a row stamped t. Negative times have meanings of their own in Kafka (-1
// is no time), so times before 1970 are written as 1970.
func recordMillis(t schemas.Instant) int64 { return max(t.Millis(), 0) }

// recordTime is recordMillis as a record has it.
func recordTime(t schemas.Instant) time.Time { return time.UnixMilli(recordMillis(t)) }

// fill returns the records of tx, each with its partition: a key stays in one, however many the topic has by
// now. A row that is stamped later than the time of writing carries that time. The
// poller read its clock at another moment, so it may have expected another one. So fill moves the mark's
// DedupFrom back to it.
func (s *Session) fill(tx watermark.Transaction, mark *watermark.Watermark) *batch {
	t, rows := &s.target, len(tx.Rows)+len(tx.Deletes)+len(tx.Strays)
	b := &batch{records: make([]kgo.Record, 0, rows+len(tx.DeadLetters)),
		logs: [2]*writtenLog{&s.data, &s.letters}, data: slices.Clone(s.data.ends),
		letters: slices.Clone(s.letters.ends)}
	keys := make([]byte, 0, rows*watermark.MaxKeySize) // each key is a part of it
	byKey, partitions := kgo.StickyKeyPartitioner(nil).ForTopic(""), s.data.partitions
	for i := range rows {
		var id int64
		var value []byte
		var headers []kgo.RecordHeader
		at, stray := mark.Written, int32(-1)
		switch gone := i - len(tx.Rows); {
		case gone < 0:
			row := &tx.Rows[i]
			schemas.SetSchemaID(row.Value, t.valueID)
			id, value, headers = row.ID, row.Value, t.headers
			if at = row.UpdatedAt; at > mark.Written {
				at, mark.DedupFrom = mark.Written, min(mark.DedupFrom, mark.Written)
			}
		case gone < len(tx.Deletes):
			id = tx.Deletes[gone]
		default:
			id, stray = tx.Strays[gone-len(tx.Deletes)].ID, tx.Strays[gone-len(tx.Deletes)].Partition
		}
		from := len(keys)
		keys = schemas.AppendKey(keys, id)
		schemas.SetSchemaID(keys[from:], t.keyID)
		b.records = append(b.records, kgo.Record{Topic: t.topic, Key: keys[from:len(keys):len(keys)], Value: value,
			Headers: headers, Timestamp: recordTime(at), Partition: stray})
		if record := &b.records[i]; stray < 0 {
			record.Partition = int32(byKey.Partition(record, partitions))
		}
	}
	for _, letter := range tx.DeadLetters {
		record := t.deadLetter(s.letters.name, letter)
		record.Timestamp = recordTime(mark.Written)
		record.Partition = statePartition
		b.records = append(b.records, record)
	}
	return b
}

// send hands records to the client and waits until the brokers have each of them, and the client shows that.
// It checks every promise, because the end of a transaction succeeds even if its records failed. Records of
// one topic stand together, and there are two topics at most.
func (b *batch) send(ctx context.Context, cl *kgo.Client, records []kgo.Record) error {
	promise := b.note
	for i := range records {
		cl.Produce(ctx, &records[i], promise)
	}
	flushed := cl.Flush(ctx) // nil: every promise was kept or refused
	b.mu.Lock()
	failed := b.failed
	b.mu.Unlock()
	if flushed != nil {
		return errors.Join(context.Cause(ctx), failed)
	}
	if failed != nil || len(records) == 0 {
		return failed
	}
	return errors.Join(awaitPartitions(ctx, cl, records[0].Topic),
		awaitPartitions(ctx, cl, records[len(records)-1].Topic))
}

// note takes in the brokers' answer for a record. A broker that knew it as a duplicate need not know its
// offset.
func (b *batch) note(r *kgo.Record, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		if b.failed == nil {
			b.failed = fmt.Errorf("a record of topic %s: %w", r.Topic, err)
		}
		return
	}
	for i, reached := range [2][]int64{b.data, b.letters} {
		log := b.logs[i]
		if r.Topic != log.name || r.Offset < 0 || int(r.Partition) >= len(log.ends) {
			continue
		}
		if r.Offset < log.ends[r.Partition] {
			b.behind = log
		}
		reached[r.Partition] = max(reached[r.Partition], r.Offset+2)
	}
}
