//go:build kafka

package producer_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/producer"
)

// right is one access rule that docs/deploying.md asks for.
type right struct {
	operation kadm.ACLOperation
	on        func(b *kadm.ACLBuilder, prefix string) *kadm.ACLBuilder
}

func onTopics(b *kadm.ACLBuilder, prefix string) *kadm.ACLBuilder {
	return b.Topics(prefix).ResourcePatternType(kadm.ACLPatternPrefixed)
}

func onGroup(b *kadm.ACLBuilder, prefix string) *kadm.ACLBuilder {
	return b.Groups(prefix + "group").ResourcePatternType(kadm.ACLPatternLiteral)
}

func onIDs(b *kadm.ACLBuilder, prefix string) *kadm.ACLBuilder {
	return b.TransactionalIDs("storestream-" + prefix).ResourcePatternType(kadm.ACLPatternPrefixed)
}

// rights are the whole list. Each of READ and WRITE comes with DESCRIBE.
var rights = map[string]right{
	"READ on topics":             {kadm.OpRead, onTopics},
	"WRITE on topics":            {kadm.OpWrite, onTopics},
	"CREATE on topics":           {kadm.OpCreate, onTopics},
	"DESCRIBE_CONFIGS on topics": {kadm.OpDescribeConfigs, onTopics},
	"READ on the group":          {kadm.OpRead, onGroup},
	"WRITE on transactional ids": {kadm.OpWrite, onIDs},
}

// guardedKafka is an Apache Kafka with an authorizer, TLS and SCRAM; who comes by the plain listener may do
// all.
func guardedKafka(t *testing.T, a *servers.Authority) *servers.Kafka {
	t.Helper()
	return servers.KafkaForTest(t, servers.KafkaConfig{Secured: "SASL_SSL", Settings: map[string]string{
		"transaction.partition.verification.enable": "false", // so that a test can leave a transaction open
		"authorizer.class.name":                     "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                               "User:ANONYMOUS",
		secured + "ssl.keystore.type":               "PEM",
		secured + "ssl.keystore.location":           a.Issue(servers.CertificateConfig{Name: "broker"}).KeyStore,
		secured + "sasl.enabled.mechanisms":         "SCRAM-SHA-512",
		secured + "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram." +
			"ScramLoginModule required;",
	}})
}

// allow makes a user with all rights but one, over what begins with prefix, and the group of that
// name alone.
func (s *stage) allow(user, prefix, without string) {
	s.t.Helper()
	s.enrol(user)
	for name, r := range rights {
		if name != without {
			s.grant(r.on(kadm.NewACLs(), prefix).Operations(r.operation).Allow("User:" + user))
		}
	}
}

// enrol makes a user who may do nothing yet.
func (s *stage) enrol(user string) {
	s.t.Helper()
	made, err := s.admin.AlterUserSCRAMs(s.ctx(), nil, []kadm.UpsertSCRAM{{User: user,
		Mechanism: kadm.ScramSha512, Iterations: 4096, Password: secret}})
	if err = errors.Join(err, made.Error()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) grant(rules *kadm.ACLBuilder) {
	s.t.Helper()
	results, err := s.admin.CreateACLs(s.ctx(), rules)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// command is one of the commands for access rules in docs/deploying.md: the words that follow each flag.
type command map[string][]string

// documented returns all of these commands.
func documented(t *testing.T) (commands []command) {
	t.Helper()
	text, err := os.ReadFile("../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"--bootstrap-server", "--command-config", "--allow-principal", "--resource-pattern-type",
		"--topic", "--group", "--transactional-id", "--operation"}
	for line := range strings.SplitSeq(strings.ReplaceAll(string(text), "\\\n", ""), "\n") {
		said, ok := strings.CutPrefix(line, "kafka-acls.sh ")
		if !ok {
			continue
		}
		c, words := command{}, strings.Fields(strings.Replace(said, "--add ", "", 1))
		for pair := range slices.Chunk(words, 2) {
			if len(pair) != 2 || !slices.Contains(known, pair[0]) {
				t.Fatalf("this test does not know %q in: %s", pair, line)
			}
			c[pair[0]] = append(c[pair[0]], pair[1])
		}
		commands = append(commands, c)
	}
	return commands
}

func operations(t *testing.T, names []string) (operations []kadm.ACLOperation) {
	t.Helper()
	for _, name := range names {
		operation, err := kmsg.ParseACLOperation(name)
		if err != nil {
			t.Fatal(err)
		}
		operations = append(operations, operation)
	}
	return operations
}

// rulesOf returns the access rules that Kafka's own tool makes of the exported command for r.
func rulesOf(t *testing.T, r producer.Right) *kadm.ACLBuilder {
	t.Helper()
	rules, pattern := kadm.NewACLs(), kadm.ACLPatternLiteral
	switch r.On {
	case "topic":
		rules.Topics(r.Names...)
	case "group":
		rules.Groups(r.Names...)
	case "transactional-id":
		rules.TransactionalIDs(r.Names...)
	default:
		t.Fatalf("a right on a %s", r.On)
	}
	if r.Prefixed {
		pattern = kadm.ACLPatternPrefixed
	}
	return rules.ResourcePatternType(pattern).Operations(operations(t, r.Operations)...).Allow("User:" + r.User)
}

// docs/deploying.md has storestream's rights as commands to copy.
func TestTheCommandsInDeployingGrantTheseRights(t *testing.T) {
	targets := map[string]string{"[prefixed] [store.] [] []": "topics",
		"[] [] [storestream-store.] []":         "the group",
		"[prefixed] [] [] [storestream-store.]": "transactional ids"}
	granted := map[string]bool{}
	for _, c := range documented(t) {
		if !slices.Equal(c["--allow-principal"], []string{"User:storestream"}) {
			continue
		}
		on := fmt.Sprint(c["--resource-pattern-type"], c["--topic"], c["--group"], c["--transactional-id"])
		for _, operation := range operations(t, c["--operation"]) {
			granted[operation.String()+" on "+cmp.Or(targets[on], on)] = true
		}
	}
	if !maps.Equal(granted, allRights()) {
		t.Errorf("the commands grant %v, needed is %v", granted, allRights())
	}
}

// allRights is the names of the whole list.
func allRights() map[string]bool {
	all := map[string]bool{}
	for name := range rights {
		all[name] = true
	}
	return all
}

// signIn has an instance log in as user at a guardedKafka with a certificate of a's.
func signIn(t *testing.T, c *producer.Config, a *servers.Authority, user string) {
	t.Helper()
	c.TLS = opened(t, tlsfile.Files{Section: "kafka.tls", CAFile: a.File})
	c.SASL = producer.SASL{Mechanism: "SCRAM-SHA-512", Username: user, Password: rotation.Literal(secret)}
}

func TestTheRightsThatAreDocumentedAreEnoughAndEachIsNeeded(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	kafka := guardedKafka(t, a)
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	as := func(user, prefix string) *producer.Cluster {
		return s.cluster(user, func(c *producer.Config) {
			c.TopicPrefix, c.Group = prefix, prefix+"group"
			signIn(t, c, a, user)
		})
	}
	s.allow("stream", "all.", "")
	cluster, l := as("stream", "all."), newLedger(t)
	l.run(cluster, "stream")
	l.await("all resources", l.everythingOwned("stream"))
	if err := s.everything(s.ctx(), cluster); err != nil {
		t.Errorf("with all rights: %v", err)
	}
	number := 0
	for name := range rights {
		number++
		user, prefix := fmt.Sprintf("user%d", number), fmt.Sprintf("case%d.", number)
		s.allow(user, prefix, name)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := s.everything(ctx, as(user, prefix))
		cancel()
		if works := name == "DESCRIBE_CONFIGS on topics"; (err == nil) != works { // settings are unknown then
			t.Errorf("without %s everything works: %v, expected %v", name, err == nil, works)
		}
		t.Logf("without %s: %v", name, err)
	}
}

// The documented rights do not let storestream end a transaction that hangs under an earlier producer id. The
// resource is not taken over, and the error has the commands that end it: here an administrator runs them.
func TestATransactionThatStorestreamMayNotEndIsNamedWithTheCommandThatDoes(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	kafka := guardedKafka(t, a)
	admin := setUp(t, nil, kafka.Brokers())
	s := *admin
	s.brokers = kafka.SecuredBrokers()
	s.allow("stream", "store.", "")
	c := s.cluster("stream", func(c *producer.Config) {
		c.Group = "store.group"
		signIn(t, c, a, "stream")
	})
	first := s.take(c)
	s.commit(first, next(first, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	first.Close()
	admin.hang("storestream-store.orders", "store.watermarks")
	admin.exhaust("storestream-store.orders")

	_, err := producer.Take(s.ctx(), c, s.orders())
	if _, ok := errors.AsType[*producer.RefusedError](err); !ok {
		t.Fatalf("taking over: %v, expected a *RefusedError", err)
	}
	command := regexp.MustCompile(`(?m)kafka-transactions.sh --bootstrap-server \S+ --command-config FILE (.*)$`)
	commands := command.FindAllStringSubmatch(err.Error(), -1)
	if len(commands) != 5 {
		t.Fatalf("%d commands, expected one for each of five partitions: %v", len(commands), err)
	}
	for _, c := range commands {
		tool := kafka.Tool("org.apache.kafka.tools.TransactionsCommand", strings.Fields(c[1])...)
		if out, err := exec.CommandContext(t.Context(), tool[0], tool[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c[1], err, out)
		}
	}
	if got := s.take(c).Watermark().Rows; got != 1 {
		t.Errorf("the successor finds %d rows, expected 1", got)
	}
}

// The same for all users whose rights `storestream topics export` prints. Of these, only storestream can own
// a resource, and only oncall-admin can send it requests. lab/contracts runs the printed commands.
func TestPeopleOnCallAndConsumersMayDoWhatIsDocumentedAndNothingElse(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	kafka := guardedKafka(t, a)
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	as := func(user string) *producer.Cluster {
		return s.cluster(user, func(c *producer.Config) {
			c.Group = "storestream-store."
			signIn(t, c, a, user)
		})
	}
	users, stream, l := map[string]bool{}, as("storestream"), newLedger(t)
	for _, right := range producer.Rights(stream, all...) {
		if !users[right.User] {
			s.enrol(right.User)
		}
		users[right.User] = true
		s.grant(rulesOf(t, right))
	}
	create := rights["CREATE on topics"] // which it does not have if somebody else creates the topics
	s.grant(create.on(kadm.NewACLs(), "store.").Operations(create.operation).Allow("User:storestream"))
	l.run(stream, "storestream")
	l.await("all resources", l.everythingOwned("storestream"))
	if err := s.everything(s.ctx(), stream); err != nil {
		t.Fatalf("storestream: %v", err)
	}
	if err := producer.EnsureTopics(s.ctx(), stream, all...); err != nil {
		t.Fatal(err)
	}
	listed, err := s.admin.ListTopics(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	topics := listed.Names()
	onCall := map[string]string{}
	for _, topic := range topics {
		onCall[topic] = "READ DESCRIBE DESCRIBE_CONFIGS"
	}
	reader := map[string]string{"store.watermarks": "READ DESCRIBE"}
	for _, resource := range all {
		reader["store."+resource] = "READ DESCRIBE"
	}
	admin := maps.Clone(onCall)
	admin["store.requests"] = "READ WRITE DESCRIBE DESCRIBE_CONFIGS"
	each := map[string]map[string]string{"oncall": onCall, "oncall-admin": admin, "analytics": reader}
	for user, want := range each {
		cl := s.signedIn(a, user)
		if got := s.rightsOnTopics(cl); !maps.Equal(got, want) {
			t.Errorf("%s may do %v with topics, expected %v", user, got, want)
		}
		for _, topic := range topics {
			record := &kgo.Record{Topic: topic, Key: []byte("orders"), Value: []byte("{}")}
			err := cl.ProduceSync(s.ctx(), record).FirstErr()
			if may := strings.Contains(want[topic], "WRITE"); may != (err == nil) || !may && !refused(err) {
				t.Errorf("%s writes to %s: %v", user, topic, err)
			}
		}
		if err := s.join(cl, "storestream-store."); !refused(err) {
			t.Errorf("%s joins storestream's group: %v", user, err)
		}
		if _, err := producer.Take(s.ctx(), as(user), s.orders()); !refused(err) {
			t.Errorf("%s takes orders over: %v", user, err)
		}
		delete(users, user)
	}
	if delete(users, "storestream"); len(users) > 0 {
		t.Errorf("nobody has tried what %v may do", users)
	}
	for user, mayAsk := range map[string]bool{"oncall": false, "oncall-admin": true} {
		cluster := as(user)
		if err := reads(s.ctx(), cluster); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		_, err := cluster.Requests().Ask(s.ctx(), sweepOf("orders"))
		if mayAsk != (err == nil) || !mayAsk && !refused(err) {
			t.Errorf("%s asks for a sweep: %v", user, err)
		}
	}
	for _, topic := range []string{"store.orders", "store.watermarks"} {
		fetches := s.signedIn(a, "analytics", kgo.ConsumerGroup("analytics"), kgo.ConsumeTopics(topic),
			kgo.FetchIsolationLevel(kgo.ReadCommitted())).PollFetches(s.ctx())
		if err := fetches.Err(); err != nil || fetches.NumRecords() == 0 {
			t.Errorf("a consumer reads %d records of %s: %v", fetches.NumRecords(), topic, err)
		}
	}
}

// signedIn is a plain client of user's. It asks for no producer id, so that it is the topic that refuses it.
func (s *stage) signedIn(a *servers.Authority, user string, opts ...kgo.Opt) *kgo.Client {
	s.t.Helper()
	login := scram.Auth{User: user, Pass: secret}
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(s.brokers...), kgo.DisableIdempotentWrite(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SASL(login.AsSha512Mechanism()),
		kgo.DialTLSConfig(&tls.Config{RootCAs: a.Pool, MinVersion: tls.VersionTLS12}))...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cl.Close)
	return cl
}

// rightsOnTopics is what the broker says that cl's user may do with each topic that it shows to it.
func (s *stage) rightsOnTopics(cl *kgo.Client) map[string]string {
	s.t.Helper()
	request := kmsg.NewPtrMetadataRequest()
	request.IncludeTopicAuthorizedOperations = true
	response, err := request.RequestWith(s.ctx(), cl)
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string]string{}
	for _, topic := range response.Topics {
		var may []string
		for operation := range kmsg.ACLOperation(32) {
			if topic.AuthorizedOperations&(1<<operation) != 0 {
				may = append(may, operation.String())
			}
		}
		found[*topic.Topic] = strings.Join(may, " ")
	}
	return found
}

// join asks to become a member of a group that shares topics out.
func (s *stage) join(cl *kgo.Client, group string) error {
	s.t.Helper()
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType = group, "consumer"
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 10_000, 10_000
	request.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "cooperative-sticky"}}
	response, err := request.RequestWith(s.ctx(), cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.ErrorCode)
}

// refused says whether it is for rights that are missing.
func refused(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) ||
		errors.Is(err, kerr.ClusterAuthorizationFailed) || errors.Is(err, kerr.TransactionalIDAuthorizationFailed)
}
