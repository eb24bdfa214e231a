package producer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/internal/wait"
)

// Owner is a member of the group. Its JSON is the card that it shows the others.
type Owner struct {
	Instance  string   `json:"instance"`
	Resources []string `json:"resources"` // enabled there, sorted
	Owned     []string `json:"-"`         // of these, those that are its own
}

// ErrSharing means that the group is sharing its resources out, so no resource has a known owner.
var ErrSharing = errors.New("the group is sharing its resources out")

// Owners asks the group who has which resource. It leaves out members that are not storestream. ErrSharing
// means that the group has members, but a broker does not describe them now.
func Owners(ctx context.Context, c *Cluster) ([]Owner, error) {
	var groups kadm.DescribedGroups
	err := awaitCoordinator(ctx, func() (err error) {
		if groups, err = c.admin.DescribeGroups(ctx, c.cfg.Group); err == nil {
			err = groups.Error()
		}
		if shards, ok := errors.AsType[*kadm.ShardErrors](err); ok && len(shards.Errs) > 0 {
			err = shards.Errs[0].Err // one group is asked of one broker
		}
		return err
	})
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil // it has no members, and had none lately
	}
	if state := groups[c.cfg.Group].State; err == nil &&
		(state == "PreparingRebalance" || state == "CompletingRebalance") {
		err = ErrSharing
	}
	if err != nil {
		return nil, fmt.Errorf("describing group %s: %w", c.cfg.Group, err)
	}
	topic, err := c.describe(ctx, c.Watermarks())
	if err != nil {
		return nil, err
	}
	var owners []Owner
	for _, member := range groups[c.cfg.Group].Members {
		joined, ok := member.Join.AsConsumer()
		if !ok {
			continue
		}
		if card, ok := readCard(joined.UserData); ok {
			var partitions []int32
			if assigned, ok := member.Assigned.AsConsumer(); ok { // it shares out one topic
				for _, t := range assigned.Topics {
					partitions = append(partitions, t.Partitions...)
				}
			}
			for _, resource := range card.Resources {
				if slices.Contains(partitions, partitionOf(resource, len(topic.Partitions))) {
					card.Owned = append(card.Owned, resource)
				}
			}
			owners = append(owners, card)
		}
	}
	return owners, nil
}

// coordinatorPatience is how long a new cluster may take to make the topics by which brokers coordinate
// groups and transactions. It makes each on the first request.
const coordinatorPatience = 10 * time.Second

// awaitCoordinator calls ask again while the cluster answers that there is no coordinator yet, or the broker
// that the client asked is down and another may be up. It gives up after coordinatorPatience.
func awaitCoordinator(ctx context.Context, ask func() error) error {
	patient, cancel := context.WithTimeout(ctx, coordinatorPatience)
	defer cancel()
	for {
		err := ask()
		if dial, ok := errors.AsType[*net.OpError](err); !noCoordinator(err) && (!ok || dial.Op != "dial") {
			return err
		}
		if wait.For(patient, 250*time.Millisecond) == nil {
			continue
		}
		if noCoordinator(err) {
			return fmt.Errorf("no broker coordinates groups or transactions, also after some seconds: see in the "+
				"brokers' log why __consumer_offsets or __transaction_state cannot be made (on a small cluster "+
				"offsets.topic.replication.factor and transaction.state.log.replication.factor must not be more than "+
				"its brokers): %w", err)
		}
		return err
	}
}

func noCoordinator(err error) bool {
	return errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress)
}

// balancer is cooperative-sticky, and adds the member's card to its metadata in the group. Members do not
// balance by the card. It is for `watermark list` and the page, which show when instances differ in their
// enabled resources.
type balancer struct {
	kgo.GroupBalancer
	card []byte
}

// cardMark introduces a member's card in its metadata, after the balancer's own data.
var cardMark = []byte("\x00storestream:")

func newBalancer(instance string, resources []string) balancer {
	card, _ := json.Marshal(Owner{Instance: instance, Resources: slices.Sorted(slices.Values(resources))})
	return balancer{kgo.CooperativeStickyBalancer(), append(bytes.Clone(cardMark), card...)}
}

// JoinGroupMetadata is kgo.GroupBalancer's.
func (b balancer) JoinGroupMetadata(topics []string, current map[string][]int32, generation int32) []byte {
	plain := b.GroupBalancer.JoinGroupMetadata(topics, current, generation)
	var meta kmsg.ConsumerMemberMetadata
	if err := meta.ReadFrom(plain); err != nil {
		return plain
	}
	meta.UserData = append(meta.UserData, b.card...)
	return meta.AppendTo(nil)
}

// readCard finds the card in a group member's metadata. It returns false if the member is not one of ours.
func readCard(userData []byte) (card Owner, ok bool) {
	i := bytes.LastIndex(userData, cardMark)
	return card, i >= 0 && json.Unmarshal(userData[i+len(cardMark):], &card) == nil
}
