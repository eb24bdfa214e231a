package postgres_test

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// BenchmarkFirstLoad reads a million orders through PgBouncer. It reports rows a second, and the CPU time of
// this process for each row.
func BenchmarkFirstLoad(b *testing.B) {
	const rows = 1_000_000
	ctx := context.Background()
	root, err := pgx.Connect(ctx, server.AdminDSN("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close(ctx)
	if _, err := root.Exec(ctx, "DROP DATABASE IF EXISTS bench"); err != nil {
		b.Fatal(err)
	}
	if _, err := root.Exec(ctx, "CREATE DATABASE bench"); err != nil {
		b.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, server.AdminDSN("bench"))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	fill := ordersTable + "; GRANT SELECT ON orders TO " + role + ";" + fmt.Sprintf(manyOrders, rows)
	if _, err := conn.Exec(ctx, fill+"; ANALYZE orders"); err != nil {
		b.Fatal(err)
	}
	db, err := postgres.Open(postgres.Config{DSN: rotation.Literal(pooler.DSN(role, password, "bench"))})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, n, peak := cpu(), 0, uint64(0)
	for b.Loop() {
		s := postgres.NewSource(db, postgres.SourceConfig{
			Resource: orders, Overlap: time.Minute, Start: schemas.MinInstant,
			Metrics: metrics.New(prometheus.NewRegistry()).Resource("orders"),
		})
		everything := poller.Request{Kind: poller.Pass, From: schemas.MinInstant}
		err := each(s.Read(ctx, everything), func(batch poller.Batch) error {
			n += len(batch.Rows)
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapAlloc)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64((cpu()-used).Nanoseconds())/float64(n), "cpu-ns/row")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/row")
	b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
