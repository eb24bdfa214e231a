package producer

// PartitionOf is the partition that a name belongs to.
var PartitionOf = partitionOf
