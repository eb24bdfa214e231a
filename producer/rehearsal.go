package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Rehearsal has the facts that a takeover of a resource would find now.
type Rehearsal struct {
	// Missing are the topics that the takeover would create.
	Missing []string
	// Partitions and Replicas are those of the data topic: the fewest replicas that a partition has. Both are
	// zero if it is missing.
	Partitions, Replicas int
	// Concerns are settings of the topics that refuse nothing, and cost something.
	Concerns []*RefusedError
	// KeyID and ValueID are the schema ids of the data topic. Zero means that the takeover would register the
	// schema.
	KeyID, ValueID int
	// Mark is the last watermark, or nil. Afresh is the reason why the topic would be filled from the start all
	// the same.
	Mark   *watermark.Watermark
	Afresh string
}

// Rehearse takes the steps of Take that change nothing: it creates no topic, registers no schema and fences
// no instance. Its error is the one that Take would return. It also looks at this user's rights, which Take
// and the commits that follow meet one after the other.
func Rehearse(ctx context.Context, c *Cluster, r *schemas.Resource) (Rehearsal, error) {
	s, found := newSession(c, r), Rehearsal{}
	if err := c.haveTransactions(ctx); err != nil {
		return found, err
	}
	var refused []error
	for _, spec := range TopicSpecs(c, r.Name) {
		refused = append(refused, found.look(ctx, c, spec, spec.Name == s.target.topic))
	}
	if err := errors.Join(refused...); err != nil {
		return found, err
	}
	missing := func(topic string) bool { return slices.Contains(found.Missing, topic) }
	var err error
	if missing(s.target.topic) { // then it has no keys
		s.target.keyID, s.target.valueID, err = c.cfg.Registry.Ensure(ctx, s.target.topic, r, c.cfg.AutoRegister,
			true)
	} else {
		_, err = s.lookAtKeys(ctx, true)
	}
	found.KeyID, found.ValueID = s.target.keyID, s.target.valueID
	if err == nil && !missing(c.Watermarks()) {
		found.Mark, err = s.lookAtMark(ctx)
	}
	if err == nil && found.Mark != nil && !missing(s.target.topic) {
		if err = s.data.find(ctx, c, s.target.topic); err == nil {
			found.Afresh, err = s.resume(ctx, found.Mark, true)
		}
	}
	if err == nil {
		err = mayFence(ctx, c, r.Name)
	}
	return found, err
}

// look looks at one topic as EnsureTopics does, and at this user's rights. Brokers that tell them include the
// right to describe the topic.
func (f *Rehearsal) look(ctx context.Context, c *Cluster, spec TopicSpec, data bool) error {
	found, err := c.describe(ctx, spec.Name)
	lacking, granted := "", found.AuthorizedOperations
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		f.Missing = append(f.Missing, spec.Name)
		return spec.create(ctx, c.admin.ValidateCreateTopics)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		lacking = " DESCRIBE"
	case err != nil:
		return err
	case granted&(1<<kmsg.ACLOperationDescribe) != 0:
		for _, right := range []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationWrite} {
			if granted&(1<<right) == 0 {
				lacking += " " + right.String()
			}
		}
	}
	if lacking != "" {
		return lacks(c, spec.Name, lacking[1:], "--operation", "All", "--topic", spec.Name)
	}
	settings, err := c.settings(ctx, spec.Name)
	if err != nil {
		return err
	}
	refusal, concerns := spec.judge(settings)
	if refusal != nil {
		return refusal
	}
	replicas := math.MaxInt
	for _, p := range found.Partitions {
		replicas = min(replicas, len(p.Replicas))
	}
	if data {
		f.Partitions, f.Replicas = len(found.Partitions), replicas
	}
	if inSync, err := strconv.Atoi(settings["min.insync.replicas"]); err == nil && replicas < inSync {
		return spec.refusal("min.insync.replicas", settings["min.insync.replicas"],
			fmt.Sprintf("%d at most, its number of replicas (every write is refused)", replicas),
			strconv.Itoa(replicas))
	}
	brokers, err := c.admin.ListBrokers(ctx)
	if replicas < 2 && len(brokers) > 1 {
		alone := spec.refusal("the number of replicas", "1", "3 (what it holds is lost with that broker)", "")
		alone.Do = "raise it (kafka-reassign-partitions.sh)"
		concerns = append(concerns, alone)
	}
	f.Concerns = append(f.Concerns, concerns...)
	return err
}

// lacks returns the refusal of a topic for a right that this user lacks, and that these arguments of
// kafka-acls.sh grant.
func lacks(c *Cluster, topic, right string, grant ...string) *RefusedError {
	return &RefusedError{Topic: topic, Setting: "the right of this user to " + right, Found: "missing",
		Expected: "granted",
		Do:       c.Tool("kafka-acls.sh", append([]string{"--add", "--allow-principal", "User:NAME"}, grant...)...)}
}

// mayFence returns an error if this user may not use the transactional id of a resource. It asks for the
// right to describe the id, which every user has that may write with it. To ask for a producer id would fence
// the instance that is running. Brokers before 3.0 cannot be asked, so other errors do not count.
func mayFence(ctx context.Context, c *Cluster, resource string) error {
	id := c.transactionalID(resource)
	err := awaitCoordinator(ctx, func() error {
		described, err := c.admin.DescribeTransactions(ctx, id)
		return cmp.Or(err, described[id].Err)
	})
	switch {
	case errors.As(err, new(*kadm.AuthError)), errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return lacks(c, c.Topic(resource), "WRITE with the transactional id "+id+" (DescribeTransactions is "+
			"refused)", "--operation", "Write", "--operation", "Describe", "--transactional-id", id)
	case noCoordinator(err):
		return err
	}
	return nil
}
