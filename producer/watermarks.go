package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
)

// UnreadableError is records in the place of watermarks that another program, or another storestream,
// wrote.
type UnreadableError struct {
	ByResource map[string]error // with topic, partition and offset
}

func (e *UnreadableError) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap returns the error of each, in the order of the resources' names.
func (e *UnreadableError) Unwrap() []error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(e.ByResource)) {
		all = append(all, e.ByResource[name])
	}
	return all
}

// Concerning returns err, of ReadWatermarks, reduced to these resources: an unreadable watermark of another
// one does not fail them.
func Concerning(err error, resources ...string) error {
	all, ok := errors.AsType[*UnreadableError](err)
	if !ok {
		return err
	}
	theirs := maps.Clone(all.ByResource)
	maps.DeleteFunc(theirs, func(name string, _ error) bool { return !slices.Contains(resources, name) })
	if len(theirs) == 0 {
		return nil
	}
	return &UnreadableError{theirs}
}

// ReadWatermarks returns the newest watermark of each resource that every consumer can see. It waits for no
// transaction: one that was just committed, or is after another program's open one, may be missing. With an
// *UnreadableError it returns all the others.
func ReadWatermarks(ctx context.Context, c *Cluster) (map[string]watermark.Watermark, error) {
	spans, err := c.toStableOffset(ctx, c.Watermarks())
	if err != nil {
		return nil, err
	}
	return readWatermarks(ctx, c, spans, func(string) bool { return true })
}

// lastWatermark returns the newest watermark of resource in the extent of the watermark topic, nil if there
// is none.
func lastWatermark(ctx context.Context, c *Cluster, resource string,
	extent func(ctx context.Context, topic string) ([]span, error)) (*watermark.Watermark, error) {
	spans, err := extent(ctx, c.Watermarks())
	if err != nil {
		return nil, err
	}
	marks, err := readWatermarks(ctx, c, spans, func(name string) bool { return name == resource })
	if mark, ok := marks[resource]; ok && err == nil {
		return &mark, nil
	}
	return nil, err
}

func readWatermarks(ctx context.Context, c *Cluster, spans []span, wanted func(resource string) bool) (
	map[string]watermark.Watermark, error) {
	found := newNewest(len(spans), maxFollowed, copyValue)
	for record, err := range c.fold(ctx, c.Watermarks(), spans) {
		if err != nil {
			return nil, err
		}
		if wanted(string(record.Key)) {
			found.add(record)
		}
	}
	marks := make(map[string]watermark.Watermark)
	wrong := map[string]error{}
	for name, record := range found.all() {
		mark, err := watermark.Decode(name, record.kept)
		if err == nil {
			marks[name] = mark
		} else {
			wrong[name] = fmt.Errorf("topic %s, partition %d, offset %d: %w%s",
				c.Watermarks(), record.partition, record.offset, err, unreadableRemedy(err))
		}
	}
	if len(wrong) > 0 {
		return marks, &UnreadableError{wrong}
	}
	return marks, nil
}

// unreadableRemedy is the remedy for a watermark that cannot be read. For one of another storestream,
// the error itself has it.
func unreadableRemedy(err error) string {
	if errors.Is(err, watermark.ErrNewer) || errors.Is(err, watermark.ErrOlder) {
		return ""
	}
	return ": another program wrote it; an owner's next watermark takes its place, and if no instance can " +
		"take the resource over, take it out as docs/security.md says, \"When somebody wrote to store.watermarks " +
		"or store.requests\""
}

// copyValue copies the record's value out of the batch that it stands in.
func copyValue(r *kgo.Record) []byte { return bytes.Clone(r.Value) }
