package producer

import (
	"context"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/wait"
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
// writing. An error is the last pair. While its caller deals with one answer of a broker, fold reads the
// next.
func (c *Cluster) fold(ctx context.Context, topic string, spans []span) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		answers := make(chan []*kgo.Record)
		var failed error // once answers is closed
		go func() {
			defer close(answers)
			defer wait.Recover("reading "+topic, &failed)
			failed = c.readSpans(ctx, topic, spans, answers)
		}()
		defer func() {
			cancel()
			for range answers { // dropped
			}
		}()
		for records := range answers {
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}

// readSpans sends the records of fold, as they come in answers.
func (c *Cluster) readSpans(ctx context.Context, topic string, spans []span,
	answers chan<- []*kgo.Record) error {
	for _, s := range spans {
		for r := (&logReader{c: c, topic: topic, span: s, at: s.from}); r.at < s.to; {
			records, err := r.next(ctx)
			if err != nil {
				return err
			}
			select {
			case answers <- records:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
