package producer

import "github.com/twmb/franz-go/pkg/kgo"

// partitioner takes murmur2 of the key, as the Java client does, but leaves a pinned record in its
// partition.
func partitioner() kgo.Partitioner {
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		byKey := kgo.StickyKeyPartitioner(nil).ForTopic(topic)
		return func(r *kgo.Record, n int) int {
			if r.Partition < 0 {
				return int(pinned(r.Partition)) % n // its partitions may have become fewer
			}
			return byKey.Partition(r, n)
		}
	})
}

// anywhere is the partition of a record that is not pinned.
const anywhere = -1

// pinned is the Record.Partition that sends a record to partition p, and the other way round. It is negative,
// because a record that is not pinned has 0 there, which is a partition. It is 0 for anywhere.
func pinned(p int32) int32 { return -1 - p }

// partitionsOf returns the function that says in which partition, of n, a record with its key belongs. It is
// for one goroutine.
func partitionsOf(n int) func(*kgo.Record) int32 {
	byKey := kgo.StickyKeyPartitioner(nil).ForTopic("")
	return func(r *kgo.Record) int32 { return int32(byKey.Partition(r, n)) }
}

// partitionOf is the partition, of n, that a key belongs in.
func partitionOf(key string, n int) int32 { return partitionsOf(n)(&kgo.Record{Key: []byte(key)}) }
