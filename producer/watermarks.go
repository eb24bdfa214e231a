package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// ReadWatermarks returns the newest watermark of each resource that every consumer can see. It waits for no
// transaction: one that was just committed, or is after another program's open one, may be missing.
// unreadable has the resources whose watermark cannot be read, and why.
func ReadWatermarks(ctx context.Context, c *Cluster) (
	marks map[string]watermark.Watermark, unreadable map[string]error, err error) {
	return readWatermarks(ctx, c, c.admin.ListCommittedOffsets)
}

// lastWatermark returns the newest watermark of resource up to end, nil if there is none.
func lastWatermark(ctx context.Context, c *Cluster, resource string, end lister) (
	*watermark.Watermark, error) {
	marks, unreadable, err := readWatermarks(ctx, c, end)
	if mark, ok := marks[resource]; ok {
		return &mark, err
	}
	return nil, errors.Join(err, unreadable[resource])
}

func readWatermarks(ctx context.Context, c *Cluster, end lister) (
	marks map[string]watermark.Watermark, unreadable map[string]error, err error) {
	newest := make(map[string]*kgo.Record)
	for record, err := range foldState(ctx, c, c.Watermarks(), end) {
		if err != nil {
			return nil, nil, err
		}
		foldWatermark(newest, record)
	}
	marks, unreadable = decodeWatermarks(newest)
	return marks, unreadable, nil
}

// foldWatermark folds a record of the watermark topic into the newest of each resource. It leaves out other
// keys, because another program may have written any number of them.
func foldWatermark(newest map[string]*kgo.Record, record *kgo.Record) {
	if slices.Contains(schemas.Names(), string(record.Key)) {
		foldNewest(newest, math.MaxInt, record, func(r *kgo.Record) *kgo.Record {
			return &kgo.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
				Value: bytes.Clone(r.Value)} // out of the batch, which would be kept with it, and with its key
		})
	}
}

// decodeWatermarks decodes the newest record of each resource. For a watermark of another storestream, the
// error of the watermark itself has the remedy.
func decodeWatermarks(newest map[string]*kgo.Record) (marks map[string]watermark.Watermark,
	unreadable map[string]error) {
	marks, unreadable = make(map[string]watermark.Watermark), make(map[string]error)
	for name, record := range newest {
		mark, err := watermark.Decode(name, record.Value)
		if err == nil {
			marks[name] = mark
			continue
		}
		remedy := ""
		if !errors.Is(err, watermark.ErrNewer) && !errors.Is(err, watermark.ErrOlder) {
			remedy = ": another program wrote it; an owner's next watermark takes its place, and if no instance " +
				"can take the resource over, take it out as docs/security.md says, \"A forged watermark\""
		}
		unreadable[name] = fmt.Errorf("topic %s, partition %d, offset %d: %w%s", record.Topic, record.Partition,
			record.Offset, err, remedy)
	}
	return marks, unreadable
}
