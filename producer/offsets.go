package producer

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/schemas"
)

// topicInfo is what the broker says about a topic: its id, which a topic that was deleted and created again does not keep, and its partitions' leaders.
type topicInfo struct {
	name    string
	id      [16]byte // zero where the broker is too old to have ids
	leaders []int32
	asked   time.Time
}

// text is the topic's id as Kafka's own tools print it; "" where there is none.
func (t topicInfo) text() string {
	if t.id == ([16]byte{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(t.id[:])
}

func (t topicInfo) leader(partition int32) (int32, error) {
	if int(partition) >= len(t.leaders) {
		return 0, fmt.Errorf("topic %s has %d partitions, none with number %d: %w", t.name, len(t.leaders), partition, kerr.UnknownTopicOrPartition)
	}
	if t.leaders[partition] < 0 {
		return 0, kerr.LeaderNotAvailable
	}
	return t.leaders[partition], nil
}

// topicAge is how old an answer about a topic may be.
const topicAge = 5 * time.Second

// describe says what the broker says about a topic: now if fresh, else within topicAge. The client's own cache will not do: it never asks twice within
// MetadataMinAge, so that a topic which was just created or deleted looks as it did before.
func (c *Cluster) describe(ctx context.Context, topic string, fresh bool) (topicInfo, error) {
	c.mu.Lock()
	known, ok := c.topics[topic]
	c.mu.Unlock()
	if ok && !fresh && time.Since(known.asked) < topicAge {
		return known, nil
	}
	info, err := c.askTopic(ctx, topic)
	if err != nil {
		return topicInfo{}, fmt.Errorf("metadata of topic %s: %w", topic, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.topics[topic] = info
	return info, nil
}

func (c *Cluster) askTopic(ctx context.Context, topic string) (topicInfo, error) {
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, t)
	info := topicInfo{name: topic, asked: time.Now()}
	answer, err := req.RequestWith(ctx, c.cl)
	if err != nil {
		return info, err
	}
	if len(answer.Topics) != 1 {
		return info, kerr.UnknownTopicOrPartition
	}
	found := answer.Topics[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		return info, err
	}
	info.id, info.leaders = found.TopicID, make([]int32, len(found.Partitions))
	for _, p := range found.Partitions {
		if int(p.Partition) < len(info.leaders) {
			info.leaders[p.Partition] = p.Leader
		}
	}
	return info, nil
}

// offsets lists one offset for each partition of topic, by partition.
func (c *Cluster) offsets(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string) ([]int64, error) {
	listed, err := list(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err == nil && len(listed[topic]) == 0 {
		err = kerr.UnknownTopicOrPartition
	}
	if err != nil {
		return nil, fmt.Errorf("listing the offsets of topic %s: %w", topic, err)
	}
	all := make([]int64, len(listed[topic]))
	for p, o := range listed[topic] {
		if int(p) >= len(all) {
			return nil, fmt.Errorf("listing the offsets of topic %s: the answer has %d partitions, one of them is number %d", topic, len(all), p)
		}
		all[p] = o.Offset
	}
	return all, nil
}

// RecordsSince is about how many records of a resource's topic a replay from a time on repeats: what stands at or after the first record of that time in each
// partition. Older versions that compaction has not taken out yet are counted, and the markers that end transactions.
func RecordsSince(ctx context.Context, c *Cluster, resource string, from schemas.Instant) (int64, error) {
	topic := c.Topic(resource)
	first, err := c.offsets(ctx, func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
		return c.admin.ListOffsetsAfterMilli(ctx, recordMillis(from), topics...)
	}, topic)
	if err != nil {
		return 0, err
	}
	ends, err := c.offsets(ctx, c.admin.ListCommittedOffsets, topic)
	if err != nil {
		return 0, err
	}
	var n int64
	for p := range min(len(first), len(ends)) {
		n += max(0, ends[p]-first[p])
	}
	return n, nil
}

// whole is every partition of topic from its start to where it ends now. The end noted is the high watermark, not the stable offset: what stands between
// them may be about to be committed, and readLog waits for it.
func (c *Cluster) whole(ctx context.Context, topic string) ([]span, error) {
	ends, err := c.offsets(ctx, c.admin.ListEndOffsets, topic)
	if err != nil {
		return nil, err
	}
	return c.spansTo(ctx, topic, ends)
}

// settled is every partition of topic from its start to where every transaction has ended: it never waits.
func (c *Cluster) settled(ctx context.Context, topic string) ([]span, error) {
	ends, err := c.offsets(ctx, c.admin.ListCommittedOffsets, topic)
	if err != nil {
		return nil, err
	}
	return c.spansTo(ctx, topic, ends)
}

func (c *Cluster) spansTo(ctx context.Context, topic string, ends []int64) ([]span, error) {
	starts, err := c.offsets(ctx, c.admin.ListStartOffsets, topic)
	if err != nil {
		return nil, err
	}
	var spans []span
	for p := range min(len(starts), len(ends)) {
		spans = append(spans, span{int32(p), starts[p], ends[p]})
	}
	return spans, nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
