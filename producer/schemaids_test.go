package producer_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/wait"
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

// endsByTheRegistry commits until the session ends, because the registry no longer has its schemas.
func (s *stage) endsByTheRegistry(session *producer.Session) {
	s.t.Helper()
	ctx, tick := s.ctx(), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		err := session.Commit(ctx, next(session))
		if errors.Is(err, producer.ErrLost) && strings.Contains(err.Error(), "put them back under their ids") {
			break
		}
		if err != nil {
			s.t.Fatalf("commit: %v, expected ErrLost because of the registry", err)
		}
		<-tick.C
	}
	session.Close()
}

// silentRegistry is the stage's registry behind a door. Once that is shut it takes requests, and answers none
// until it opens.
type silentRegistry struct {
	*registry.Client
	asked, gone chan struct{} // gets one for each request that came in while it was shut, and whose client left

	mu   sync.Mutex
	open chan struct{}
}

func (s *stage) silentRegistry() *silentRegistry {
	s.t.Helper()
	r := &silentRegistry{asked: make(chan struct{}, 10), gone: make(chan struct{}, 10),
		open: make(chan struct{})}
	close(r.open)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body) // or the server does not see that the client is gone
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		open := r.open
		r.mu.Unlock()
		if !wait.Over(open) {
			r.asked <- struct{}{}
		}
		select {
		case <-open:
			to, _ := url.Parse(s.registry.URL)
			behind := httputil.NewSingleHostReverseProxy(to)
			behind.Transport = &http.Transport{DisableKeepAlives: true} // the registry may be another one by now
			behind.ServeHTTP(w, req)
		case <-req.Context().Done():
			r.gone <- struct{}{}
		}
	}))
	s.t.Cleanup(door.Close)
	var err error
	if r.Client, err = registry.New(registry.Config{URL: door.URL}); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (r *silentRegistry) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = make(chan struct{})
}

// A request that gets no answer would hold a commit for a quarter of a minute, and SIGTERM with it.
func TestARegistryThatDoesNotAnswerKeepsNoOwnerWaiting(t *testing.T) {
	s := plainStage(t)
	r, now := s.silentRegistry(), time.Now()
	c := s.cluster("a", func(c *producer.Config) {
		c.Registry, c.Now = r.Client, func() time.Time { return now }
	})
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	r.shut()
	for range 2 { // the second look asks nothing while the first has no answer
		now = now.Add(time.Minute)
		s.commit(session, next(session, s.order(2, "2026-11-20T09:00:00Z", "Shipped")))
	}
	<-r.asked
	if len(r.asked)+len(r.gone) > 0 {
		t.Error("a commit has waited until the client gave the registry up")
	}
	session.Close()
	<-r.gone
}

// What is answered late counts as well.
func TestARegistryThatAnswersLateIsHeard(t *testing.T) {
	s := plainStage(t)
	r, now := s.silentRegistry(), time.Now()
	c := s.cluster("a", func(c *producer.Config) {
		c.Registry, c.Now = r.Client, func() time.Time { return now }
	})
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	r.shut()
	now = now.Add(time.Minute)
	s.commit(session, next(session, s.order(2, "2026-11-20T09:00:00Z", "Shipped")))
	<-r.asked
	s.loseSchemas()
	close(r.open)
	s.endsByTheRegistry(session)
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
	s.endsByTheRegistry(session)
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
