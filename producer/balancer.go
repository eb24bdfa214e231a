package producer

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Member is what an instance tells the others about itself.
type Member struct {
	Instance  string   `json:"instance"`
	Resources []string `json:"resources"` // enabled there, sorted
}

// cardMark introduces a Member in the metadata of a group member, behind what the balancer keeps there.
var cardMark = []byte("\x00storestream:")

// balancer is cooperative-sticky with the member's card added to what the group keeps of each member. Nobody balances by it: it is for `watermark list`
// and the page, which say when instances differ in what they would poll.
type balancer struct {
	kgo.GroupBalancer
	card []byte
}

func newBalancer(m Member) balancer {
	m.Resources = slices.Sorted(slices.Values(m.Resources))
	card, _ := json.Marshal(m)
	return balancer{kgo.CooperativeStickyBalancer(), append(bytes.Clone(cardMark), card...)}
}

func (b balancer) JoinGroupMetadata(topics []string, current map[string][]int32, generation int32) []byte {
	plain := b.GroupBalancer.JoinGroupMetadata(topics, current, generation)
	var meta kmsg.ConsumerMemberMetadata
	if err := meta.ReadFrom(plain); err != nil {
		return plain
	}
	meta.UserData = append(meta.UserData, b.card...)
	return meta.AppendTo(nil)
}

// readCard is the Member in a group member's metadata; false where it is not one of ours.
func readCard(userData []byte) (Member, bool) {
	i := bytes.LastIndex(userData, cardMark)
	if i < 0 {
		return Member{}, false
	}
	var m Member
	err := json.Unmarshal(userData[i+len(cardMark):], &m)
	return m, err == nil
}
