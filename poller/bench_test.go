package poller

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// BenchmarkPublish decides about batches of new rows, as a first load brings them, with a transaction that
// costs nothing; and the same rows again, as an overlapping read brings them.
func BenchmarkPublish(b *testing.B) {
	const rows = 20_000
	set, err := schemas.Load("")
	if err != nil {
		b.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	made := make([]schemas.Record, rows)
	for i := range made {
		made[i] = schemas.Record{ID: int64(i), Value: make([]byte, 64)}
	}
	for _, settles := range []bool{true, false} {
		name := map[bool]string{true: "new", false: "again"}[settles]
		b.Run(name, func(b *testing.B) {
			shop := newShop(b, start)
			shop.config.Resource, shop.config.SourceName = set.Get("orders"), ""
			shop.config.Clock = wallClock
			shop.maxRows, shop.maxRecordBytes = func() int { return 100_000 }, 1<<20
			shop.publishes = func(context.Context, watermark.Transaction) error { return nil }
			p := New(shop.config)
			batch := make([]schemas.Record, rows)
			at := schemas.InstantOf(start)
			b.ReportAllocs()
			before := used(b)
			for b.Loop() {
				copy(batch, made)
				for i := range batch {
					batch[i].UpdatedAt = at + schemas.Instant(i*1000)
				}
				settled := schemas.MinInstant
				if settles {
					settled = batch[rows-1].UpdatedAt
					at = settled
				}
				read := Batch{Rows: batch, Settled: settled}
				if err := p.publish(one(read)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(used(b)-before)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(used(b)-before)/float64(b.N)/rows, "cpu-ns/row")
		})
	}
}

// used is the CPU time of this process in nanoseconds.
func used(b *testing.B) int64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
