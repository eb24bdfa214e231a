package producer

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// followPause is the pause between two looks at a topic that is followed.
const followPause = 500 * time.Millisecond

// Tail yields committed records of r's topic: the last ones by their times, or all that it holds if last is
// negative. With follow, it goes on with those that are written then, until ctx ends. They come in offset
// order within a partition. Between partitions, the last ones come in the order of their times. An error is
// the last pair.
func Tail(ctx context.Context, c *Cluster, r *schemas.Resource, last int, follow bool) iter.Seq2[
	watermark.Published, error] {
	return func(yield func(watermark.Published, error) bool) {
		log := follower{c: c, topic: c.Topic(r.Name), all: true}
		rows := newRowReader(c, target{resource: r}, 1) // one, because it asks the registry once for each schema id
		for first := true; first || follow; first = false {
			if !first && wait.For(ctx, followPause) != nil {
				yield(watermark.Published{}, context.Cause(ctx))
				return
			}
			spans, _, err := log.open(ctx, c.admin.ListCommittedOffsets)
			if err != nil && !first && passing(err) {
				continue
			}
			if err != nil {
				yield(watermark.Published{}, err)
				return
			}
			rows.home = partitionsOf(len(spans))
			records := log.fold(ctx, spans)
			if first && last >= 0 {
				records = log.last(ctx, spans, last)
			}
			for p, err := range rows.decode(ctx, records, nil) {
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}
}

// last yields the n records of the spans that have the latest times, in the order of their times. A record
// counts as no earlier than those before it in its partition: a row that comes back may be older than its
// tombstone. The next look begins at the spans' ends. It may keep 2n records of each partition, because all
// of the last n may be in one. Markers, aborted records and records that compaction took out have offsets
// too. So it reads more than n offsets, and four times as many until it has n records.
func (f *follower) last(ctx context.Context, spans []span, n int) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		var all []*kgo.Record
		times := map[*kgo.Record]int64{}
		for _, s := range spans {
			begin, before := s.from, len(all)
			for back := int64(4*n + 16); n > 0; back *= 4 {
				s.from, all = max(begin, s.to-back), all[:before]
				for record, err := range f.c.fold(ctx, f.topic, []span{s}) {
					if err != nil {
						yield(nil, err)
						return
					}
					if all = append(all, record); len(all)-before >= 2*n {
						all = slices.Delete(all, before, len(all)-n)
					}
				}
				if len(all)-before >= n || s.from == begin {
					break
				}
			}
			latest := int64(math.MinInt64)
			for _, record := range all[before:] {
				latest = max(latest, record.Timestamp.UnixMilli())
				times[record] = latest
			}
		}
		slices.SortStableFunc(all, func(a, b *kgo.Record) int { return cmp.Compare(times[a], times[b]) })
		for _, record := range all[max(0, len(all)-n):] {
			if !yield(record, nil) {
				return
			}
		}
		f.next = goOn(spans, nil)
	}
}
