package producer

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/schemas"
)

// RowLog is the records of one row in the topic of its resource. It keeps one record of each partition at
// most, however long the topic is. One goroutine uses it.
type RowLog struct {
	log      follower
	resource *schemas.Resource
	id       int64

	rows *rowReader
	// home is the newest record of the row in its key's partition, or nil. strays are the newest ones in other
	// partitions, by partition.
	home      *RowRecord
	strays    map[int32]RowRecord
	records   int
	unread    int
	createdAt schemas.Instant
}

// NewRowLog returns a RowLog that has read nothing yet.
func NewRowLog(c *Cluster, r *schemas.Resource, id int64) *RowLog {
	return &RowLog{log: follower{c: c, topic: c.Topic(r.Name), all: true}, resource: r, id: id}
}

// Look reads the records that were committed since the look before, and waits for open transactions. The
// first look reads everything. It reads every partition, because another program may have written the row's
// key to a wrong one. Of other rows it decodes the key alone. progress hears how many records it has
// read, of how many at most.
func (l *RowLog) Look(ctx context.Context, progress func(done, of int64)) error {
	c := l.log.c
	spans, anew, err := l.log.open(ctx, c.admin.ListEndOffsets)
	if err != nil {
		return err
	}
	if anew {
		l.rows = newRowReader(c, target{resource: l.resource}, len(spans))
		l.home, l.strays = nil, map[int32]RowRecord{}
		l.records, l.unread, l.createdAt = 0, 0, schemas.MinInstant
	}
	done, all := int64(0), length(spans)
	for record, err := range l.log.fold(ctx, spans) {
		if err != nil {
			return err
		}
		done++
		progress(done, all)
		if err := l.take(ctx, record); err != nil {
			return err
		}
	}
	return nil
}

// take notes a record if it is of the row. If keys of two schema ids are in the topic, the row has two
// partitions, and the later record counts.
func (l *RowLog) take(ctx context.Context, record *kgo.Record) error {
	if record.Context == unread {
		l.unread++
	}
	if _, id, err := schemas.ReadKey(record.Key); err != nil || id != l.id {
		return nil //nolint:nilerr // no row has such a key
	}
	l.records++
	record.Value = bytes.Clone(record.Value) // out of the batch, which would be kept with it
	found, err := l.rows.rowRecord(ctx, record)
	switch {
	case err != nil:
		return err
	case l.rows.home(record) != record.Partition:
		l.strays[record.Partition] = found
	case l.home == nil || l.home.Partition == found.Partition || found.Time.After(l.home.Time):
		l.home = &found
		if !found.Tombstone && found.Err == nil {
			l.createdAt = found.Value.CreatedAt
		}
	}
	return nil
}

// Newest is the newest record of the row in its key's partition, if there is one.
func (l *RowLog) Newest() (RowRecord, bool) {
	if l.home == nil {
		return RowRecord{}, false
	}
	return *l.home, true
}

// Strays are the newest records with the row's key in partitions in which it does not belong, by partition:
// another program wrote them. Tombstones are not among them.
func (l *RowLog) Strays() []RowRecord {
	var strays []RowRecord
	for _, p := range slices.Sorted(maps.Keys(l.strays)) {
		if !l.strays[p].Tombstone {
			strays = append(strays, l.strays[p])
		}
	}
	return strays
}

// Records is the number of records of the row in the log, with strays and older versions that compaction
// has not taken out.
func (l *RowLog) Records() int { return l.records }

// Unread returns the number of batches that were not read. Each may contain a record of the row.
func (l *RowLog) Unread() int { return l.unread }

// CreatedAt is the row's created_at in the newest version that could be read, even if the row was deleted
// since. It is MinInstant if there is none.
func (l *RowLog) CreatedAt() schemas.Instant { return l.createdAt }
