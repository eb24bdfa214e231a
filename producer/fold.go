package producer

import (
	"context"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// span is a part of one partition: offsets from (inclusive) to (exclusive).
type span struct {
	partition int32
	from, to  int64
}

// goOn moves the begin of each span up to the offset in from, by partition. It returns the spans' ends: from,
// the next time.
func goOn(spans []span, from []int64) (ends []int64) {
	for p := range spans {
		if p < len(from) {
			spans[p].from = max(spans[p].from, from[p])
		}
		ends = append(ends, spans[p].to)
	}
	return ends
}

// length is the number of offsets in spans.
func length(spans []span) (n int64) {
	for _, s := range spans {
		n += max(0, s.to-s.from)
	}
	return n
}

// fold yields the committed records in the spans of topic, one span after the other, each in offset order.
// Everything that storestream reads from Kafka, it reads here. What differs is the value: which topic, from
// which offsets, to which ends. The ends were noted before, so fold comes to an end while others go on
// writing. An error is the last pair.
func (c *Cluster) fold(ctx context.Context, topic string, spans []span) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		for _, s := range spans {
			for r := (&logReader{c: c, topic: topic, span: s, at: s.from}); r.at < s.to; {
				records, err := r.next(ctx)
				if err != nil {
					yield(nil, err)
					return
				}
				for _, record := range records {
					if !yield(record, nil) {
						return
					}
				}
			}
		}
	}
}
