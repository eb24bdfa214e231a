package producer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"
)

// topicSpec is how we create a topic.
type topicSpec struct {
	name       string
	partitions int32
	settings   map[string]string
}

const (
	week     = 7 * 24 * time.Hour
	tenYears = 10 * 365 * 24 * time.Hour
)

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dataTopic: the active segment is never compacted, so what ends a segment decides how long versions stay that nobody needs, personal data among them. At
// the default segment.bytes of 1 GiB that would be some 24 million rows a partition; 64 MiB are 1.5 million. A partition that never has so many is compacted
// because its segments end after a week too.
//
// Segments end by the time that records carry, and a row's is its updated_at. That would make a segment of each week of a first load's history; but the
// record that ends a transaction carries the broker's clock. The first one ends the segment that began with old rows, the next segment begins with it, and to
// that one all old rows are early. So a first load costs one small segment more for each 64 MiB (measured: docs/performance.md).
func (c *Cluster) dataTopic(resource string) topicSpec {
	return topicSpec{c.Topic(resource), c.cfg.Partitions, map[string]string{
		"cleanup.policy": "compact", "message.timestamp.type": "CreateTime",
		"segment.ms": millis(week), "segment.bytes": strconv.Itoa(64 << 20),
	}}
}

// stateTopic is one that a takeover reads in full. Watermarks are a few hundred bytes each but come every second, and what the active segment holds is
// never compacted: with the defaults a takeover would read half a gigabyte. Ten minutes and 1 MiB a segment and a low dirty ratio keep it at a few
// megabytes.
func (c *Cluster) stateTopic(name string) topicSpec {
	return topicSpec{name, c.cfg.Partitions, map[string]string{
		"cleanup.policy": "compact", "message.timestamp.type": "CreateTime",
		"segment.ms": millis(10 * time.Minute), "segment.bytes": strconv.Itoa(1 << 20), "min.cleanable.dirty.ratio": "0.01",
	}}
}

// requestTopic has one partition because a request's id is its offset.
func (c *Cluster) requestTopic() topicSpec {
	return topicSpec{c.RequestsTopic(), 1, map[string]string{
		"cleanup.policy": "delete", "message.timestamp.type": "CreateTime", "retention.ms": millis(week),
	}}
}

// specs are the topics that all resources share, and those of resources.
func (c *Cluster) specs(resources []string) []topicSpec {
	specs := []topicSpec{c.stateTopic(c.Watermarks()), c.stateTopic(c.DeadLetters()), c.requestTopic()}
	for _, resource := range resources {
		specs = append(specs, c.dataTopic(resource))
	}
	return specs
}

// EnsureTopics creates the topics of the resources, and those that all resources share, where they are missing. Those that it finds (another
// instance or a consumer's auto-create made them) it leaves as they are, reads their settings and answers with a *RefusedError for the
// first of each that would lose data.
func EnsureTopics(ctx context.Context, c *Cluster, resources ...string) error {
	specs := c.specs(resources)
	if err := c.createMissing(ctx, specs); err != nil {
		return err
	}
	var refused []error
	for _, spec := range specs {
		settings, err := c.settings(ctx, spec.name)
		if err != nil {
			return err
		}
		info, err := c.describe(ctx, spec.name, false)
		if err != nil {
			return err
		}
		if refusal := spec.refuse(settings, len(info.leaders)); refusal != nil {
			refused = append(refused, refusal)
		}
	}
	return errors.Join(refused...)
}

// createMissing makes all topics first and then waits for the leaders of all: the client does not ask twice within its MetadataMinAge.
func (c *Cluster) createMissing(ctx context.Context, specs []topicSpec) error {
	var made []string
	for _, spec := range specs {
		_, err := c.describe(ctx, spec.name, true)
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			made = append(made, spec.name)
			err = c.create(ctx, spec)
		}
		if err != nil {
			return err
		}
	}
	for _, topic := range made {
		if err := c.awaitLeaders(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}

// create makes the topic. Somebody else may make it at the same moment.
func (c *Cluster) create(ctx context.Context, spec topicSpec) error {
	configs := make(map[string]*string)
	for key, value := range maps.Clone(spec.settings) {
		configs[key] = &value
	}
	made, err := c.admin.CreateTopic(ctx, spec.partitions, c.cfg.ReplicationFactor, configs, spec.name)
	switch {
	case err == nil:
		c.log.Info("created topic", zap.String("topic", spec.name), zap.Int32("partitions", spec.partitions), zap.Any("settings", spec.settings))
	case errors.Is(err, kerr.TopicAlreadyExists):
	default:
		return spec.uncreated(err, made.ErrMessage)
	}
	return nil
}

// uncreated explains why the broker does not make the topic. Too few brokers for the replicas may be brokers that are only just starting: a
// controller calls them fenced until their first heartbeats have come.
func (s topicSpec) uncreated(err error, message string) error {
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kerr.PolicyViolation),
		errors.Is(err, kerr.InvalidReplicationFactor):
		return &RefusedError{Topic: s.name, Setting: "its creation", Found: fmt.Sprintf("refused by the broker (%v %s)", err, message), Expected: "a topic",
			Do:      fmt.Sprintf("create it with %d partitions and %v, or allow this user to", s.partitions, s.settings),
			MayPass: errors.Is(err, kerr.InvalidReplicationFactor)}
	}
	return fmt.Errorf("creating topic %s: %w (%s)", s.name, err, message)
}

// awaitLeaders waits until each partition of a new topic has a leader.
func (c *Cluster) awaitLeaders(ctx context.Context, topic string) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := c.hasLeaders(ctx, topic)
		if err == nil {
			return nil
		}
		if !sleep(ctx, wait) {
			return fmt.Errorf("waiting for the leaders of the new topic %s: %w", topic, errors.Join(context.Cause(ctx), err))
		}
	}
}

func (c *Cluster) hasLeaders(ctx context.Context, topic string) error {
	info, err := c.describe(ctx, topic, true)
	if err != nil {
		return err
	}
	for p := range info.leaders {
		if _, err := info.leader(int32(p)); err != nil {
			return err
		}
	}
	return nil
}

// settings are the topic's settings in force.
func (c *Cluster) settings(ctx context.Context, topic string) (map[string]string, error) {
	answer, err := c.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("reading the settings of topic %s: %w", topic, err)
	}
	found, err := answer.On(topic, nil)
	if err == nil {
		err = found.Err
	}
	if err != nil {
		return nil, fmt.Errorf("reading the settings of topic %s: %w", topic, err)
	}
	settings := make(map[string]string)
	for _, s := range found.Configs {
		if s.Value != nil {
			settings[s.Key] = *s.Value
		}
	}
	return settings, nil
}

// refuse says what about a topic would lose or spoil data. Settings that only cost disk or time are left to whoever made the topic.
func (s topicSpec) refuse(found map[string]string, partitions int) *RefusedError {
	for _, key := range []string{"cleanup.policy", "message.timestamp.type"} {
		// compact,delete loses rows that nobody has touched for the retention time; LogAppendTime loses the record times by which `seen` is
		// rebuilt.
		if have, want := found[key], s.settings[key]; have != want {
			return s.refusal(key, have, want, key+"="+want)
		}
	}
	for _, key := range []string{"message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"} {
		// A row's record time is its updated_at: years ago.
		if ms, err := strconv.ParseInt(found[key], 10, 64); err == nil && ms < tenYears.Milliseconds() {
			return s.refusal(key, found[key], "no limit (records carry the rows' updated_at)", key+"=9223372036854775807")
		}
	}
	if want, ok := s.settings["retention.ms"]; ok {
		if ms, err := strconv.ParseInt(found["retention.ms"], 10, 64); err == nil && ms >= 0 && ms < week.Milliseconds() {
			return s.refusal("retention.ms", found["retention.ms"], want+" or more", "retention.ms="+want)
		}
		if partitions != 1 {
			return &RefusedError{Topic: s.name, Setting: "the number of partitions", Found: strconv.Itoa(partitions), Expected: "1 (a request's id is its offset)",
				Do: "delete the topic; it is made anew"}
		}
	}
	return nil
}

func (s topicSpec) refusal(setting, found, expected, change string) *RefusedError {
	return &RefusedError{Topic: s.name, Setting: setting, Found: found, Expected: expected,
		Do: fmt.Sprintf("kafka-configs.sh --alter --topic %s --add-config %s", s.name, change)}
}
