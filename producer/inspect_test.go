//go:build !kafka

package producer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas/registry"
)

// guarded is a broker with access rules, where user "stream" has those that are given, and the stage's own
// client may do everything.
func guarded(t *testing.T, rules ...kfake.ACL) *stage {
	t.Helper()
	broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: []kfake.Opt{
		kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "stream", "secret", rules...)}})
	s := setUp(t, broker, broker.Brokers())
	s.cl.Close()
	var err error
	admin := plain.Auth{User: "admin", Pass: "admin"}.AsMechanism()
	if s.cl, err = kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.SASL(admin)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cl.Close)
	s.admin = kadm.NewClient(s.cl)
	return s
}

func asStream(c *producer.Config) {
	c.SASL = producer.SASL{Mechanism: "PLAIN", Username: "stream", Password: rotation.Literal("secret")}
}

func rule(resource kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypePrefixed,
		Operation: op, Allow: true}
}

func reportOf(t *testing.T, reports []producer.TopicReport, topic string) producer.TopicReport {
	t.Helper()
	for _, r := range reports {
		if r.Topic == topic {
			return r
		}
	}
	t.Fatalf("no report of %s: %+v", topic, reports)
	return producer.TopicReport{}
}

func TestInspectingTopicsMakesNone(t *testing.T) {
	s := newStage(t)
	for _, r := range producer.Inspect(s.cluster("a", nil)).Topics(s.ctx(), "orders", "users") {
		if !r.Missing || r.Err != nil {
			t.Errorf("%+v", r)
		}
	}
	tooMany := func(c *producer.Config) { c.ReplicationFactor = 3 }
	for _, r := range producer.Inspect(s.cluster("b", tooMany)).Topics(s.ctx(), "orders") {
		var refused *producer.RefusedError
		if !r.Missing || !errors.As(r.Err, &refused) ||
			!strings.Contains(refused.Found, "INVALID_REPLICATION_FACTOR") {
			t.Errorf("three replicas on one broker: %+v", r)
		}
	}
	topics, err := s.admin.ListTopics(s.ctx())
	if err != nil || len(topics.Names()) > 0 {
		t.Errorf("there are topics now: %v, %v", topics.Names(), err)
	}
}

func TestInspectionRefusesTheTopicsThatATakeoverRefuses(t *testing.T) {
	s := newStage(t)
	settings := map[string]*string{"cleanup.policy": kadm.StringPtr("delete"),
		"max.message.bytes": kadm.StringPtr("5000")}
	if _, err := s.admin.CreateTopic(s.ctx(), 3, 1, settings, "store.orders"); err != nil {
		t.Fatal(err)
	}
	c := s.cluster("a", nil)
	found := reportOf(t, producer.Inspect(c).Topics(s.ctx(), "orders"), "store.orders")
	if found.Partitions != 3 || found.Replicas != 1 || found.MaxBytes != 5000 || found.Missing ||
		len(found.Lacking) > 0 {
		t.Errorf("%+v", found)
	}
	_, taken := producer.Take(s.ctx(), c, s.orders())
	if found.Err == nil || taken == nil || !strings.Contains(taken.Error(), found.Err.Error()) {
		t.Errorf("inspected: %v; taken over: %v", found.Err, taken)
	}
}

func TestRightsThatAreMissingAreNamed(t *testing.T) {
	const topic, id = kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeTransactionalId
	s := guarded(t, rule(topic, "store.", kmsg.ACLOperationRead),
		rule(topic, "store.", kmsg.ACLOperationDescribeConfigs),
		rule(id, "storestream-store.users", kmsg.ACLOperationWrite))
	settings := map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
	if _, err := s.admin.CreateTopic(s.ctx(), 1, 1, settings, "store.orders"); err != nil {
		t.Fatal(err)
	}
	c := s.cluster("a", asStream)
	reports := producer.Inspect(c).Topics(s.ctx(), "orders", "users")
	found := reportOf(t, reports, "store.orders")
	if !slices.Equal(found.Lacking, []string{"WRITE"}) || found.Err != nil {
		t.Errorf("%+v", found)
	}
	var refused *producer.RefusedError
	found = reportOf(t, reports, "store.users")
	if !errors.As(found.Err, &refused) || !strings.Contains(refused.Do, "allow this user") {
		t.Errorf("a topic that is missing, and that this user may not make: %+v", found)
	}
	if err := producer.Inspect(c).TransactionalID(s.ctx(), "users"); err != nil {
		t.Errorf("allowed: %v", err)
	}
	err := producer.Inspect(c).TransactionalID(s.ctx(), "orders")
	if !errors.As(err, &refused) ||
		!strings.Contains(refused.Do, "--transactional-id storestream-store.orders") {
		t.Errorf("not allowed: %v", err)
	}
	if a, err := producer.Inspect(c).Readers(s.ctx(), "store.orders"); err != nil || !a.Unknown {
		t.Errorf("who may read, asked by one who may not know: %+v, %v", a, err)
	}
}

func TestWhoMayReadATopicIsReadFromItsRules(t *testing.T) {
	const topic, cluster = kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeCluster
	s := guarded(t, kfake.ACL{Resource: cluster, Name: "kafka-cluster",
		Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationDescribe, Allow: true},
		// The embedded broker matches names alone; Kafka's own also finds the rules for prefixes that match.
		kfake.ACL{Resource: topic, Name: "store.users", Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: kmsg.ACLOperationAll, Allow: true})
	add := func(b *kadm.ACLBuilder) {
		if _, err := s.admin.CreateACLs(s.ctx(), b.ResourcePatternType(kadm.ACLPatternLiteral)); err != nil {
			t.Fatal(err)
		}
	}
	readUsers := func() *kadm.ACLBuilder { return kadm.NewACLs().Topics("store.users").Operations(kadm.OpRead) }
	add(readUsers().Allow("User:billing", "User:former").AllowHosts("*"))
	add(kadm.NewACLs().Topics("store.users").Operations(kadm.OpWrite).Allow("User:writer").AllowHosts("*"))
	add(kadm.NewACLs().Topics("store.orders").Operations(kadm.OpRead).Allow("User:elsewhere").AllowHosts("*"))
	add(readUsers().Deny("User:former").DenyHosts("*"))
	a, err := producer.Inspect(s.cluster("a", asStream)).Readers(s.ctx(), "store.users")
	want := []string{"User:billing", "User:stream"}
	if err != nil || a.Open || a.Unknown || !slices.Equal(a.Principals, want) {
		t.Errorf("%+v, %v; expected %v", a, err, want)
	}
}

func TestTheKeysOfATopicAreKnownByTheirSchema(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	if ids, err := producer.Inspect(c).KeyIDs(s.ctx(), "orders"); err != nil || len(ids) > 0 {
		t.Errorf("an empty topic: %v, %v", ids, err)
	}
	stray := &kgo.Record{Topic: "store.orders", Partition: 0, Key: []byte("by hand"), Value: []byte("x")}
	if err := s.cl.ProduceSync(s.ctx(), stray).FirstErr(); err != nil {
		t.Fatal(err)
	}
	const at = "2026-11-20T09:30:00Z"
	s.commit(session, next(session, s.order(1, at, "Shipped"), s.order(2, at, "Shipped"),
		s.order(3, at, "Shipped"), s.order(4, at, "Shipped")))
	registry, err := registry.New(registry.Config{URL: s.registry.URL})
	if err != nil {
		t.Fatal(err)
	}
	subjects, err := registry.Check(s.ctx(), "store.orders", s.orders())
	if err != nil {
		t.Fatal(err)
	}
	ids, err := producer.Inspect(c).KeyIDs(s.ctx(), "orders")
	if err != nil || !slices.Equal(ids, []int{subjects[0].ID}) {
		t.Errorf("%v, %v; expected %d", ids, err, subjects[0].ID)
	}
}
