package producer_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// BenchmarkCommit writes transactions of 50,000 orders. With STORESTREAM_BENCH_BROKERS (host:port,...) it
// writes to those, and the CPU time shown is the program's alone; else the embedded broker's, in the same
// process, is in it.
func BenchmarkCommit(b *testing.B) {
	const rows = 50_000
	brokers := strings.Split(os.Getenv("STORESTREAM_BENCH_BROKERS"), ",")
	if brokers[0] == "" {
		brokers = servers.BrokerForTest(b, servers.BrokerConfig{}).Brokers()
	}
	set, err := schemas.Load("")
	if err != nil {
		b.Fatal(err)
	}
	registry, err := registry.New(registry.Config{URL: servers.RegistryForTest(b).URL})
	if err != nil {
		b.Fatal(err)
	}
	c, err := producer.Open(producer.Config{Brokers: brokers,
		TopicPrefix: "bench" + time.Now().Format("150405."), Partitions: 6, Group: "bench", Instance: "bench",
		Registry: registry, AutoRegister: true})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	session, err := producer.Take(b.Context(), c, set.Get("orders"))
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	tx := next(session)
	for id := range int64(rows) {
		value := noise(45)
		tx.Rows = append(tx.Rows, schemas.Record{ID: id, UpdatedAt: schemas.Instant(1.6e15 + id*1e6), Value: value})
	}
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		if err := session.Commit(b.Context(), tx); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(b.N) * rows
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/n, "cpu-ns/row")
	b.ReportMetric(n/b.Elapsed().Seconds(), "rows/s")
}

// cpu is what this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
