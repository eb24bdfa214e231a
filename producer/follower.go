package producer

import (
	"cmp"
	"context"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// follower is a topic and how far it was read. To follow a topic is to fold the records since the last
// look, again and again.
type follower struct {
	c     *Cluster
	topic string
	all   bool // all partitions, else the state partition alone

	id   string  // of the topic that was read
	next []int64 // the offsets at which the next look begins, by partition
}

// open returns the spans from the end of the last look to end. If the topic is another one than was read,
// lost its end or partitions, or got more partitions, which moves keys, the spans begin with the first
// record. Then, and for the first look, the second result is true.
func (f *follower) open(ctx context.Context, end lister) (spans []span, anew bool, err error) {
	topic, err := f.c.describe(ctx, f.topic)
	if err != nil {
		return nil, false, err
	}
	if differ(topicID(topic), f.id) {
		f.next = nil
	}
	ends, err := f.c.endsAgain(ctx, f.topic, end, f.next)
	if err != nil {
		return nil, false, err
	}
	starts, err := f.c.offsets(ctx, f.topic, f.c.admin.ListStartOffsets)
	if err != nil {
		return nil, false, err
	}
	if spans = spansOf(starts, ends); !f.all {
		spans = spans[statePartition : statePartition+1]
	}
	if anew = len(spans) != len(f.next) || shortened(f.next, ends) != ""; anew {
		f.id, f.next = "", nil
	}
	f.id = cmp.Or(f.id, topicID(topic))
	goOn(spans, f.next)
	return spans, anew, nil
}

// fold is Cluster.fold over the spans that open returned. When it has yielded the last record, the next
// look begins there.
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
