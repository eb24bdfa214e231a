package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// Tests of docs/lifecycle.md, "The Kafka cluster is lost or mirrored".

// The cluster comes back empty behind the same addresses while instances run. They make the topics anew and
// fill them, without a restart. A row that the service deleted meanwhile is in no topic.
func TestAClusterThatIsLostIsFilledAnewWithoutARestart(t *testing.T) {
	t.Parallel()
	realServers(t)
	s := start(t, setup{apicurio: true, fake: smallShop(64), yaml: quick})
	s.fake.StartTraffic(30)
	running := []*process{s.spawn("run"), s.spawn("run")}
	share(running...)
	s.changes(100)
	s.expect(0, nil, "sweep", storefake.Orders, "--yes", "--wait") // a request, which the new cluster has not
	if err := s.kafka.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.kafka.Data()); err != nil {
		t.Fatal(err)
	}
	if err := s.fake.Delete(t.Context(), storefake.Users, 7); err != nil {
		t.Fatal(err)
	}
	s.changes(60)
	if err := s.kafka.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.topics = nil
	share(running...)
	for _, p := range running {
		p.isReady()
	}
	s.changes(100)
	s.quiet()
	consumer := s.follow(storefake.Users, s.schemaWith(storefake.Users))
	consumer.holds(s, nil)
	s.eventuallySays("Everything is up to date", "watermark", "list")
	s.expect(0, []string{"Identical"}, "verify")
	before := s.mark(storefake.Orders)
	s.expect(0, nil, "watermark", "reset", storefake.Orders, "--to", "2020-01-01", "--yes")
	s.done(storefake.Orders, before)
	running[1].kill()
	running[0].owns(storefake.Names()...) // the group of the new cluster hands over as the old one's did
	s.shop(20)
	s.converge()
}

// mirrorSettings is the mm2.properties of docs/lifecycle.md, with the names that servers gives the clusters.
func mirrorSettings(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "mm2.properties:\n\n```\n")
	block, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("docs/lifecycle.md has no mm2.properties")
	}
	settings, names := map[string]string{}, strings.NewReplacer("primary", "source", "other", "target")
	for line := range strings.Lines(block) {
		key, value, _ := strings.Cut(line, " = ")
		settings[names.Replace(key)] = strings.TrimSpace(value)
	}
	return settings
}

// mirror copies what storestream writes to another cluster.
func (s *stack) mirror(target *servers.Kafka, settings map[string]string) *servers.MirrorMaker {
	s.t.Helper()
	return servers.MirrorMakerForTest(s.t, servers.MirrorMakerConfig{Source: s.brokers, Target: target.Brokers(),
		Settings: settings})
}

// aborted writes a record of a row's key in a transaction that is aborted: no consumer here sees it.
func (s *stack) aborted(resource string) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.TransactionalID("aborts"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	var first *kgo.Record
	// The marker of its transaction may still be on the way.
	eventually(s.t, "a row can be read", func() (bool, string) {
		records := s.read(s.prefix + resource)
		if len(records) > 0 {
			first = records[0]
		}
		return first != nil, ""
	})
	if err := cl.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	err = cl.ProduceSync(s.t.Context(), &kgo.Record{Topic: first.Topic, Key: first.Key, Value: []byte("aborted"),
		Timestamp: first.Timestamp}).FirstErr()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cl.EndTransaction(s.t.Context(), kgo.TryAbort); err != nil {
		s.t.Fatal(err)
	}
}

// A mirrored cluster takes over: its consumers read on, and storestream publishes everything once more there.
// Then the first cluster is back, and storestream goes on there where it had stopped. A row that was deleted
// meanwhile goes with a sweep.
func TestAFailoverToAClusterThatMirrorMakerFilledAndBackLosesNothing(t *testing.T) {
	t.Parallel()
	realServers(t)
	s := start(t, setup{apicurio: true, fake: smallShop(65), yaml: quick})
	target := s.at("target", servers.KafkaForTest(t, servers.KafkaConfig{}), s.registry)
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	p.isReady()
	s.aborted(storefake.Orders)
	mirror := s.mirror(target.kafka, mirrorSettings(t))
	s.changes(200)
	s.quiet()
	for resource, records := range target.converge() { // the copies are what the service has
		inOrder(t, resource, records)
		if want := s.topic(resource); len(records) != len(want) {
			t.Errorf("%s: %d records were mirrored of %d", resource, len(records), len(want))
		}
	}
	consumer := target.follow(storefake.Users, s.schemaWith(storefake.Users))

	s.fake.StartTraffic(30)
	s.changes(100)
	if err := s.kafka.Kill(); err != nil { // the first cluster is gone
		t.Fatal(err)
	}
	p.kill()
	if err := mirror.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.fake.Delete(t.Context(), storefake.Users, 7); err != nil {
		t.Fatal(err)
	}
	s.changes(100)
	copied := map[string]int{}
	for _, resource := range storefake.Names() {
		copied[resource] = len(target.topic(resource))
	}
	p = target.spawn("run")
	p.isReady()
	s.changes(100)
	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	target.expect(0, nil, "sweep", storefake.Users, "--yes", "--wait")
	for resource, records := range target.converge() {
		inOrder(t, resource, records[copied[resource]:]) // nothing is there twice that storestream wrote here
		if n := len(records) - copied[resource]; n < s.fake.Count(resource) {
			t.Errorf("%s: %d records came behind the copies, expected all %d rows once more", resource, n,
				s.fake.Count(resource))
		}
	}
	consumer.holds(target, nil)
	target.expect(0, []string{"Identical"}, "verify")
	p.stop()

	s.fake.StartTraffic(30)
	s.changes(60)
	if err := s.kafka.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.spawn("run").isReady()
	s.changes(60)
	s.expect(0, nil, "sweep", storefake.Users, "--yes", "--wait")
	s.quiet() // no version is there twice: it went on where it had stopped
	s.expect(0, []string{"Identical"}, "verify")
}

// With another registry the ids in the copies name nothing, or other schemas: the resources are blocked, and
// say so, until the copies are deleted.
func TestAFailoverWithAnotherRegistryHoldsUntilTheCopiesAreDeleted(t *testing.T) {
	t.Parallel()
	realServers(t)
	s := start(t, setup{apicurio: true, noPostgres: true, fake: smallShop(66), yaml: quick})
	p := s.spawn("run")
	p.isReady()
	registry := servers.ApicurioForTest(t, servers.ApicurioConfig{})
	client, err := sr.NewClient(sr.URLs(registry.URL()))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 { // of other teams, so that the ids differ
		schema := sr.Schema{Schema: fmt.Sprintf(`{"type":"record","name":"Other%d","fields":[]}`, n)}
		if _, err := client.CreateSchema(t.Context(), fmt.Sprintf("other%d-value", n), schema); err != nil {
			t.Fatal(err)
		}
	}
	target := s.at("target", servers.KafkaForTest(t, servers.KafkaConfig{}), registry.URL())
	settings := mirrorSettings(t)
	delete(settings, "source->target.topics.exclude") // what storestream keeps for itself too
	mirror := s.mirror(target.kafka, settings)
	s.quiet()
	seen := *target
	seen.registry = s.registry
	seen.converge()
	p.stop()
	if err := mirror.Stop(); err != nil {
		t.Fatal(err)
	}
	p = target.spawn("run")
	p.reports("the schema id of its keys",
		"docs/operations.md says what to do", "Not taken over")
	topics := []string{}
	own := []string{"watermarks", "dead_letters", "requests"}
	for _, resource := range slices.Concat(storefake.Names(), own) {
		topics = append(topics, target.prefix+resource)
	}
	if _, err := target.admin().DeleteTopics(t.Context(), topics...); err != nil {
		t.Fatal(err)
	}
	p.isReady()
	target.quiet()
}
