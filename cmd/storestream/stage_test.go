package main

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// stage is a broker and a registry, with what some other instance has published there.
type stage struct {
	t        *testing.T
	broker   *servers.Broker
	registry *servers.Registry
	flags    []string // the configuration that names them
	set      *schemas.Set
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, broker: servers.BrokerForTest(t, servers.BrokerConfig{}), registry: servers.RegistryForTest(t)}
	s.flags = []string{"--set", "kafka.brokers=" + s.broker.Brokers()[0], "--set", "registry.url=" + s.registry.URL,
		"--set", "http.listen=127.0.0.1:0", "--set", "kafka.partitions=2"}
	var err error
	if s.set, err = schemas.Load(""); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) do(args ...string) *call { return do(s.t, append(args, s.flags...)...) }

// cluster is the stage as another instance sees it.
func (s *stage) cluster() *producer.Cluster {
	s.t.Helper()
	cfg, err := config.Load(config.Input{Set: []string{"kafka.brokers=" + s.broker.Brokers()[0], "registry.url=" + s.registry.URL, "kafka.partitions=2"}})
	if err != nil {
		s.t.Fatal(err)
	}
	cluster, err := openCluster(cfg, zaptest.NewLogger(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cluster.Close)
	return cluster
}

// publish commits rows of a resource, and tombstones, with the watermark that change makes of the last one.
func (s *stage) publish(resource string, rows []schemas.Record, gone []int64, change func(*watermark.Watermark)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	session, err := producer.Take(ctx, s.cluster(), s.set.Get(resource))
	if err != nil {
		s.t.Fatal(err)
	}
	defer session.Close()
	tx := watermark.Transaction{Rows: rows, Deletes: gone, Watermark: session.Watermark()}
	tx.Watermark.Rows += int64(len(rows))
	tx.Watermark.Written = schemas.InstantOf(time.Now())
	change(&tx.Watermark)
	if err := session.Commit(ctx, tx); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) order(id int64, status string) schemas.Record {
	s.t.Helper()
	row := fmt.Sprintf(`{"id":%d,"user_id":7,"status":%q,"total_amount":"49.50","created_at":"2020-01-01T00:00:00Z","updated_at":"2026-11-20T09:30:00Z"}`, id, status)
	record, reject := schemas.NewRowParser(s.set.Get("orders")).Parse([]byte(row))
	if reject != nil {
		s.t.Fatalf("%s: %s", reject.Field, reject.Err)
	}
	return record
}

// noBroker is an address where nothing listens.
func noBroker(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func instant(t *testing.T, text string) schemas.Instant {
	t.Helper()
	var i schemas.Instant
	if err := i.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return i
}
