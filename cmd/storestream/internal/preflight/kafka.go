package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/ownership"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

const (
	// smallRecords is a max.message.bytes under which ordinary rows become dead letters.
	smallRecords = 100 << 10
	// alive is how fresh another group's watermark is while its instance runs: it writes one every ten seconds.
	alive = 30 * time.Second
)

// kafka tries the brokers, and looks at the topics, this user's rights, the watermarks and the group.
type kafka struct {
	c       Config
	found   *findings
	inspect producer.Inspector
	topics  []producer.TopicReport
}

func tryKafka(ctx context.Context, c Config, f *findings) {
	k := kafka{c: c, found: f, inspect: producer.Inspect(c.Cluster)}
	ping, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	err := c.Cluster.Ping(ping)
	brokers := 0
	if err == nil {
		brokers, err = k.inspect.Brokers(ctx)
	}
	if err != nil {
		k.found.fail("", err, brokerRemedy(err))
		return
	}
	k.bootstrap(brokers)
	k.topics = k.inspect.Topics(ctx, c.Settings.Enabled()...)
	for _, r := range k.topics {
		k.topic(r, brokers)
	}
	coordinated := k.coordinators(ctx)
	if coordinated {
		k.transactions(ctx)
	}
	k.watermarks(ctx)
	if coordinated {
		k.group(ctx)
	}
	k.personal(ctx)
}

// bootstrap says which of kafka.brokers answer.
func (k *kafka) bootstrap(brokers int) {
	var answer []string
	for _, broker := range k.c.Settings.Kafka.Brokers {
		if err := k.c.Dead[broker]; err != nil {
			k.found.add(Warning, "", "start it, or take it out of kafka.brokers: an instance that starts asks the "+
				"others, and waits for this one now and then", "%s of kafka.brokers does not answer: %s", broker, err)
			continue
		}
		answer = append(answer, broker)
	}
	k.found.ok("", "%s at %s", terminal.Plural(brokers, "broker"), strings.Join(answer, ", "))
}

// dialWithin bounds how long a broker has to take a connection.
const dialWithin = 3 * time.Second

// DeadBrokers tries to connect to each of kafka.brokers, and returns the errors. Clients then use only the
// others, because a client begins with any broker, and its error about a dead one differs from call to call.
// The result is empty if all are dead, which the client reports itself.
func DeadBrokers(ctx context.Context, brokers []string) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	errs := make([]error, len(brokers))
	var dials sync.WaitGroup
	for i, broker := range brokers {
		dials.Go(func() {
			var conn net.Conn
			if conn, errs[i] = new(net.Dialer).DialContext(ctx, "tcp", broker); errs[i] == nil {
				errs[i] = conn.Close()
			}
		})
	}
	dials.Wait()
	dead := map[string]error{}
	for i, broker := range brokers {
		if errs[i] != nil {
			dead[broker] = errs[i]
		}
	}
	if len(dead) == len(brokers) {
		clear(dead)
	}
	return dead
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
	return "is a broker up, are kafka.brokers right, and kafka.tls and kafka.sasl as it wants them? " +
		"`run` waits for it"
}

// allow is the command that gives a user the rights to a topic or a group.
func (k *kafka) allow(kind, name string) string {
	return k.c.Cluster.Tool("kafka-acls.sh", "--add", "--allow-principal", "User:NAME", "--operation", "All",
		"--"+kind, name)
}

func (k *kafka) topic(r producer.TopicReport, brokers int) {
	f := k.found
	switch {
	case f.refused(r.Topic, r.Err):
		return
	case r.Err != nil:
		f.fail(r.Topic, r.Err, brokerRemedy(r.Err))
		return
	case r.Missing:
		f.ok(r.Topic, "is not there yet, and `run` can create it with %s",
			terminal.Plural(k.newPartitions(r.Topic), "partition"))
		return
	case len(r.Lacking) > 0:
		f.add(Failure, r.Topic, k.allow("topic", r.Topic), "this user lacks %s on it",
			strings.Join(r.Lacking, ", "))
		return
	}
	before := len(f.all)
	if r.Replicas < r.InSync {
		f.add(Failure, r.Topic,
			fmt.Sprintf("raise its replication factor, or set min.insync.replicas=%d", r.Replicas),
			"it has %s and min.insync.replicas is %d: every write is refused",
			terminal.Plural(r.Replicas, "replica"), r.InSync)
	}
	if r.Replicas < 2 && brokers > 1 {
		f.add(Warning, r.Topic, "raise its replication factor to 3 (kafka-reassign-partitions.sh)",
			"it has 1 replica: what it holds is lost with that broker")
	}
	if r.MaxBytes > 0 && r.MaxBytes < smallRecords {
		f.add(Warning, r.Topic,
			k.c.Cluster.Tool("kafka-configs.sh", "--alter", "--topic", r.Topic, "--add-config",
				"max.message.bytes=1048588"),
			"max.message.bytes is %s: a larger row becomes a dead letter", terminal.Bytes(r.MaxBytes))
	}
	if r.Keeps != "" {
		f.add(Warning, r.Topic, r.Do, "%s: it may keep what was deleted for longer than kafka.erase_within, %s",
			r.Keeps, k.c.Settings.Kafka.EraseWithin)
	}
	if r.Forgets != "" {
		f.add(Warning, r.Topic, r.Remedy, "%s: a consumer that is away for longer may miss a deletion", r.Forgets)
	}
	if len(f.all) == before {
		f.ok(r.Topic, "%s, %s, records up to %s, settings as needed", terminal.Plural(r.Partitions, "partition"),
			terminal.Plural(r.Replicas, "replica"), terminal.Bytes(r.MaxBytes))
	}
}

// newPartitions returns the partitions of a new topic. The topic of requests always has one.
func (k *kafka) newPartitions(topic string) int {
	if topic == k.c.Settings.Kafka.TopicPrefix+"requests" {
		return 1
	}
	return int(k.c.Settings.Kafka.Partitions)
}

// coordinators waits for a cluster that was never asked for a group or a transaction before. false: nothing
// can be asked of either.
func (k *kafka) coordinators(ctx context.Context) bool {
	enabled := k.c.Settings.Enabled()
	waited, err := k.inspect.AwaitCoordinators(ctx, enabled[0])
	switch {
	case errors.Is(err, kerr.CoordinatorNotAvailable), errors.Is(err, kerr.CoordinatorLoadInProgress):
		k.found.add(Failure, "coordinators", "see in the brokers' log why __consumer_offsets or "+
			"__transaction_state cannot be made: on a small cluster offsets.topic.replication.factor and "+
			"transaction.state.log.replication.factor must not be more than its brokers",
			"no broker coordinates groups or transactions (%s), also after some seconds", err)
		return false
	case waited:
		k.found.add(Note, "coordinators", "", "waited for the cluster to make __consumer_offsets and "+
			"__transaction_state, which a new one does when it is first asked")
	}
	return true
}

// transactions says whether this user may write in transactions: in one line, if so for all resources.
func (k *kafka) transactions(ctx context.Context) {
	before := len(k.found.all)
	for _, name := range k.c.Settings.Enabled() {
		err := k.inspect.TransactionalID(ctx, name)
		var refused *producer.RefusedError
		switch {
		case errors.As(err, &refused):
			k.found.add(Failure, "transactions", refused.Do, "%s is %s", refused.Setting, refused.Found)
		case err != nil:
			k.found.add(Note, "transactions", "",
				"cannot tell whether the transactional id of %s is allowed: %s", name, err)
		}
	}
	if len(k.found.all) == before {
		k.found.ok("transactions", "the transactional ids storestream-%s<resource> are allowed",
			k.c.Settings.Kafka.TopicPrefix)
	}
}

// watermarks compares the watermarks with the data topics that they belong to.
func (k *kafka) watermarks(ctx context.Context) {
	marks, err := producer.ReadWatermarks(ctx, k.c.Cluster)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return // nothing has run yet
	}
	var unreadable map[string]error // by resource
	if wrong, ok := errors.AsType[*producer.UnreadableError](err); ok {
		unreadable, err = wrong.ByResource, nil
	}
	if err != nil {
		k.found.fail(k.c.Cluster.Watermarks(), err, brokerRemedy(err))
		return
	}
	now := schemas.InstantOf(time.Now())
	for _, name := range k.c.Settings.Enabled() {
		topic := k.c.Cluster.Topic(name)
		if wrong := unreadable[name]; wrong != nil {
			k.found.fail(topic, wrong, "if the record is not storestream's, find out who wrote it; if it is of a "+
				"newer version, run that one")
		}
		mark, written := marks[name]
		if !written {
			continue
		}
		if age := now.Sub(mark.Written); mark.Group != k.c.Settings.Kafka.Group && age < alive {
			k.found.add(Failure, topic,
				"stop one of the two deployments, or give this one another kafka.topic_prefix",
				"it is being published by group %q (instance %s, %s ago)",
				mark.Group, mark.Instance, terminal.Duration(age))
		}
		at := slices.IndexFunc(k.topics, func(r producer.TopicReport) bool { return r.Topic == topic })
		if r := k.topics[at]; !r.Missing && r.Partitions > 0 {
			k.filled(ctx, r, mark)
		}
		k.policies(topic, mark)
	}
}

// filled reports whether the data topic is the one that mark belongs to and has all of its records. Otherwise
// an owner fills it from the start, with any number of partitions.
func (k *kafka) filled(ctx context.Context, r producer.TopicReport, mark watermark.Watermark) {
	switch other, err := producer.OtherLog(ctx, k.c.Cluster, mark); {
	case err == nil && other != "":
		k.found.add(Warning, r.Topic,
			"storestream run: an instance that runs fills it from the start within a minute",
			"it does not hold all that was published: %s", other)
	case int(mark.Partitions) != r.Partitions:
		refused := producer.OtherPartitions(k.c.Cluster, mark, r.Partitions)
		k.found.add(Failure, r.Topic, refused.Do, "it has %s: expected %s",
			terminal.Plural(r.Partitions, "partition"), refused.Expected)
	}
}

// policies says whether the topic holds rows as other policies for fields let them through.
func (k *kafka) policies(topic string, mark watermark.Watermark) {
	now := k.c.Schemas.Get(mark.Resource).PolicyFingerprint()
	switch {
	case mark.Rows == 0 || !mark.Policies.Older(now):
	case mark.Policies.InForce(now):
		k.found.add(Warning, topic,
			"storestream sweep "+mark.Resource+"; what keeps rows as they are is in its result",
			"it holds rows as policies for fields (privacy.fields) let them through that are no longer in force")
	default:
		k.found.add(Warning, topic,
			"restart the instances with this configuration, then storestream sweep "+mark.Resource,
			"its rows are published under other policies for fields than privacy.fields says here")
	}
}

// group says who shares the resources out now.
func (k *kafka) group(ctx context.Context) {
	name := k.c.Settings.Kafka.Group
	members, err := ownership.Members(ctx, k.c.Cluster)
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		k.found.fail("group", err, k.allow("group", name))
		return
	case errors.Is(err, producer.ErrSharing):
		k.found.ok("group", "%s is sharing its resources out: an instance has come or gone", name)
		return
	case err != nil:
		k.found.fail("group", err, brokerRemedy(err))
		return
	case len(members) == 0:
		k.found.ok("group", "%s has no members: no instance runs", name)
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
	k.found.ok("group", "%s has %s: %s", name, terminal.Plural(len(members), "member"), strings.Join(who, "; "))
}

// personal says where personal data stands in clear, and who may read it.
func (k *kafka) personal(ctx context.Context) {
	for _, name := range k.c.Settings.Enabled() {
		fields := k.c.Schemas.Get(name).PersonalInClear()
		if len(fields) == 0 {
			continue
		}
		topic, holds := k.c.Cluster.Topic(name), "holds"
		missing := func(r producer.TopicReport) bool { return r.Topic == topic && r.Missing }
		if slices.ContainsFunc(k.topics, missing) {
			holds = "will hold"
		}
		k.found.add(Note, topic, "see that only those read it who need to (kafka-acls.sh), and "+
			k.c.Cluster.DeadLetters()+" too; privacy.fields masks, hashes or drops fields",
			"%s personal data in clear: %s; %s", holds, strings.Join(fields, ", "), k.readers(ctx, topic))
	}
}

func (k *kafka) readers(ctx context.Context, topic string) string {
	r, err := k.inspect.Readers(ctx, topic)
	switch {
	case err != nil:
		return "cannot tell who may read it: " + err.Error()
	case r.Open:
		return "whoever reaches the broker may read it (it has no access rules)"
	case r.Unknown:
		return "cannot tell who may read it: this user may not read the access rules"
	case len(r.Principals) == 0:
		return "no access rule names it: who may read it is the broker's default (allow.everyone.if.no.acl.found)"
	}
	return "may be read by " + strings.Join(r.Principals, ", ")
}
