package producer

import "github.com/twmb/franz-go/pkg/kgo"

// partitionsOf returns the function that says in which partition, of n, a record with its key belongs: by
// murmur2 of the key, as the Java client has it. It is for one goroutine.
func partitionsOf(n int) func(*kgo.Record) int32 {
	byKey := kgo.StickyKeyPartitioner(nil).ForTopic("")
	return func(r *kgo.Record) int32 { return int32(byKey.Partition(r, n)) }
}
