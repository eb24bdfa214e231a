package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/schemas"
)

// RowRecord is a committed record of a data topic.
type RowRecord struct {
	Partition int32
	Offset    int64
	Time      time.Time // the Kafka time
	ID        int64
	Tombstone bool
	Value     schemas.Value // good until the function that got it returns; empty for a tombstone
	Err       error         // why it is none of storestream's; ID is 0 if the key is why
}

// TailRange says what Tail gives.
type TailRange struct {
	// Beginning: all that the topic holds comes first; else the Last records, by their time.
	Beginning bool
	Last      int
	// Follow: then it goes on with what is written.
	Follow bool
}

// Tail gives committed records of r's topic to each, until each returns an error (which it returns), ctx
// ends, or there are no more. They come in offset order within a partition, but for the last ones, which come
// in the order of their times.
func Tail(ctx context.Context, c *Cluster, r *schemas.Resource, which TailRange,
	each func(RowRecord) error) error {
	topic := c.Topic(r.Name)
	spans, err := c.meta.toStableOffset(ctx, topic)
	if err != nil {
		return err
	}
	rows := newRowReader(c, target{resource: r}, len(spans))
	give := func(record *kgo.Record) error {
		t := RowRecord{Partition: record.Partition, Offset: record.Offset, Time: record.Timestamp,
			Tombstone: record.Value == nil}
		if record.Context == unread {
			t.Tombstone, t.Err = false, errUnread
		} else if _, t.ID, t.Err = schemas.ReadKey(record.Key); t.Err == nil && !t.Tombstone {
			t.Value, t.Err = rows.value(ctx, record.Value)
			if t.Err != nil && !errors.Is(t.Err, errNotOurs) { // a registry that does not answer
				return fmt.Errorf("reading topic %s: %w", topic, t.Err)
			}
		}
		return each(t)
	}
	if which.Last > 0 {
		last, err := lastRecords(ctx, c, topic, spans, which.Last)
		if err != nil {
			return err
		}
		for _, record := range last {
			if err := give(record); err != nil {
				return err
			}
		}
	}
	for p := range spans {
		if !which.Beginning {
			spans[p].from = spans[p].to
		}
		if which.Follow {
			spans[p].to = forEver
		}
	}
	return readLog(ctx, c, topic, spans, give)
}

// lastRecords is the n records of the spans that have the latest times, in the order of their times. It keeps
// n or more of each partition, for nobody knows which partition has how many of them.
func lastRecords(ctx context.Context, c *Cluster, topic string, spans []span, n int) ([]*kgo.Record, error) {
	var all []*kgo.Record
	for _, s := range spans {
		// Markers, aborted records and what compaction took out have offsets too, so more offsets than records
		// are read, and more of them until that suffices.
		for back := int64(4*n + 16); ; back *= 4 {
			part := span{s.partition, max(s.from, s.to-back), s.to}
			var last []*kgo.Record
			err := readLog(ctx, c, topic, []span{part}, func(record *kgo.Record) error {
				if last = append(last, record); len(last) >= 2*n {
					last = slices.Delete(last, 0, len(last)-n)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			if len(last) >= n || part.from == s.from {
				all = append(all, last[max(0, len(last)-n):]...)
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
	return all[max(0, len(all)-n):], nil
}
