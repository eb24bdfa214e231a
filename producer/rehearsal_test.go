//go:build !kafka

package producer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
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

// rehearse takes the steps of a takeover that change nothing.
func (s *stage) rehearse(c *producer.Cluster, resource string) (producer.Rehearsal, error) {
	s.t.Helper()
	set, err := schemas.Load("")
	if err != nil {
		s.t.Fatal(err)
	}
	return producer.Rehearse(s.ctx(), c, set.Get(resource))
}

func TestARehearsalMakesNoTopicAndRegistersNothing(t *testing.T) {
	s := newStage(t)
	found, err := s.rehearse(s.cluster("a", nil), "orders")
	all := []string{"store.watermarks", "store.dead_letters", "store.requests", "store.orders"}
	if err != nil || !slices.Equal(found.Missing, all) || found.KeyID != 0 || found.ValueID != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	tooMany := func(c *producer.Config) { c.ReplicationFactor = 3 }
	_, err = s.rehearse(s.cluster("b", tooMany), "orders")
	wantText(t, err, "INVALID_REPLICATION_FACTOR", "store.orders", "store.watermarks")
	noRegistering := func(c *producer.Config) { c.AutoRegister = false }
	_, err = s.rehearse(s.cluster("c", noRegistering), "orders")
	if !registry.HasFault(err, registry.NotRegistered) {
		t.Errorf("it may not register, and the schema is not there: %v", err)
	}
	topics, err := s.admin.ListTopics(s.ctx())
	if err != nil || len(topics.Names()) > 0 {
		t.Errorf("there are topics now: %v, %v", topics.Names(), err)
	}
	if s.registry.Fake.SubjectExists("store.orders-key") {
		t.Error("a schema was registered")
	}
}

// The owner goes on, and the rehearsal finds what it has written.
func TestARehearsalDisturbsNoOwner(t *testing.T) {
	s := newStage(t)
	session := s.take(s.cluster("a", nil))
	const at = "2026-11-20T09:30:00Z"
	s.commit(session, next(session, s.order(1, at, "Shipped")))
	found, err := s.rehearse(s.cluster("b", nil), "orders")
	if err != nil || found.Missing != nil || found.KeyID == 0 || found.ValueID == 0 || found.Partitions == 0 ||
		found.Mark == nil || found.Afresh != "" {
		t.Errorf("%+v, %v", found, err)
	}
	s.commit(session, next(session, s.order(2, at, "Shipped")))
	if _, err := s.admin.DeleteTopic(s.ctx(), "store.orders"); err != nil {
		t.Fatal(err)
	}
	if err := producer.EnsureTopics(s.ctx(), s.cluster("c", nil), "orders"); err != nil {
		t.Fatal(err)
	}
	found, err = s.rehearse(s.cluster("d", nil), "orders")
	if err != nil || !strings.Contains(found.Afresh, "created anew") {
		t.Errorf("the topic is another one: %+v, %v", found, err)
	}
}

func TestASettingThatCostsSomethingIsAConcern(t *testing.T) {
	s := newStage(t)
	settings := map[string]*string{"cleanup.policy": kadm.StringPtr("compact"),
		"max.message.bytes": kadm.StringPtr("5000"), "min.insync.replicas": kadm.StringPtr("1")}
	if _, err := s.admin.CreateTopic(s.ctx(), 3, 1, settings, "store.orders"); err != nil {
		t.Fatal(err)
	}
	found, err := s.rehearse(s.cluster("a", func(c *producer.Config) { c.EraseWithin = time.Hour }), "orders")
	var named []string
	for _, concern := range found.Concerns {
		named = append(named, concern.Setting+"="+concern.Found)
	}
	want := []string{"max.compaction.lag.ms=not shown by the brokers", "max.message.bytes=5000",
		"delete.retention.ms=86400000"}
	if err != nil || found.Partitions != 3 || found.Replicas != 1 || !slices.Equal(named, want) {
		t.Errorf("%v: %+v, %v", named, found, err)
	}
	two := map[string]*string{"cleanup.policy": kadm.StringPtr("compact"),
		"min.insync.replicas": kadm.StringPtr("2")}
	if _, err := s.admin.CreateTopic(s.ctx(), 3, 1, two, "store.users"); err != nil {
		t.Fatal(err)
	}
	_, err = s.rehearse(s.cluster("b", nil), "users")
	wantText(t, err, "store.users: min.insync.replicas is 2", "every write is refused")
}

func TestRightsThatAreMissingAreNamed(t *testing.T) {
	const topic = kmsg.ACLResourceTypeTopic
	s := guarded(t, rule(topic, "store.", kmsg.ACLOperationRead),
		rule(topic, "store.", kmsg.ACLOperationDescribeConfigs))
	settings := map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
	if _, err := s.admin.CreateTopic(s.ctx(), 1, 1, settings, "store.orders"); err != nil {
		t.Fatal(err)
	}
	c := s.cluster("a", asStream)
	_, err := s.rehearse(c, "orders")
	wantText(t, err, "store.orders: the right of this user to WRITE is missing")
	_, err = s.rehearse(c, "users") // it is missing, and this user may not make it
	wantText(t, err, "store.users: its creation is refused by the broker", "allow this user to")
}

// The right to a transactional id is the last that a takeover needs.
func TestATransactionalIDThatThisUserMayNotUseIsNamed(t *testing.T) {
	const topic, id = kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeTransactionalId
	s := guarded(t, rule(topic, "store.", kmsg.ACLOperationAll), rule(kmsg.ACLResourceTypeCluster,
		"kafka-cluster", kmsg.ACLOperationAll), rule(id, "storestream-store.users", kmsg.ACLOperationWrite))
	c := s.cluster("a", asStream)
	if _, err := s.rehearse(c, "users"); err != nil {
		t.Errorf("allowed: %v", err)
	}
	_, err := s.rehearse(c, "orders")
	wantText(t, err, "--transactional-id storestream-store.orders")
}
