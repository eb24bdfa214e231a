package main

import (
	"context"
	"fmt"
	"time"

	"github.com/storestream/storestream/internal/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// growing measures what must not grow with the table: memory of a first load, and the cost of a poll that
// finds nothing.
func growing(ctx context.Context, s *stage, t *table) error {
	for _, n := range sizes(s) {
		var peak, rowCPU, pollCPU series
		for range min(s.runs, 3) {
			err := onTable(ctx, s, n, func(_ string, st *stream) error {
				peak.add(float64(st.peak.Load()) / (1 << 20))
				rowCPU.add(micros(used(st.Pid())) / float64(n))
				ms, err := idlePoll(ctx, st)
				pollCPU.add(ms)
				return err
			})
			if err != nil {
				return err
			}
		}
		t.add(fmt.Sprintf("first load of %d generated orders: peak memory", n), "<= 80 MB, the same for all", peak,
			"%.0f MiB")
		t.add("... CPU of storestream a row", "", rowCPU, "%.2f us")
		what := fmt.Sprintf("a poll that finds nothing, table of %d rows: CPU of storestream", n)
		t.add(what, "the same for all", pollCPU, "%.2f ms")
		s.say("%d orders: first load with %.0f MiB at the peak, %.2f us a row; idle poll %.2f ms", n, peak.median(),
			rowCPU.median(), pollCPU.median())
	}
	return dedupOf(ctx, s, t, sizes(s)[1])
}

// dedupOf measures what storestream remembers when all rows of a table change at once.
func dedupOf(ctx context.Context, s *stage, t *table, n int) error {
	return onTable(ctx, s, n, func(name string, st *stream) error {
		if err := s.pg.exec(ctx, name, "UPDATE orders SET updated_at = now()"); err != nil {
			return err
		}
		if err := st.awaitPublished(ctx, 2*n); err != nil {
			return err
		}
		bytes, err := st.metric(ctx, "storestream_seen_bytes")
		perRow := series{bytes / float64(n)}
		t.add(fmt.Sprintf("dedup, after %d rows were updated at once: bytes a row", n), "<= 24", perRow, "%.1f")
		t.note("... peak memory with it", "", "%s", mebibytes(st.peak.Load()))
		return err
	})
}

// sizes are the tables that are compared with each other.
func sizes(s *stage) []int {
	switch {
	case s.quick:
		return []int{2_000, 20_000}
	case s.big:
		return []int{100_000, 1_000_000, 10_000_000}
	default:
		return []int{100_000, 1_000_000}
	}
}

// onTable runs storestream on a table of n orders, in the database name, and calls do when it has loaded
// them.
func onTable(ctx context.Context, s *stage, n int, do func(name string, st *stream) error) error {
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	name, err := db.tableOf(ctx, n)
	if err != nil {
		return err
	}
	set := setting{dsn: db.reader(name), resources: map[string]string{storefake.Orders: "interval: 100ms"}}
	return s.running(ctx, set, func(_ *broker, st *stream) error {
		if err := st.awaitReady(ctx, 10*time.Minute); err != nil {
			return err
		}
		return do(name, st)
	})
}

// idlePoll is the CPU time of one poll while nothing changes, in milliseconds.
func idlePoll(ctx context.Context, st *stream) (float64, error) {
	before, err := st.metric(ctx, "storestream_polls_total")
	if err != nil {
		return 0, err
	}
	cpu := used(st.Pid())
	if err := wait.For(ctx, 10*time.Second); err != nil {
		return 0, err
	}
	spent := used(st.Pid()) - cpu
	after, err := st.metric(ctx, "storestream_polls_total")
	return spent.Seconds() * 1000 / (after - before), err
}

// idleness measures the whole program when nothing happens.
func idleness(ctx context.Context, s *stage, t *table) error {
	all := map[string]string{}
	for _, resource := range storefake.Names() {
		all[resource] = ""
	}
	return s.running(ctx, setting{resources: all}, func(_ *broker, st *stream) error {
		if err := st.awaitReady(ctx, 15*time.Minute); err != nil {
			return err
		}
		if err := wait.For(ctx, 35*time.Second); err != nil { // the first polls after the load are complete ones
			return err
		}
		var share series
		for range s.runs {
			cpu, began := used(st.Pid()), time.Now()
			if err := wait.For(ctx, 30*time.Second); err != nil {
				return err
			}
			share.add(100 * (used(st.Pid()) - cpu).Seconds() / time.Since(began).Seconds())
		}
		s.say("idle: %.2f %% of a core", share.median())
		t.add("all resources at default intervals, nothing new: share of a core", "< 1 %", share, "%.2f %%")
		t.note("... peak memory, after first loads of all at once", "", "%s", mebibytes(st.peak.Load()))
		return nil
	})
}
