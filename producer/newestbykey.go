package producer

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newest folds the records of a topic into the newest of each key, of which it keeps what keep takes from it.
type newest[T any] struct {
	now   func() time.Time
	keep  func(*kgo.Record) T
	byKey map[string]newestRecord[T]
}

// newestRecord is what is kept of a record.
type newestRecord[T any] struct {
	partition int32
	offset    int64
	time      time.Time
	tombstone bool // kept as well, because an older record may come after it from another partition
	kept      T
}

func newNewest[T any](now func() time.Time, keep func(*kgo.Record) T) newest[T] {
	return newest[T]{now, keep, make(map[string]newestRecord[T])}
}

// add takes in a record, unless a newer one of its key is known: by offset within a partition, and between
// two as later says. (A key is found in two partitions where somebody has added some to the topic, or wrote
// to another than the key's.)
func (n newest[T]) add(r *kgo.Record) {
	known, ok := n.byKey[string(r.Key)]
	switch {
	case !ok:
	case known.partition == r.Partition && known.offset >= r.Offset,
		known.partition != r.Partition && !later(r.Timestamp, known.time, n.now()):
		return
	}
	found := newestRecord[T]{r.Partition, r.Offset, r.Timestamp, r.Value == nil, *new(T)}
	if !found.tombstone {
		found.kept = n.keep(r)
	}
	n.byKey[string(r.Key)] = found
}

// aheadAtMost is how far ahead of ours the clock of somebody else who writes may be.
const aheadAtMost = time.Hour

// later says whether a record of time t is newer than one of time other in another partition: the later time,
// but one that is far ahead of the reader's clock counts as older than one that is not. Else a record that
// somebody wrote once, stamped in the year 9999, into another partition than its key's would be believed for
// ever: at each takeover the owner's watermarks would be passed over for the forged one.
//
// A watermark's time is its Written, which grows from one of a resource to the next (Session.stamp). It is
// far ahead only where its owner's clock is, and brokers from 4.0 on refuse it then
// (message.timestamp.after.max.ms). Where they do not, and partitions were added besides, a takeover may go
// by the watermark in the partition that was the key's before: it reads again what was read since.
func later(t, other, now time.Time) bool {
	limit := now.Add(aheadAtMost)
	if ahead := t.After(limit); ahead != other.After(limit) {
		return !ahead
	}
	return t.After(other)
}

// forgetTombstones makes room. Only a key that is found in two partitions may then be shown as it was before
// its tombstone.
func (n newest[T]) forgetTombstones() {
	maps.DeleteFunc(n.byKey, func(_ string, r newestRecord[T]) bool { return r.tombstone })
}

// all is the newest record of each key, without those of which the newest is a tombstone.
func (n newest[T]) all() iter.Seq2[string, newestRecord[T]] {
	return func(yield func(string, newestRecord[T]) bool) {
		for key, record := range n.byKey {
			if !record.tombstone && !yield(key, record) {
				return
			}
		}
	}
}

// follower keeps the newest record of each key of a topic, from one look to the next.
type follower[T any] struct {
	c      *Cluster
	topic  string
	newest newest[T]

	id   [16]byte // of the topic that was read; the next look begins anew with another
	next []int64  // by partition, where the next look begins
	over int      // records of keys that it had no room for
}

const (
	// maxFollowed bounds what a follower keeps: a topic with more dead letters is past listing.
	maxFollowed = 100_000
	// forgetEvery so many records without room it forgets tombstones again, which looks at all that it keeps.
	forgetEvery = 10_000
)

func newFollower[T any](c *Cluster, topic string, keep func(*kgo.Record) T) *follower[T] {
	return &follower[T]{c: c, topic: topic, newest: newNewest(c.cfg.Now, keep)}
}

// look reads up to the last stable offset what was written since the last look. changed: it has read
// something, or forgotten what another topic held. It may say so beside an error.
func (f *follower[T]) look(ctx context.Context) (changed bool, err error) {
	info, err := f.c.meta.describe(ctx, f.topic, false)
	if err != nil {
		return false, err
	}
	spans, err := f.c.meta.toStableOffset(ctx, f.topic)
	if err != nil {
		return false, err
	}
	if f.id != info.id || f.shrunk(spans) {
		f.id, f.next, f.over, changed = info.id, nil, 0, true
		clear(f.newest.byKey)
	}
	ends := goOn(spans, f.next)
	err = readLog(ctx, f.c, f.topic, spans, func(r *kgo.Record) error {
		changed = true
		f.add(r)
		return nil
	})
	if err != nil {
		return changed, err
	}
	f.next = ends
	return changed, nil
}

// shrunk says that the topic lost its end, or partitions: it is not the log that was read.
func (f *follower[T]) shrunk(spans []span) bool {
	return len(spans) < len(f.next) || slices.ContainsFunc(spans, func(s span) bool {
		return int(s.partition) < len(f.next) && s.to < f.next[s.partition]
	})
}

func (f *follower[T]) add(r *kgo.Record) {
	if _, known := f.newest.byKey[string(r.Key)]; !known && len(f.newest.byKey) >= maxFollowed {
		if f.over%forgetEvery == 0 {
			f.newest.forgetTombstones()
		}
		if f.over++; len(f.newest.byKey) >= maxFollowed {
			return
		}
	}
	f.newest.add(r)
}
