package producer

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/schemas"
)

// sharing shares the resources out among the members of the group. In the group's protocol there are only
// partitions of a topic. So the resources stand there as partitions of the watermark topic, each under its
// place in schemas.Names, however many partitions that topic has.
type sharing struct {
	kgo.GroupBalancer // shares partitions out
	watermarks        string
}

// MemberBalancer implements kgo.GroupBalancer.
func (s sharing) MemberBalancer(members []kmsg.JoinGroupResponseMember) (
	kgo.GroupMemberBalancer, map[string]struct{}, error) {
	b, err := kgo.NewConsumerBalancer(s, members)
	return b, b.MemberTopics(), err
}

// Balance implements kgo.ConsumerBalancerBalance.
func (s sharing) Balance(b *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	topics[s.watermarks] = int32(len(schemas.Names()))
	return s.GroupBalancer.(kgo.ConsumerBalancerBalance).Balance(b, topics)
}

// shared returns the resources that stand for these partitions.
func shared(partitions []int32) (resources []string) {
	names := schemas.Names()
	for _, p := range partitions {
		if p >= 0 && int(p) < len(names) {
			resources = append(resources, names[p])
		}
	}
	return resources
}
