package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/schemas"
)

// TailRecord is a committed record of a data topic.
type TailRecord struct {
	Partition int32
	Offset    int64
	Time      time.Time // the Kafka time
	ID        int64
	Tombstone bool
	Value     schemas.Value // good until the function that got it returns; empty for a tombstone
	Err       error         // why it is none of storestream's; ID is 0 if it was the key
}

// Tail gives the committed records of r's topic to each, in offset order within a partition, until each returns an
// error (which it returns) or ctx ends: all that the topic holds comes first (fromBeginning), or only what is written
// from now on.
func Tail(ctx context.Context, c *Cluster, r *schemas.Resource, fromBeginning bool, each func(TailRecord) error) error {
	topic := c.Topic(r.Name)
	starts := c.admin.ListEndOffsets
	if fromBeginning {
		starts = c.admin.ListStartOffsets
	}
	from, err := c.offsets(ctx, starts, topic)
	if err != nil {
		return err
	}
	spans := make([]span, len(from))
	for p := range spans {
		spans[p] = span{int32(p), from[p], forEver}
	}
	readers := &valueReaders{c: c, resource: r, byID: make(map[int]*schemas.ValueReader)}
	return c.readLog(ctx, topic, spans, func(record *kgo.Record) error {
		t := TailRecord{Partition: record.Partition, Offset: record.Offset, Time: record.Timestamp, Tombstone: record.Value == nil}
		if _, t.ID, t.Err = schemas.ReadKey(record.Key); t.Err == nil && !t.Tombstone {
			t.Value, t.Err = readers.read(ctx, record.Value)
			if t.Err != nil && !errors.Is(t.Err, errForeignValue) { // not the record's fault: a registry that does not answer
				return fmt.Errorf("reading topic %s: %w", topic, t.Err)
			}
		}
		return each(t)
	})
}

// Owner is a member of the group and the partitions of the watermark topic that it has.
type Owner struct {
	Member
	Owned []string // of its enabled resources, those that are its own
}

// ErrSharing says that the group is sharing its resources out: nobody can say who has what.
var ErrSharing = errors.New("the group is sharing its resources out")

// Owners asks the group who has what. Members that are no storestream are left out. ErrSharing: there are members, and just now a broker tells nothing of them.
func Owners(ctx context.Context, c *Cluster) ([]Owner, error) {
	groups, err := c.admin.DescribeGroups(ctx, c.cfg.Group)
	if err == nil {
		err = groups.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil // nobody has ever joined it, or all have left long ago
	}
	if shards := (*kadm.ShardErrors)(nil); errors.As(err, &shards) && len(shards.Errs) > 0 {
		err = shards.Errs[0].Err // one group is asked of one broker
	}
	if err != nil {
		return nil, fmt.Errorf("describing group %s: %w", c.cfg.Group, err)
	}
	if state := groups[c.cfg.Group].State; state == "PreparingRebalance" || state == "CompletingRebalance" {
		return nil, fmt.Errorf("describing group %s: %w", c.cfg.Group, ErrSharing)
	}
	info, err := c.describe(ctx, c.Watermarks(), true)
	if err != nil {
		return nil, err
	}
	var owners []Owner
	for _, member := range groups[c.cfg.Group].Members {
		joined, ok := member.Join.AsConsumer()
		if !ok {
			continue
		}
		card, ok := readCard(joined.UserData)
		if !ok {
			continue
		}
		owners = append(owners, Owner{Member: card, Owned: c.ownedBy(member, card, len(info.leaders))})
	}
	return owners, nil
}

func (c *Cluster) ownedBy(member kadm.DescribedGroupMember, card Member, partitions int) []string {
	assigned, ok := member.Assigned.AsConsumer()
	if !ok {
		return nil
	}
	var owned []string
	for _, resource := range card.Resources {
		p := partitionOf(resource, partitions)
		for _, topic := range assigned.Topics {
			for _, has := range topic.Partitions {
				if topic.Topic == c.Watermarks() && has == p {
					owned = append(owned, resource)
				}
			}
		}
	}
	return owned
}
