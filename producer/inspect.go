package producer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/schemas"
)

// TopicReport is what Inspector.Topics found of one topic.
type TopicReport struct {
	Topic string
	// Missing: it is not there, and the broker would make it (else Err says why not).
	Missing bool
	// Partitions and the fewest replicas that one of them has.
	Partitions, Replicas int
	// InSync is min.insync.replicas and MaxBytes max.message.bytes; 0 where the broker does not say.
	InSync, MaxBytes int
	// Lacking are the rights that this user would need on it and has not.
	Lacking []string
	// Err is a *RefusedError for what a person has to change, or what failed.
	Err error
}

// Inspector asks what `storestream check` tells. It changes nothing.
type Inspector struct{ c *Cluster }

// Inspect asks about the cluster.
func Inspect(c *Cluster) Inspector { return Inspector{c} }

// Topics looks at each topic that polling resources needs, and asks for those that are missing whether the broker would make them. It changes nothing.
func (i Inspector) Topics(ctx context.Context, resources ...string) []TopicReport {
	var reports []TopicReport
	for _, spec := range i.c.specs(resources) {
		reports = append(reports, i.inspectTopic(ctx, spec))
	}
	return reports
}

func (i Inspector) inspectTopic(ctx context.Context, spec topicSpec) TopicReport {
	report := TopicReport{Topic: spec.name}
	report.Err = i.askRights(ctx, &report)
	if errors.Is(report.Err, kerr.UnknownTopicOrPartition) {
		report.Missing, report.Err = true, i.wouldCreate(ctx, spec)
		return report
	}
	if report.Err != nil {
		return report
	}
	settings, err := i.c.settings(ctx, spec.name)
	if err != nil {
		report.Err = err
		return report
	}
	report.InSync, _ = strconv.Atoi(settings["min.insync.replicas"])
	report.MaxBytes, _ = strconv.Atoi(settings["max.message.bytes"])
	if refusal := spec.refuse(settings, report.Partitions); refusal != nil {
		report.Err = refusal
	}
	return report
}

// neededRights are those on a topic. DescribeConfigs is one: a topic whose settings cannot be read is not trusted.
var neededRights = []struct {
	op   kmsg.ACLOperation
	name string
}{{kmsg.ACLOperationRead, "READ"}, {kmsg.ACLOperationWrite, "WRITE"}, {kmsg.ACLOperationDescribeConfigs, "DESCRIBE_CONFIGS"}}

// askRights fills in partitions, replicas and rights from one answer of the broker.
func (i Inspector) askRights(ctx context.Context, report *TopicReport) error {
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &report.Topic
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	req.Topics = append(req.Topics, t)
	answer, err := req.RequestWith(ctx, i.c.cl)
	if err != nil {
		return fmt.Errorf("metadata of topic %s: %w", report.Topic, err)
	}
	if len(answer.Topics) != 1 {
		return kerr.UnknownTopicOrPartition
	}
	found := answer.Topics[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		if errors.Is(err, kerr.TopicAuthorizationFailed) {
			return &RefusedError{Topic: report.Topic, Setting: "the right of this user to DESCRIBE it", Found: "missing", Expected: "granted",
				Do: "kafka-acls.sh --add --allow-principal User:NAME --operation All --topic " + report.Topic}
		}
		return err
	}
	report.Partitions, report.Replicas = len(found.Partitions), math.MaxInt
	for _, p := range found.Partitions {
		report.Replicas = min(report.Replicas, len(p.Replicas))
	}
	if found.AuthorizedOperations == math.MinInt32 { // an old broker, which does not say
		return nil
	}
	for _, right := range neededRights {
		if found.AuthorizedOperations&(1<<right.op) == 0 {
			report.Lacking = append(report.Lacking, right.name)
		}
	}
	return nil
}

// wouldCreate asks the broker whether it would make the topic: rights, replication factor and policies are checked, and nothing is made.
func (i Inspector) wouldCreate(ctx context.Context, spec topicSpec) error {
	configs := make(map[string]*string)
	for key, value := range spec.settings {
		configs[key] = &value
	}
	answer, err := i.c.admin.ValidateCreateTopics(ctx, spec.partitions, i.c.cfg.ReplicationFactor, configs, spec.name)
	if err != nil {
		return fmt.Errorf("asking whether topic %s could be created: %w", spec.name, err)
	}
	made, err := answer.On(spec.name, nil)
	if err == nil {
		err = made.Err
	}
	if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return spec.uncreated(err, made.ErrMessage)
}

// Brokers is how many brokers the cluster has.
func (i Inspector) Brokers(ctx context.Context) (int, error) {
	brokers, err := i.c.admin.ListBrokers(ctx)
	return len(brokers), err
}

// TransactionalID asks whether this user may look at the transactional id of a resource, which whoever may write with it may. It changes nothing: to ask for a producer id
// would fence the instance that is running. nil: it may. The error is a *RefusedError, or what failed.
func (i Inspector) TransactionalID(ctx context.Context, resource string) error {
	id := i.c.transactionalID(resource)
	described, err := i.c.admin.DescribeTransactions(ctx, id)
	var denied *kadm.AuthError
	if errors.As(err, &denied) || errors.Is(err, kerr.TransactionalIDAuthorizationFailed) {
		return &RefusedError{Topic: i.c.Topic(resource), Setting: "the right of this user to WRITE with the transactional id " + id, Found: "missing", Expected: "granted",
			Do: "kafka-acls.sh --add --allow-principal User:NAME --operation Write --operation Describe --transactional-id " + id}
	}
	if err == nil {
		_, err = described.On(id, func(d *kadm.DescribedTransaction) error { return d.Err })
	}
	if errors.Is(err, kerr.TransactionalIDNotFound) {
		return nil // never used yet
	}
	return err
}

// KeyIDs are the schema ids of the oldest key in each partition of a resource's topic: one, if all is well; none where it is empty.
func (i Inspector) KeyIDs(ctx context.Context, resource string) ([]int, error) {
	spans, err := i.c.settled(ctx, i.c.Topic(resource))
	if err != nil {
		return nil, err
	}
	var ids []int
	err = i.c.readLog(ctx, i.c.Topic(resource), spans, func(record *kgo.Record) error {
		id, _, err := schemas.ReadKey(record.Key)
		if err != nil {
			return nil //nolint:nilerr // a stray record: no row has such a key, so it says nothing
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return errStop
	})
	slices.Sort(ids)
	return ids, err
}

// Audience is who may read a topic, as far as its access rules tell.
type Audience struct {
	// Open: the cluster has no access rules, so whoever reaches a broker may read. Unknown: this user may not read the rules.
	Open, Unknown bool
	// Principals whom a rule allows to read, without those whom another rule denies it everywhere.
	Principals []string
}

// Readers is who may read topic. It never includes super users, who are in no rule.
func (i Inspector) Readers(ctx context.Context, topic string) (Audience, error) {
	rules := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternMatch).Operations(kadm.OpAny).Allow().AllowHosts().Deny().DenyHosts()
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
