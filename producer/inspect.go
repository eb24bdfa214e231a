package producer

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/schemas"
)

// Inspector asks what `storestream check` tells. It changes nothing.
type Inspector struct{ c *Cluster }

// TopicReport is what Inspector.Topics found of one topic.
type TopicReport struct {
	Topic string
	// Missing: the topic does not exist. If the broker would not create it either, Err says why.
	Missing bool
	// Partitions and the fewest replicas that one of them has.
	Partitions, Replicas int
	// InSync is min.insync.replicas and MaxBytes max.message.bytes. Zero means that the broker does not tell.
	InSync, MaxBytes int
	// Keeps is the reason why it may hold deleted values for longer than Config.EraseWithin, and Do the
	// remedy. Both are empty if it does not.
	Keeps, Do string
	// Forgets is the reason why a consumer may miss a tombstone that was promised to it, and Remedy the
	// remedy.
	Forgets, Remedy string
	// Lacking are the rights on it that this user would need and does not have.
	Lacking []string
	// Err is a *RefusedError if a person has to change something, or the error of a request.
	Err error
}

// Inspect asks about the cluster.
func Inspect(c *Cluster) Inspector { return Inspector{c} }

// Topics checks each topic that polling resources needs. For those that are missing it asks the broker
// whether it would create them.
func (i Inspector) Topics(ctx context.Context, resources ...string) []TopicReport {
	var reports []TopicReport
	for _, spec := range topicSpecs(i.c, resources) {
		reports = append(reports, i.topic(ctx, spec))
	}
	return reports
}

func (i Inspector) topic(ctx context.Context, spec topicSpec) TopicReport {
	report := TopicReport{Topic: spec.name}
	found, err := i.c.describe(ctx, spec.name)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		report.Missing, report.Err = true, spec.create(ctx, i.c.admin.ValidateCreateTopics)
		return report
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		report.Err = &RefusedError{Topic: spec.name, Setting: "the right of this user to DESCRIBE it",
			Found: "missing", Expected: "granted",
			Do: i.c.Tool("kafka-acls.sh", "--add", "--allow-principal", "User:NAME", "--operation", "All", "--topic",
				spec.name)}
		return report
	case err != nil:
		report.Err = err
		return report
	}
	report.Partitions, report.Replicas = len(found.Partitions), math.MaxInt
	for _, p := range found.Partitions {
		report.Replicas = min(report.Replicas, len(p.Replicas))
	}
	report.Lacking = lackingRights(found.AuthorizedOperations)
	settings, err := i.c.settings(ctx, spec.name)
	if err != nil {
		report.Err = err
		return report
	}
	report.InSync, _ = strconv.Atoi(settings["min.insync.replicas"])
	report.MaxBytes, _ = strconv.Atoi(settings["max.message.bytes"])
	report.Keeps, report.Do = spec.keeps(settings)
	report.Forgets, report.Remedy = spec.forgets(settings)
	if refusal := spec.refuse(settings, report.Partitions); refusal != nil {
		report.Err = refusal
	}
	return report
}

// lackingRights are those on a topic that are missing in granted, a set of bits. To describe the settings
// is a right that we need: a topic whose settings cannot be read is not trusted.
func lackingRights(granted int32) (lacking []string) {
	if granted == math.MinInt32 { // an old broker, which does not say
		return nil
	}
	for _, right := range []struct {
		op   kmsg.ACLOperation
		name string
	}{
		{kmsg.ACLOperationRead, "READ"},
		{kmsg.ACLOperationWrite, "WRITE"},
		{kmsg.ACLOperationDescribeConfigs, "DESCRIBE_CONFIGS"},
	} {
		if granted&(1<<right.op) == 0 {
			lacking = append(lacking, right.name)
		}
	}
	return lacking
}

// Brokers is how many brokers the cluster has.
func (i Inspector) Brokers(ctx context.Context) (int, error) {
	brokers, err := i.c.admin.ListBrokers(ctx)
	return len(brokers), err
}

// coordinatorPatience is how long a new cluster may take to make the topics by which brokers coordinate
// groups and transactions.
const coordinatorPatience = 10 * time.Second

// AwaitCoordinators waits until the brokers coordinate the group and the transactional id of resource, for
// coordinatorPatience at most. A new cluster creates the topics for that on the first request, and answers
// COORDINATOR_NOT_AVAILABLE until they exist. waited reports that it had to wait.
func (i Inspector) AwaitCoordinators(ctx context.Context, resource string) (waited bool, err error) {
	patient, cancel := context.WithTimeout(ctx, coordinatorPatience)
	defer cancel()
	for group, id := i.c.cfg.Group, i.c.transactionalID(resource); ; waited = true {
		err = errors.Join(i.c.admin.FindGroupCoordinators(ctx, group)[group].Err,
			i.c.admin.FindTxnCoordinators(ctx, id)[id].Err)
		missing := errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress)
		if !missing || wait.For(patient, 250*time.Millisecond) != nil {
			return waited, err
		}
	}
}

// TransactionalID checks whether this user may describe the transactional id of a resource. Every user that
// may write with it may. It does not ask for a producer id, which would fence the instance that is running.
// The error is a *RefusedError, or that of the request.
func (i Inspector) TransactionalID(ctx context.Context, resource string) error {
	id := i.c.transactionalID(resource)
	described, err := i.c.admin.DescribeTransactions(ctx, id)
	if errors.As(err, new(*kadm.AuthError)) || errors.Is(err, kerr.TransactionalIDAuthorizationFailed) {
		return &RefusedError{Topic: i.c.Topic(resource), Found: "missing", Expected: "granted",
			Setting: "the right of this user to WRITE with the transactional id " + id,
			Do: i.c.Tool("kafka-acls.sh", "--add", "--allow-principal", "User:NAME", "--operation", "Write",
				"--operation", "Describe", "--transactional-id", id)}
	}
	if err == nil {
		_, err = described.On(id, func(d *kadm.DescribedTransaction) error { return d.Err })
	}
	if errors.Is(err, kerr.TransactionalIDNotFound) {
		return nil // never used yet
	}
	return err
}

// KeyIDs are the schema ids of the oldest key in each partition of a resource's topic. There is one if all
// is well, and none if the topic is empty.
func (i Inspector) KeyIDs(ctx context.Context, resource string) ([]int, error) {
	oldest, err := oldestKeys(ctx, i.c, i.c.Topic(resource))
	var ids []int
	for _, record := range oldest {
		id, _, _ := schemas.ReadKey(record.Key) // it was read before
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// Audience is who may read a topic, as far as its access rules tell.
type Audience struct {
	// Open: the cluster has no access rules, so every client may read. Unknown: this user may not read the
	// rules.
	Open, Unknown bool
	// Principals whom a rule allows to read, without those whom another rule denies it everywhere.
	Principals []string
}

// Readers returns who may read topic. It never includes super users, because no rule names them.
func (i Inspector) Readers(ctx context.Context, topic string) (Audience, error) {
	rules := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternMatch).Operations(kadm.OpAny).
		Allow().AllowHosts().Deny().DenyHosts()
	results, err := i.c.admin.DescribeACLs(ctx, rules)
	if err != nil {
		return Audience{}, err
	}
	var a Audience
	denied := map[string]bool{}
	for _, result := range results {
		switch {
		case errors.Is(result.Err, kerr.SecurityDisabled):
			return Audience{Open: true}, nil
		case errors.Is(result.Err, kerr.ClusterAuthorizationFailed):
			return Audience{Unknown: true}, nil
		case result.Err != nil:
			return Audience{}, result.Err
		}
		for _, rule := range result.Described {
			if rule.Operation != kadm.OpRead && rule.Operation != kadm.OpAll {
				continue
			}
			if rule.Permission == kmsg.ACLPermissionTypeDeny {
				denied[rule.Principal] = denied[rule.Principal] || rule.Host == "*"
				continue
			}
			a.Principals = append(a.Principals, rule.Principal)
		}
	}
	a.Principals = slices.DeleteFunc(a.Principals, func(p string) bool { return denied[p] })
	slices.Sort(a.Principals)
	a.Principals = slices.Compact(a.Principals)
	return a, nil
}
