package producer

import "github.com/twmb/franz-go/pkg/kgo"

// PartitionOf is the partition that a name belongs to.
func PartitionOf(key string, n int) int32 { return partitionsOf(n)(&kgo.Record{Key: []byte(key)}) }

// ShortLogPause is between two looks at a log that seems to lack its end.
var ShortLogPause = &shortLogPause

// AwaitPartitions is what a transaction waits for before it commits.
var AwaitPartitions = awaitPartitions
