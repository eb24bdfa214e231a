package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
)

// ReadWatermarks returns the newest watermark of each resource that every consumer can see. It waits for no
// transaction: one that was committed this moment, or stands behind somebody's open one, may be missing.
func ReadWatermarks(ctx context.Context, c *Cluster) (map[string]watermark.Watermark, error) {
	spans, err := c.meta.toStableOffset(ctx, c.Watermarks())
	if err != nil {
		return nil, err
	}
	return readWatermarks(ctx, c, spans, func(string) bool { return true })
}

// lastWatermark reads the spans of the watermark topic for the newest watermark of resource, nil if none.
func lastWatermark(ctx context.Context, c *Cluster, resource string, spans []span) (
	*watermark.Watermark, error) {
	marks, err := readWatermarks(ctx, c, spans, func(name string) bool { return name == resource })
	if mark, ok := marks[resource]; ok && err == nil {
		return &mark, nil
	}
	return nil, err
}

func readWatermarks(ctx context.Context, c *Cluster, spans []span, wanted func(resource string) bool) (
	map[string]watermark.Watermark, error) {
	found := newNewest(copyValue)
	err := readLog(ctx, c, c.Watermarks(), spans, func(r *kgo.Record) error { found.add(r); return nil })
	if err != nil {
		return nil, err
	}
	marks := make(map[string]watermark.Watermark)
	var wrong []error
	for name, record := range found.all() {
		if !wanted(name) {
			continue
		}
		if marks[name], err = watermark.Decode(name, record.kept); err != nil {
			delete(marks, name)
			wrong = append(wrong, fmt.Errorf("topic %s, partition %d, offset %d: %w",
				c.Watermarks(), record.partition, record.offset, err))
		}
	}
	return marks, errors.Join(wrong...)
}

// copyValue copies the record's value out of the batch that it stands in.
func copyValue(r *kgo.Record) []byte { return bytes.Clone(r.Value) }
