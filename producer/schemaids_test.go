package producer_test

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// loseSchemas has the registry come back at its address without a schema.
func (s *stage) loseSchemas() {
	s.t.Helper()
	at, err := url.Parse(s.registry.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.registry.Stop(); err != nil {
		s.t.Fatal(err)
	}
	if s.registry, err = servers.StartRegistry(port); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.registry.Stop() })
}

// A registry that keeps its schemas in memory loses them when it is killed. Whoever registers first then gets
// the ids under which rows stand in the topics, and consumers decode those with a wrong schema.
func TestARegistryThatLostItsSchemasIsNoticedWithinAMinuteAndGetsNoOthers(t *testing.T) {
	s := plainStage(t)
	now := time.Now()
	c := s.cluster("a", func(c *producer.Config) { c.Now = func() time.Time { return now } })
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	written := s.committed("store.orders")[0]
	keyID, _, _ := schemas.ReadKey(written.Key)
	valueID, _ := schemas.SchemaID(written.Value)

	s.loseSchemas()
	s.commit(session, next(session, s.order(2, "2026-11-20T09:00:00Z", "Shipped")))
	now = now.Add(time.Minute)
	err := session.Commit(s.ctx(), next(session, s.order(3, "2026-11-20T09:00:00Z", "Shipped")))
	if !errors.Is(err, producer.ErrLost) || !strings.Contains(err.Error(), "does not hold this schema") {
		t.Fatalf("commit: %v, expected ErrLost because of the registry", err)
	}
	session.Close()
	refusedWith := func(text string) {
		t.Helper()
		_, err := producer.Take(s.ctx(), c, s.orders())
		var refused *producer.RefusedError
		if !errors.As(err, &refused) || refused.MayPass || !strings.Contains(err.Error(), text) {
			t.Errorf("taking over: %v, expected a RefusedError with %q", err, text)
		}
		checked := producer.SameSchemas(s.ctx(), c, s.orders())
		if !errors.As(checked, &refused) || !strings.Contains(checked.Error(), text) {
			t.Errorf("asked for its schemas: %v, expected a RefusedError with %q", checked, text)
		}
	}
	refusedWith("which this registry does not have")
	if s.registry.Fake.SubjectExists("store.orders-key") {
		t.Error("a schema was registered: its id may be one that stands in another topic")
	}
	other := func(name string) sr.Schema {
		return sr.Schema{Schema: `{"type":"record","name":"` + name + `","fields":[{"name":"id","type":"long"}]}`}
	}
	s.registry.Fake.SeedSchema("other-key", 1, keyID, other("OtherKey"))
	s.registry.Fake.SeedSchema("other-value", 1, valueID, other("Other"))
	refusedWith("which names OtherKey in this registry")

	s.loseSchemas() // and they are put back
	s.registry.Fake.SeedSchema("store.orders-key", 1, keyID, sr.Schema{Schema: s.orders().KeySchema()})
	s.registry.Fake.SeedSchema("other-value", 1, valueID, other("Other"))
	refusedWith("which names Other in this registry")
	s.loseSchemas()
	s.registry.Fake.SeedSchema("store.orders-key", 1, keyID, sr.Schema{Schema: s.orders().KeySchema()})
	s.registry.Fake.SeedSchema("store.orders-value", 1, valueID, sr.Schema{Schema: s.orders().ValueSchema()})
	session = s.take(c)
	s.commit(session, next(session, s.order(3, "2026-11-20T09:00:00Z", "Shipped")))
	s.wantIDs(1, 2, 3)
}
