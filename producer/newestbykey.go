package producer

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newest folds the records of a topic into the newest of each key, of which it keeps what keep takes from it.
//
// A key is read in its own partition. Once its own partition has a record of it, records of it in other
// partitions are ignored. Otherwise a program could write a record to a partition that no owner writes that
// key to, and every takeover would believe it.
//
// But partitions may be added to the topic, and then a key has another partition than before. So an owner's
// watermark carries the number of partitions at the time (headerPartitions), from which follows the partition
// that was its key's. Between two partitions, the record with the larger number wins:
//
//	3 partitions  the watermark of orders is written to partition 0
//	5 partitions  to partition 2. Partition 0 has the older one, for 3
//	6 partitions  the key's own partition is 0 again. The one in it says 3, the one in partition 2 says 5
type newest[T any] struct {
	partitions int
	home       func(*kgo.Record) int32
	now        func() time.Time
	keep       func(*kgo.Record) T
	byKey      map[string]newestRecord[T]
}

// newestRecord is what is kept of a record.
type newestRecord[T any] struct {
	partition int32
	offset    int64
	time      time.Time
	belonged  int  // see newest.belonged
	tombstone bool // kept as well, because an older record may come after it from another partition
	kept      T
}

func newNewest[T any](partitions int, now func() time.Time, keep func(*kgo.Record) T) newest[T] {
	return newest[T]{partitions, partitionsOf(partitions), now, keep, make(map[string]newestRecord[T])}
}

// add keeps a record, unless a newer one of its key is known. Within a partition the larger offset is newer.
// Between two partitions the larger newest.belonged is newer, and if they are equal, the later time.
func (n newest[T]) add(r *kgo.Record) {
	known, ok := n.byKey[string(r.Key)]
	belonged := n.belonged(r)
	switch {
	case !ok:
	case known.partition == r.Partition && known.offset >= r.Offset:
		return
	case known.partition == r.Partition:
	case belonged < known.belonged, belonged == known.belonged && !later(r.Timestamp, known.time, n.now()):
		return
	}
	found := newestRecord[T]{r.Partition, r.Offset, r.Timestamp, belonged, r.Value == nil, *new(T)}
	if !found.tombstone {
		found.kept = n.keep(r)
	}
	n.byKey[string(r.Key)] = found
}

// headerPartitions is the header of a watermark that says how many partitions its topic had.
const headerPartitions = "partitions"

// belonged returns the number of partitions with which the key's own partition is the record's. The number is
// the header's, if that is at most the topic's present one. Without the header (an older version or a person
// wrote the record) it is the present number. Zero means that the record is in no partition of its key.
func (n newest[T]) belonged(r *kgo.Record) int {
	for _, h := range r.Headers {
		count, err := strconv.Atoi(string(h.Value))
		if h.Key == headerPartitions && err == nil && count > 0 && count <= n.partitions &&
			partitionOf(string(r.Key), count) == r.Partition {
			return count
		}
	}
	if n.home(r) == r.Partition {
		return n.partitions
	}
	return 0
}

// later reports whether a record of time t is newer than one of time other, if neither is known to have been
// in its key's partition. A time ahead of the reader's clock counts as older.
func later(t, other, now time.Time) bool {
	if ahead := t.After(now); ahead != other.After(now) {
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
	return &follower[T]{c: c, topic: topic, newest: newNewest(1, c.cfg.Now, keep)}
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
	if f.id != info.id || f.shrunk(spans) || len(spans) != f.newest.partitions { // keys move
		f.id, f.next, f.over, changed = info.id, nil, 0, true
		f.newest = newNewest(len(spans), f.newest.now, f.newest.keep)
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
