// Package stage is the environment of cmd/storestream's tests: a broker and a registry, a service if they
// want one, and records of other instances. Product code never imports it.
package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap/zaptest"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// Stage is the surroundings of one test.
type Stage struct {
	Broker   *servers.Broker
	Registry *servers.Registry
	Schemas  *schemas.Set
	// Settings is the configuration that names all of it: key=value.
	Settings []string

	t *testing.T
}

// New starts a broker and a registry. The topics have two partitions. Resources that storefake does not have
// are not enabled: a new one needs no change of any test.
func New(t *testing.T) *Stage {
	t.Helper()
	broker := servers.BrokerForTest(t, servers.BrokerConfig{})
	s := &Stage{t: t, Broker: broker, Registry: servers.RegistryForTest(t)}
	s.Settings = []string{"store.base_url=http://127.0.0.1:1/v1", // which refuses connections
		"kafka.brokers=" + s.Broker.Brokers()[0], "registry.url=" + s.Registry.URL,
		"http.listen=127.0.0.1:0", "kafka.partitions=2"}
	for _, name := range schemas.Names() {
		if !slices.Contains(storefake.Names(), name) {
			s.Settings = append(s.Settings, "resources."+name+".enabled=false")
		}
	}
	var err error
	if s.Schemas, err = schemas.Load(""); err != nil {
		t.Fatal(err)
	}
	return s
}

// Serve starts a service of a few rows, which the settings name from then on. change may be nil.
func (s *Stage) Serve(change func(*storefake.Config)) *storefake.Fake {
	s.t.Helper()
	c := storefake.Config{Seed: 1, Size: storefake.Size{Users: 20, Orders: 30, Products: 10}}
	if change != nil {
		change(&c)
	}
	fake, err := storefake.Start(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(fake.Close)
	s.Settings = append(s.Settings, "store.base_url="+fake.BaseURL(), "store.request_timeout=2s",
		"store.max_requests_per_second=1000")
	return fake
}

// Config is the configuration of the settings, and of more.
func (s *Stage) Config(more ...string) *config.Config {
	s.t.Helper()
	cfg, err := config.Load(config.Input{Environ: Environ(slices.Concat(s.Settings, more)...)})
	if err != nil {
		s.t.Fatal(err)
	}
	return cfg
}

// Environ is key=value as the environment has it, where secrets may stand that may not stand in flags. Of two
// values of a key the later one counts.
func Environ(settings ...string) []string {
	var names, environ []string
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		name := "STORESTREAM_" + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
		if i := slices.Index(names, name); i >= 0 {
			environ[i] = name + "=" + value
			continue
		}
		names, environ = append(names, name), append(environ, name+"="+value)
	}
	return environ
}

// Cluster is Kafka as an instance of this name sees it, by the settings and by more.
func (s *Stage) Cluster(instance string, more ...string) *producer.Cluster {
	s.t.Helper()
	cluster, err := connect.Kafka(s.Config(more...), instance, zaptest.NewLogger(s.t), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cluster.Close)
	return cluster
}

// Publish commits rows and deletes of a resource, as another instance would, with the watermark that change
// makes of the last one. change may be nil.
func (s *Stage) Publish(resource string, rows []schemas.Record, deletes []int64,
	change func(*watermark.Watermark)) {
	s.t.Helper()
	tx := watermark.Transaction{Rows: rows, Deletes: deletes}
	s.Commit(resource, tx, func(w *watermark.Watermark) {
		w.Rows += int64(len(rows))
		w.Written = schemas.InstantOf(time.Now())
		if change != nil {
			change(w)
		}
	})
}

// Commit commits tx with the watermark that change makes of the last one. change may be nil.
func (s *Stage) Commit(resource string, tx watermark.Transaction, change func(*watermark.Watermark)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	session, err := producer.Take(ctx, s.Cluster("publisher"), s.Schemas.Get(resource))
	if err != nil {
		s.t.Fatal(err)
	}
	defer session.Close()
	tx.Watermark = session.Watermark()
	if change != nil {
		change(&tx.Watermark)
	}
	if err := session.Commit(ctx, tx); err != nil {
		s.t.Fatal(err)
	}
}

// Garbage writes a record that is no watermark under the resource's key, as another program might.
func (s *Stage) Garbage(resource string) *kgo.Record {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	put, err := cl.ProduceSync(s.t.Context(), &kgo.Record{Topic: "store.watermarks", Key: []byte(resource),
		Value: []byte("garbage")}).First()
	if err != nil {
		s.t.Fatal(err)
	}
	return put
}

// Join makes another instance a member of the group, which owns what falls to it, until the returned function
// is called.
func (s *Stage) Join(instance string, resources ...string) (leave func()) {
	s.t.Helper()
	own := func(ctx context.Context, _ string) { <-ctx.Done() }
	group := producer.NewGroup(s.Cluster(instance), resources, time.Minute, own)
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() { left <- group.Run(ctx) }()
	leave = func() {
		if cancel(); left != nil {
			if err := <-left; err != nil {
				s.t.Error(err)
			}
			left = nil
		}
	}
	s.t.Cleanup(leave)
	return leave
}

// Order is a row of orders, updated at 2026-11-20T09:30:00Z.
func (s *Stage) Order(id int64, status string) schemas.Record {
	s.t.Helper()
	row := fmt.Sprintf(`{"id":%d,"user_id":7,"status":%q,"total_amount":"49.50",`+
		`"created_at":"2020-01-01T00:00:00Z","updated_at":"2026-11-20T09:30:00Z"}`, id, status)
	record, reject := schemas.NewRowParser(s.Schemas.Get("orders")).Parse([]byte(row))
	if reject != nil {
		s.t.Fatalf("%s: %s", reject.Field, reject.Err)
	}
	return record
}

// Nowhere returns an address without a listener.
func Nowhere(t *testing.T) string {
	t.Helper()
	l, err := servers.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Instant reads an RFC 3339 time.
func Instant(t *testing.T, text string) schemas.Instant {
	t.Helper()
	var i schemas.Instant
	if err := i.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return i
}

// Eventually waits until f says true.
func Eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline, look := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	for !f() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatal("not within 30 s: " + what)
		}
	}
}
