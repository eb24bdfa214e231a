package producer

// PartitionOf is the partition that a name belongs to.
var PartitionOf = partitionOf

// AwaitPartitions is what a transaction waits for before it commits.
var AwaitPartitions = awaitPartitions
