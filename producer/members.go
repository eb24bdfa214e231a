package producer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/internal/health"
)

// clientPrefix begins the client ids of the group's members.
const clientPrefix = "storestream-"

// memberID is the client id of a member of the group. By it the members, and Kafka's own tools, see which
// resources are enabled where.
func memberID(instance string, resources []string) string {
	return clientPrefix + instance + "/" + strings.Join(slices.Sorted(slices.Values(resources)), ",")
}

// ErrSharing means that the group is sharing its resources out, so no resource has a known owner.
var ErrSharing = errors.New("the group is sharing its resources out")

// Members asks the group who has which resource. It leaves out members that are not storestream. There are
// none if no instance has ever run. ErrSharing means that the group has members, but a broker does not
// describe them now.
func Members(ctx context.Context, c *Cluster) ([]health.Member, error) {
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
	group := groups[c.cfg.Group]
	if err == nil && (group.State == "PreparingRebalance" || group.State == "CompletingRebalance") {
		err = ErrSharing
	}
	if err != nil {
		return nil, fmt.Errorf("describing group %s: %w", c.cfg.Group, err)
	}
	var members []health.Member
	for _, described := range group.Members {
		id, ours := strings.CutPrefix(described.ClientID, clientPrefix)
		at := strings.LastIndexByte(id, '/')
		if !ours || at < 0 {
			continue
		}
		member := health.Member{Instance: id[:at],
			Enabled: strings.FieldsFunc(id[at+1:], func(r rune) bool { return r == ',' })}
		var owned []string
		if assigned, ok := described.Assigned.AsConsumer(); ok { // it shares out one topic
			for _, t := range assigned.Topics {
				owned = append(owned, shared(t.Partitions)...)
			}
		}
		for _, resource := range member.Enabled {
			if slices.Contains(owned, resource) {
				member.Owned = append(member.Owned, resource)
			}
		}
		members = append(members, member)
	}
	return members, nil
}

// coordinatorPatience is how long a new cluster may take to make the topics by which brokers coordinate
// groups and transactions. It makes each on the first request.
const coordinatorPatience = 10 * time.Second

// awaitCoordinator calls ask again while the cluster answers that there is no coordinator yet, or the broker
// that the client asked is down and another may be up. It gives up after coordinatorPatience, with the error
// of ask.
func awaitCoordinator(ctx context.Context, ask func() error) (err error) {
	patient, cancel := context.WithTimeout(ctx, coordinatorPatience)
	defer cancel()
	_ = retry(patient, 250*time.Millisecond, func() error {
		err = ask()
		if dial, ok := errors.AsType[*net.OpError](err); noCoordinator(err) || ok && dial.Op == "dial" {
			return err
		}
		return nil
	})
	return err
}

func noCoordinator(err error) bool {
	return errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress)
}
