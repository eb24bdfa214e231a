package producer

import "github.com/twmb/franz-go/pkg/kgo"

// placed is a partitioner that leaves a record where place has put it, and any other to the one that it wraps.
type placed struct{ kgo.Partitioner }

// place is what a record's Partition is to be for the record to go to p. Below zero there is no partition, and a record that nobody has placed has zero.
func place(p int32) int32 { return -1 - p }

func (p placed) ForTopic(topic string) kgo.TopicPartitioner {
	return placedTopic{p.Partitioner.ForTopic(topic)}
}

type placedTopic struct{ kgo.TopicPartitioner }

func (p placedTopic) Partition(r *kgo.Record, n int) int {
	if at := int(place(r.Partition)); at >= 0 {
		return at % n // a topic whose partitions were changed is noticed before anything is written
	}
	return p.TopicPartitioner.Partition(r, n)
}
