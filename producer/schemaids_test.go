package producer_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
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

// A registry may take a request and never answer. The session goes on.
func TestARegistryThatDoesNotAnswerEndsNoSession(t *testing.T) {
	s := plainStage(t)
	var shut atomic.Bool
	asked := make(chan struct{}, 10) // gets one for each request that came in while it was shut
	to, err := url.Parse(s.registry.URL)
	if err != nil {
		t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(to)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !shut.Load() {
			behind.ServeHTTP(w, req)
			return
		}
		_, _ = io.Copy(io.Discard, req.Body) // or the server does not see that the client is gone
		asked <- struct{}{}
		<-req.Context().Done()
	}))
	t.Cleanup(door.Close)
	silent, err := registry.New(registry.Config{URL: door.URL})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	session := s.take(s.cluster("a", func(c *producer.Config) {
		c.Registry, c.Now = silent, func() time.Time { return now }
	}))
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	shut.Store(true)
	now = now.Add(time.Minute)
	s.commit(session, next(session, s.order(2, "2026-11-20T09:00:00Z", "Shipped")))
	if len(asked) == 0 {
		t.Error("the registry was not asked within a minute")
	}
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
	err := session.Commit(s.ctx(), next(session))
	if wantText(t, err, "put the schemas back under these ids"); !errors.Is(err, producer.ErrLost) {
		t.Fatalf("commit: %v, expected ErrLost", err)
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
