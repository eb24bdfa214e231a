package producer

import (
	"context"
	"errors"
	"fmt"
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
	Value     schemas.Value // empty for a tombstone
	Err       error         // why another program must have written it. ID is 0 if the key is the reason
}

// rowRecord decodes a record for people. Its error is that of a registry that does not answer.
func (r *rowReader) rowRecord(ctx context.Context, record *kgo.Record) (RowRecord, error) {
	row := RowRecord{Partition: record.Partition, Offset: record.Offset, Time: record.Timestamp,
		Tombstone: record.Value == nil}
	if record.Context == unread {
		row.Tombstone, row.Err = false, errUnread
		return row, nil
	}
	if _, row.ID, row.Err = schemas.ReadKey(record.Key); row.Err != nil || row.Tombstone {
		return row, nil //nolint:nilerr // the error is in row
	}
	row.Value, row.Err = r.value(ctx, record.Value)
	if row.Err != nil && !errors.Is(row.Err, errNotOurs) {
		return row, fmt.Errorf("reading topic %s: %w", record.Topic, row.Err)
	}
	return row, nil
}
