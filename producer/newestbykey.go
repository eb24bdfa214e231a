package producer

import (
	"iter"
	"maps"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newest keeps the newest record of each key of a topic, reduced by keep.
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
	most       int // number of keys that are kept
	over       int // number of records of keys for which there was no room
	tombstones int // number of keys whose newest record is a tombstone
	partitions int
	home       func(*kgo.Record) int32
	keep       func(*kgo.Record) T
	byKey      map[string]newestRecord[T]
}

// newestRecord is the part of a record that is kept.
type newestRecord[T any] struct {
	partition int32
	offset    int64
	time      time.Time
	belonged  int  // see newest.belonged
	tombstone bool // kept as well, because an older record may come after it from another partition
	kept      T
}

func newNewest[T any](partitions, most int, keep func(*kgo.Record) T) newest[T] {
	return newest[T]{most: most, partitions: partitions, home: partitionsOf(partitions), keep: keep,
		byKey: make(map[string]newestRecord[T])}
}

// add keeps a record, unless a newer one of its key is known, or there is no room for its key. Within a
// partition the larger offset is newer. Between two partitions the larger newest.belonged is newer, and if
// they are equal, the later time. To make room it forgets tombstones, once there are many: only a key that is
// found in two partitions may then be shown as it was before its tombstone.
func (n *newest[T]) add(r *kgo.Record) {
	known, ok := n.byKey[string(r.Key)]
	belonged := n.belonged(r)
	if !ok && len(n.byKey) >= n.most && n.tombstones > n.most/8 {
		maps.DeleteFunc(n.byKey, func(_ string, r newestRecord[T]) bool { return r.tombstone })
		n.tombstones = 0
	}
	switch {
	case !ok && len(n.byKey) >= n.most:
		n.over++
		return
	case !ok:
	case known.partition == r.Partition && known.offset >= r.Offset:
		return
	case known.partition == r.Partition:
	case belonged < known.belonged, belonged == known.belonged && !r.Timestamp.After(known.time):
		return
	}
	found := newestRecord[T]{r.Partition, r.Offset, r.Timestamp, belonged, r.Value == nil, *new(T)}
	if known.tombstone {
		n.tombstones--
	}
	if found.tombstone {
		n.tombstones++
	} else {
		found.kept = n.keep(r)
	}
	n.byKey[string(r.Key)] = found
}

// headerPartitions is the header of a watermark that says how many partitions its topic had.
const headerPartitions = "partitions"

// belonged returns the number of partitions with which the key's own partition is the record's. The number is
// the header's, if that is at most the topic's present one. Without the header (an older version or a person
// wrote the record) it is the present number. Zero means that the record is in no partition of its key.
func (n *newest[T]) belonged(r *kgo.Record) int {
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

// all yields the newest record of each key, unless it is a tombstone.
func (n *newest[T]) all() iter.Seq2[string, newestRecord[T]] {
	return func(yield func(string, newestRecord[T]) bool) {
		for key, record := range n.byKey {
			if !record.tombstone && !yield(key, record) {
				return
			}
		}
	}
}
