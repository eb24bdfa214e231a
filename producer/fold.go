package producer

import (
	"context"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
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

// partitionsAtOnce limits how many partitions fold fetches at a time.
const partitionsAtOnce = 8

// fold yields the committed records in the spans of topic, in offset order within a partition. Everything
// that storestream reads from Kafka, it reads here. What differs is the value: which topic, from which
// offsets, to which ends. The ends were noted before, so fold comes to an end while others go on writing.
//
// Partitions are fetched at the same time, but only one answer at a time is unpacked. An error is the last
// pair. If the consumer leaves the loop, fold stops its readers and waits for them.
func (c *Cluster) fold(ctx context.Context, topic string, spans []span) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		answers := make(chan *logReader)
		var failed error // read after answers is closed
		go func() {
			defer close(answers)
			group, ctx := errgroup.WithContext(ctx)
			group.SetLimit(partitionsAtOnce)
			for _, s := range spans {
				group.Go(func() error { return newLogReader(c, topic, s).run(ctx, answers) })
			}
			failed = group.Wait()
		}()
		defer func() {
			cancel()
			for range answers { // until the readers have ended
			}
		}()
		for r := range answers {
			records, err := r.unpack()
			if err != nil {
				yield(nil, err)
				return
			}
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
			r.taken <- struct{}{}
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}
