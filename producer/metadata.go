package producer

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/schemas"
)

// topicID is a topic's id as Kafka's own tools print it. It is empty if the broker is too old to have ids. A
// topic that was deleted and created again has another id.
func topicID(t kmsg.MetadataResponseTopic) string {
	if t.TopicID == ([16]byte{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(t.TopicID[:])
}

// differ reports that two ids are those of two topics. An empty id does not count: brokers before 2.8 have
// none, and while a cluster gains them, one broker has them and another does not.
func differ(id, other string) bool { return id != "" && other != "" && id != other }

// describe returns a broker's answer about a topic, with what this user may do to it. The client's own
// cache is not enough: it never asks twice within MetadataMinAge, so a topic that was just created or deleted
// looks as it did before.
func (c *Cluster) describe(ctx context.Context, topic string) (found kmsg.MetadataResponseTopic, err error) {
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	req.Topics = append(req.Topics, t)
	answer, err := req.RequestWith(ctx, c.cl)
	if err == nil {
		err = kerr.UnknownTopicOrPartition
		if len(answer.Topics) == 1 {
			found, err = answer.Topics[0], kerr.ErrorForCode(answer.Topics[0].ErrorCode)
		}
	}
	if err != nil {
		return found, fmt.Errorf("metadata of topic %s: %w", topic, err)
	}
	return found, nil
}

// awaitLeaders waits until each partition of a new topic has a leader.
func (c *Cluster) awaitLeaders(ctx context.Context, topic string) error {
	err := retry(ctx, time.Second, func() error {
		found, err := c.describe(ctx, topic)
		for _, p := range found.Partitions {
			if p.Leader < 0 {
				err = kerr.LeaderNotAvailable
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("waiting for the leaders of the new topic %s: %w", topic, err)
	}
	return nil
}

// retry calls do until it succeeds or ctx ends, after pauses that double up to longest.
func retry(ctx context.Context, longest time.Duration, do func() error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, longest) {
		err := do()
		if err == nil {
			return nil
		}
		if ended := wait.For(ctx, pause); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// settings are the topic's settings in force, as far as the brokers show them. Some show a part. Some do not
// know the request, or refuse it: then there are none. Any other error may pass, and the topic may be one to
// refuse.
func (c *Cluster) settings(ctx context.Context, topic string) (map[string]string, error) {
	answer, err := c.admin.DescribeTopicConfigs(ctx, topic)
	found, missing := answer.On(topic, nil)
	unknown := found.Err != nil && !kerr.IsRetriable(found.Err) || errors.As(err, new(*kadm.AuthError)) ||
		err != nil && strings.Contains(err.Error(), "broker is too old") // kgo exports no such error
	if err = cmp.Or(err, missing, found.Err); err != nil && !unknown {
		return nil, fmt.Errorf("reading the settings of topic %s: DescribeConfigs: %w", topic, err)
	}
	settings := make(map[string]string)
	for _, s := range found.Configs {
		if s.Value != nil {
			settings[s.Key] = *s.Value
		}
	}
	return settings, nil
}

// lister is one of kadm.Client's ways to list an offset of each partition.
type lister func(context.Context, ...string) (kadm.ListedOffsets, error)

// firstSince lists, in each partition, the first record with time t or a later one.
func (c *Cluster) firstSince(t schemas.Instant) lister {
	return func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
		return c.admin.ListOffsetsAfterMilli(ctx, recordMillis(t), topics...)
	}
}

// offsets lists one offset for each partition of topic, by partition.
func (c *Cluster) offsets(ctx context.Context, topic string, list lister) ([]int64, error) {
	listed, err := list(ctx, topic)
	if err = cmp.Or(err, listed.Error()); err == nil && len(listed[topic]) == 0 {
		err = kerr.UnknownTopicOrPartition
	}
	if err != nil {
		return nil, fmt.Errorf("listing the offsets of topic %s: %w", topic, err)
	}
	all := make([]int64, len(listed[topic]))
	for p, o := range listed[topic] {
		if int(p) >= len(all) {
			return nil, fmt.Errorf("listing the offsets of topic %s: found partition %d of %d", topic, p, len(all))
		}
		all[p] = o.Offset
	}
	return all, nil
}

// shortLogPause is the pause between two looks at a log that seems too short. It is a variable for the
// tests.
var shortLogPause = 500 * time.Millisecond

// endsAgain lists the ends of topic's partitions, which had reached the offsets in noted. It asks up to three
// times before it returns ends that are before these: a broker that has just become the leader of a
// partition, or does not know yet that it no longer is, may show a log that ends too soon.
func (c *Cluster) endsAgain(ctx context.Context, topic string, end lister, noted []int64) (
	ends []int64, err error) {
	for try := range 3 {
		if try > 0 {
			if err := wait.For(ctx, shortLogPause); err != nil {
				return nil, err
			}
		}
		if ends, err = c.offsets(ctx, topic, end); err != nil || shortened(noted, ends) == "" {
			break
		}
	}
	return ends, err
}

// spans are the offsets of every partition of topic between two that are listed now. Before the last stable
// offset (ListCommittedOffsets) every transaction has ended, so fold does not wait. Records between it and
// the high watermark (ListEndOffsets) may be about to be committed: fold waits for them.
func (c *Cluster) spans(ctx context.Context, topic string, from, to lister) ([]span, error) {
	ends, err := c.offsets(ctx, topic, to)
	if err != nil {
		return nil, err
	}
	starts, err := c.offsets(ctx, topic, from)
	if err != nil {
		return nil, err
	}
	return spansOf(starts, ends), nil
}

// spansOf returns the span of each partition between two offsets, by partition.
func spansOf(starts, ends []int64) []span {
	spans := make([]span, min(len(starts), len(ends)))
	for p := range spans {
		spans[p] = span{int32(p), starts[p], ends[p]}
	}
	return spans
}
