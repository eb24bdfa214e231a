package producer

// PartitionOf is the partition that a name belongs to.
var PartitionOf = partitionOf

// ShortLogPause is between two looks at a log that seems to lack its end.
var ShortLogPause = &shortLogPause

// AwaitPartitions is what a transaction waits for before it commits.
var AwaitPartitions = awaitPartitions
