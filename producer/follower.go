package producer

import (
	"context"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// follower is a topic and how far it was read. Following a topic is folding what was written since the last
// look, again and again.
type follower struct {
	c     *Cluster
	topic string

	id   [16]byte // of the topic that was read
	next []int64  // by partition, where the next look begins; nil before the first
}

// open returns the spans from the end of the last look to end. If the topic that is there now is another one
// than was read, or lost its end or partitions, or got more of them, which moves keys, then anew is true and
// the spans begin with the first record. The first look is anew.
func (f *follower) open(ctx context.Context, end lister) (spans []span, anew bool, err error) {
	info, err := f.c.meta.describe(ctx, f.topic, true)
	if err != nil {
		return nil, false, err
	}
	another := f.next == nil || info.isAnother(f.id)
	ends, err := f.c.meta.endsAgain(ctx, f.topic, end, func(ends []int64) bool {
		return !another && shortened(f.next, ends) != ""
	})
	if err != nil {
		return nil, false, err
	}
	starts, err := f.c.meta.offsets(ctx, f.topic, f.c.admin.ListStartOffsets)
	if err != nil {
		return nil, false, err
	}
	spans = spansOf(starts, ends)
	if anew = another || len(spans) != len(f.next) || shortened(f.next, ends) != ""; anew {
		f.id, f.next = info.id, nil
	}
	if f.id == ([16]byte{}) {
		f.id = info.id
	}
	goOn(spans, f.next)
	return spans, anew, nil
}

// fold is Cluster.fold over what open returned. After the last record the next look begins where this one
// ended.
func (f *follower) fold(ctx context.Context, spans []span) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		for record, err := range f.c.fold(ctx, f.topic, spans) {
			if !yield(record, err) || err != nil {
				return
			}
		}
		f.next = goOn(spans, nil)
	}
}
