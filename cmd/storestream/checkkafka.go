package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

const (
	// smallRecords is a max.message.bytes under which ordinary rows become dead letters.
	smallRecords = 100 << 10
	// alive is how fresh another group's watermark is while its instance runs: it writes one every ten seconds.
	alive = 30 * time.Second
)

func (c *checker) kafka(ctx context.Context) []finding {
	f := &findings{part: "kafka"}
	ping, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	if err := c.cluster.Ping(ping); err != nil {
		f.fail("", err, brokerRemedy(err))
		return f.all
	}
	brokers, err := producer.Inspect(c.cluster).Brokers(ctx)
	if err != nil {
		f.fail("", err, brokerRemedy(err))
		return f.all
	}
	f.ok("", "%s at %s", terminal.Plural(brokers, "broker"), strings.Join(c.cfg.Kafka.Brokers, ", "))
	reports := producer.Inspect(c.cluster).Topics(ctx, c.cfg.Enabled()...)
	for _, r := range reports {
		f.topic(r, brokers, int(c.cfg.Kafka.Partitions))
	}
	c.transactions(ctx, f)
	c.marks(ctx, f, reports)
	c.group(ctx, f)
	c.personal(ctx, f)
	return f.all
}

func brokerRemedy(err error) string {
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "check kafka.sasl: the broker refuses the user or the password"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "set kafka.sasl.mechanism to one that the broker has"
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return "allow this user to DESCRIBE the cluster"
	}
	return "is a broker up, are kafka.brokers right, and kafka.tls and kafka.sasl as it wants them? `run` waits for it"
}

func (f *findings) topic(r producer.TopicReport, brokers, partitions int) {
	var refused *producer.RefusedError
	switch {
	case errors.As(r.Err, &refused):
		f.add(failing, r.Topic, refused.Do, "%s is %s, expected %s", refused.Setting, refused.Found, refused.Expected)
		return
	case r.Err != nil:
		f.fail(r.Topic, r.Err, brokerRemedy(r.Err))
		return
	case r.Missing:
		f.ok(r.Topic, "is not there yet, and `run` can create it with %s", terminal.Plural(newPartitions(r.Topic, partitions), "partition"))
		return
	case len(r.Lacking) > 0:
		f.add(failing, r.Topic, "kafka-acls.sh --add --allow-principal User:NAME --operation All --topic "+r.Topic, "this user lacks %s on it", strings.Join(r.Lacking, ", "))
		return
	}
	sound := true
	if r.Replicas < r.InSync {
		f.add(failing, r.Topic, fmt.Sprintf("raise its replication factor, or set min.insync.replicas=%d", r.Replicas),
			"it has %s and min.insync.replicas is %d: every write is refused", terminal.Plural(r.Replicas, "replica"), r.InSync)
		sound = false
	}
	if r.Replicas < 2 && brokers > 1 {
		f.add(warning, r.Topic, "raise its replication factor to 3 (kafka-reassign-partitions.sh)", "it has 1 replica: what it holds is lost with that broker")
		sound = false
	}
	if r.MaxBytes > 0 && r.MaxBytes < smallRecords {
		f.add(warning, r.Topic, "kafka-configs.sh --alter --topic "+r.Topic+" --add-config max.message.bytes=1048588",
			"max.message.bytes is %s: a larger row becomes a dead letter", terminal.Bytes(r.MaxBytes))
		sound = false
	}
	if sound {
		f.ok(r.Topic, "%s, %s, records up to %s, settings as needed", terminal.Plural(r.Partitions, "partition"), terminal.Plural(r.Replicas, "replica"), terminal.Bytes(r.MaxBytes))
	}
}

// newPartitions: the topic of requests has one, whatever the others have.
func newPartitions(topic string, partitions int) int {
	if strings.HasSuffix(topic, "requests") {
		return 1
	}
	return partitions
}

// transactions says whether this user may write in transactions, one line if so for all resources.
func (c *checker) transactions(ctx context.Context, f *findings) {
	allowed := true
	for _, name := range c.cfg.Enabled() {
		err := producer.Inspect(c.cluster).TransactionalID(ctx, name)
		var refused *producer.RefusedError
		switch {
		case err == nil:
			continue
		case errors.As(err, &refused):
			f.add(failing, "transactions", refused.Do, "%s is %s", refused.Setting, refused.Found)
		default:
			f.add(note, "transactions", "", "cannot tell whether the transactional id of %s is allowed: %s", name, err)
		}
		allowed = false
	}
	if allowed {
		f.ok("transactions", "the transactional ids storestream-%s<resource> are allowed", c.cfg.Kafka.TopicPrefix)
	}
}

// marks holds the watermarks against the topics: what they speak of must be what is there.
func (c *checker) marks(ctx context.Context, f *findings, reports []producer.TopicReport) {
	marks, err := producer.ReadWatermarks(ctx, c.cluster)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return // nothing has run yet
	}
	if err != nil {
		f.fail(c.cluster.Watermarks(), err, "if a record there is not storestream's, find out who wrote it; if it is of a newer version, run that one")
		return
	}
	now := schemas.InstantOf(time.Now())
	for _, name := range c.cfg.Enabled() {
		mark, written := marks[name]
		if !written {
			continue
		}
		if age := now.Sub(mark.Written); mark.Group != c.cfg.Kafka.Group && age < alive {
			f.add(failing, c.cluster.Topic(name), "stop one of the two deployments, or give this one another kafka.topic_prefix",
				"it is being published by group %q (instance %s, %s ago)", mark.Group, mark.Instance, terminal.Duration(age))
		}
		at := slices.IndexFunc(reports, func(r producer.TopicReport) bool { return r.Topic == c.cluster.Topic(name) })
		if r := reports[at]; !r.Missing && r.Partitions > 0 && int(mark.Partitions) != r.Partitions {
			f.add(failing, r.Topic, "delete the topic: it is created anew and filled from the start",
				"it has %d partitions, and was filled when it had %d: the same key would be in two of them", r.Partitions, mark.Partitions)
		}
	}
}

// group says who shares the resources out now.
func (c *checker) group(ctx context.Context, f *findings) {
	members, err := producer.Owners(ctx, c.cluster)
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		f.fail("group", err, "kafka-acls.sh --add --allow-principal User:NAME --operation All --group "+c.cfg.Kafka.Group)
		return
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.GroupIDNotFound), err == nil && len(members) == 0:
		f.ok("group", "%s has no members: no instance runs", c.cfg.Kafka.Group)
		return
	case errors.Is(err, producer.ErrSharing):
		f.ok("group", "%s is sharing its resources out: an instance has come or gone", c.cfg.Kafka.Group)
		return
	case err != nil:
		f.fail("group", err, brokerRemedy(err))
		return
	}
	var who []string
	for _, m := range members {
		owned := "nothing (standby)"
		if len(m.Owned) > 0 {
			owned = strings.Join(m.Owned, ", ")
		}
		who = append(who, m.Instance+" has "+owned)
	}
	f.ok("group", "%s has %s: %s", c.cfg.Kafka.Group, terminal.Plural(len(members), "member"), strings.Join(who, "; "))
}

// personal says where personal data stands in clear, and who may read it.
func (c *checker) personal(ctx context.Context, f *findings) {
	for _, name := range c.cfg.Enabled() {
		fields := c.set.Get(name).PersonalFields()
		if len(fields) == 0 {
			continue
		}
		topic := c.cluster.Topic(name)
		f.add(note, topic, "see that only those read it who need to (kafka-acls.sh), and "+c.cluster.DeadLetters()+" too, which holds rows as they came",
			"holds personal data in clear: %s; %s", strings.Join(fields, ", "), c.audience(ctx, topic))
	}
}

func (c *checker) audience(ctx context.Context, topic string) string {
	a, err := producer.Inspect(c.cluster).Readers(ctx, topic)
	switch {
	case err != nil:
		return "cannot tell who may read it: " + err.Error()
	case a.Open:
		return "whoever reaches the broker may read it (it has no access rules)"
	case a.Unknown:
		return "cannot tell who may read it: this user may not read the access rules"
	case len(a.Principals) == 0:
		return "no access rule names it: who may read it is the broker's default (allow.everyone.if.no.acl.found)"
	}
	return "may be read by " + strings.Join(a.Principals, ", ")
}
