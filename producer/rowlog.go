package producer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/schemas"
)

// RowLog is what the topic of a resource holds of one row. It keeps one record of each partition at most,
// however long the topic is. One goroutine uses it.
type RowLog struct {
	cluster  *Cluster
	resource *schemas.Resource
	id       int64

	next []int64 // by partition, where the next look begins
	rows *rowReader
	// homes and strays are the newest records of the row by partition: where its key belongs, and where it does
	// not. One row has two homes where keys of two schema ids are in the topic.
	homes, strays map[int32]RowRecord
	records       int
	unread        int
	createdAt     schemas.Instant
}

// NewRowLog has looked at nothing yet.
func NewRowLog(c *Cluster, r *schemas.Resource, id int64) *RowLog {
	return &RowLog{cluster: c, resource: r, id: id, createdAt: schemas.MinInstant,
		homes: map[int32]RowRecord{}, strays: map[int32]RowRecord{}}
}

// Look reads what was committed since the look before (the first: all that there is), and waits for open
// transactions. It reads every partition: a record of the row in a wrong one is found nowhere else. Of other
// rows it looks at the key alone. progress hears how many offsets it has gone through, of how many.
func (l *RowLog) Look(ctx context.Context, progress func(done, of int64)) error {
	topic := l.cluster.Topic(l.resource.Name)
	spans, err := l.cluster.meta.toHighWatermark(ctx, topic)
	if err != nil {
		return err
	}
	if l.rows == nil {
		l.rows = newRowReader(l.cluster, target{resource: l.resource}, len(spans))
	}
	ends, at := goOn(spans, l.next), make([]int64, len(spans))
	for p := range spans {
		at[p] = spans[p].from
	}
	done, all := int64(0), length(spans)
	err = readLog(ctx, l.cluster, topic, spans, func(record *kgo.Record) error {
		done += record.Offset + 1 - at[record.Partition]
		at[record.Partition] = record.Offset + 1
		progress(done, all)
		return l.take(ctx, record)
	})
	if err != nil {
		return fmt.Errorf("reading topic %s: %w", topic, err)
	}
	l.next = ends
	return nil
}

// take notes a record if it is of the row.
func (l *RowLog) take(ctx context.Context, record *kgo.Record) error {
	if record.Context == unread {
		l.unread++
	}
	_, id, err := schemas.ReadKey(record.Key)
	if err != nil || id != l.id {
		return nil //nolint:nilerr // no row has such a key
	}
	l.records++
	found := RowRecord{Partition: record.Partition, Offset: record.Offset, Time: record.Timestamp,
		ID: id, Tombstone: record.Value == nil}
	if !found.Tombstone {
		found.Value, found.Err = l.rows.value(ctx, bytes.Clone(record.Value))
		if found.Err != nil && !errors.Is(found.Err, errNotOurs) { // a registry that does not answer
			return found.Err
		}
	}
	if l.rows.home(record) != record.Partition {
		l.strays[record.Partition] = found
		return nil
	}
	l.homes[record.Partition] = found
	if !found.Tombstone && found.Err == nil {
		l.createdAt = found.Value.CreatedAt
	}
	return nil
}

// Newest is the newest record of the row where its key belongs; false: there is none.
func (l *RowLog) Newest() (RowRecord, bool) {
	if len(l.homes) == 0 {
		return RowRecord{}, false
	}
	newer := func(a, b RowRecord) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(b.Partition, a.Partition))
	}
	return slices.MaxFunc(slices.Collect(maps.Values(l.homes)), newer), true
}

// Strays are the newest records with the row's key in partitions where it does not belong, by partition:
// another program wrote them. Those over which there is a tombstone are not among them.
func (l *RowLog) Strays() []RowRecord {
	var strays []RowRecord
	for _, p := range slices.Sorted(maps.Keys(l.strays)) {
		if !l.strays[p].Tombstone {
			strays = append(strays, l.strays[p])
		}
	}
	return strays
}

// Records is how many records of the row the log holds, strays and older versions that compaction has not
// taken out included.
func (l *RowLog) Records() int { return l.records }

// Unread returns the number of batches that were not read. Each may contain a record of the row.
func (l *RowLog) Unread() int { return l.unread }

// CreatedAt is the row's created_at in the newest version that could be read, also where it was deleted
// since; MinInstant: there is none.
func (l *RowLog) CreatedAt() schemas.Instant { return l.createdAt }
