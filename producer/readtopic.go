package producer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// ReadTopic gives the committed records of r's topic to fold, from the offsets in from (by partition; nil: all there are) to where the topic
// ends now, in offset order within a partition, and returns those ends. Transactions that are open are waited for. A value that is not
// ours is given as a version that equals none: whoever compares must see that something stands there. A key that is not ours is no row,
// and passed over.
func ReadTopic(ctx context.Context, c *Cluster, r *schemas.Resource, from []int64, fold func(watermark.Published) error) (ends []int64, err error) {
	topic := c.Topic(r.Name)
	spans, err := c.whole(ctx, topic)
	if err != nil {
		return nil, err
	}
	ends = make([]int64, len(spans))
	for i := range spans {
		ends[spans[i].partition] = spans[i].to
		if int(spans[i].partition) < len(from) {
			spans[i].from = max(spans[i].from, from[spans[i].partition])
		}
	}
	readers := &valueReaders{c: c, resource: r, byID: make(map[int]*schemas.ValueReader)}
	home := homes(len(spans))
	err = c.readLog(ctx, topic, spans, func(record *kgo.Record) error {
		_, id, err := schemas.ReadKey(record.Key)
		if err != nil {
			return fold(watermark.Published{Foreign: true, Tombstone: record.Value == nil, Partition: record.Partition}) // no row has such a key
		}
		p := watermark.Published{ID: id, Tombstone: record.Value == nil, Time: schemas.InstantOf(record.Timestamp), Partition: record.Partition,
			Stray: home(record) != record.Partition}
		if !p.Tombstone && !p.Stray {
			value, err := readers.read(ctx, record.Value)
			switch {
			case errors.Is(err, errForeignValue):
				p.UpdatedAt, p.CreatedAt = schemas.MinInstant, schemas.MinInstant
			case err != nil:
				return err
			default:
				p.UpdatedAt, p.CreatedAt, p.Hash = value.UpdatedAt, value.CreatedAt, value.Hash
			}
		}
		return fold(p)
	})
	if err != nil {
		return nil, fmt.Errorf("reading topic %s: %w", topic, err)
	}
	return ends, nil
}

// ReadDeadLetters is the dead letters of a resource: key to watermark.DeadLetterHash of the row.
func ReadDeadLetters(ctx context.Context, c *Cluster, resource string) (map[string]uint64, error) {
	return c.lettersOf(ctx, resource)
}
