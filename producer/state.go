package producer

import (
	"context"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// statePartition is the partition of the topics of state (watermarks, dead letters and requests) that
// storestream writes and reads. In one partition the record with the larger offset is the newer one, so a key
// has one newest record, however many partitions a person adds. What another program writes to other
// partitions is not read.
const statePartition = 0

// foldState folds the state partition of topic from its start to end.
func foldState(ctx context.Context, c *Cluster, topic string, end lister) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		spans, err := c.spans(ctx, topic, c.admin.ListStartOffsets, end)
		if err != nil {
			yield(nil, err)
			return
		}
		c.fold(ctx, topic, spans[statePartition:statePartition+1])(yield)
	}
}

// foldNewest folds record into the newest record of each key, as keep returns it. A tombstone takes its key
// out. It returns false if there was no room for the key, because most keys are there.
func foldNewest[T any](byKey map[string]T, most int, record *kgo.Record, keep func(*kgo.Record) T) bool {
	if record.Value == nil {
		delete(byKey, string(record.Key))
		return true
	}
	if _, known := byKey[string(record.Key)]; !known && len(byKey) >= most {
		return false
	}
	byKey[string(record.Key)] = keep(record)
	return true
}
