package main

import (
	"context"
	"fmt"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// growing measures two figures that must not grow with the table: memory of a first load, and the cost of a
// poll that finds no change.
func growing(ctx context.Context, r *round) error {
	for _, n := range []int{r.large / 100, r.large / 10, r.large} {
		db, err := r.database(ctx)
		if err != nil {
			return err
		}
		name, err := db.tableOf(ctx, n)
		if err != nil {
			return err
		}
		err = onTable(ctx, r, name, func(_ *broker, st *stream) error {
			took, peak, spent := time.Since(st.began), mebibytes(st.peak.Load()), micros(used(st.Pid()))
			idle, err := idlePoll(ctx, r, st)
			rows := count(n)
			r.add(figure{what: fmt.Sprintf("first load of %s orders: peak memory", rows), target: "80 MiB for all",
				format: "%.0f MiB"}, peak)
			r.add(figure{what: fmt.Sprintf("first load of %s orders: CPU of storestream a row", rows),
				format: "%.2f us"}, spent/float64(n))
			r.add(figure{what: fmt.Sprintf("a poll that finds nothing among %s orders: CPU of storestream", rows),
				target: "the same for all", format: "%.2f ms"}, idle)
			r.point("rows", "first load, s", "", float64(n), took.Seconds())
			r.point("rows", "peak memory, MiB", "", float64(n), peak)
			r.point("rows", "idle poll, ms of CPU", "", float64(n), idle)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dedupOf measures how much storestream remembers when all rows of a table change at once.
func dedupOf(ctx context.Context, r *round) error {
	const name = "dedup"
	n := r.large / 10
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	if err := db.freshTable(ctx, name, n); err != nil {
		return err
	}
	err = onTable(ctx, r, name, func(_ *broker, st *stream) error {
		if err := db.exec(ctx, name, "UPDATE orders SET updated_at = now()"); err != nil {
			return err
		}
		if err := st.awaitPublished(ctx, 2*n); err != nil {
			return err
		}
		bytes, err := st.metric(ctx, "storestream_dedup_bytes")
		what := fmt.Sprintf("%s orders updated at once: ", count(n))
		r.add(figure{what: what + "memory of dedup a row", target: "24 bytes", format: "%.1f bytes"},
			bytes/float64(n))
		r.add(figure{what: what + "peak memory", format: "%.0f MiB"}, mebibytes(st.peak.Load()))
		return err
	})
	if err != nil {
		return err
	}
	return db.drop(ctx, name)
}

// onTable runs storestream on the orders of a database, and calls do when it has loaded them.
func onTable(ctx context.Context, r *round, name string, do func(*broker, *stream) error) error {
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	set := setting{dsn: db.reader(name), resources: map[string]string{storefake.Orders: "interval: 100ms"}}
	return r.running(ctx, set, func(b *broker, st *stream) error {
		if err := st.awaitReady(ctx, 10*time.Minute); err != nil {
			return err
		}
		return do(b, st)
	})
}

// idlePoll is the CPU time of one poll while nothing changes, in milliseconds.
func idlePoll(ctx context.Context, r *round, st *stream) (float64, error) {
	polls, err := st.metric(ctx, "storestream_polls_total")
	if err != nil {
		return 0, err
	}
	cpu := used(st.Pid())
	lasts := 10 * time.Second
	if r.quick {
		lasts = time.Second
	}
	if err := wait.For(ctx, lasts); err != nil {
		return 0, err
	}
	spent := used(st.Pid()) - cpu
	after, err := st.metric(ctx, "storestream_polls_total")
	return spent.Seconds() * 1000 / (after - polls), err
}

// idleness measures the whole program when nothing happens, after first loads of all resources at once.
func idleness(ctx context.Context, r *round) error {
	all := map[string]string{}
	for _, resource := range storefake.Names() {
		all[resource] = ""
	}
	return r.running(ctx, setting{resources: all}, func(_ *broker, st *stream) error {
		if err := st.awaitReady(ctx, 15*time.Minute); err != nil {
			return err
		}
		r.add(figure{what: "five first loads at once: peak memory", target: "128 MiB", format: "%.0f MiB"},
			mebibytes(st.peak.Load()))
		if r.quick {
			return nil
		}
		if err := wait.For(ctx, 35*time.Second); err != nil { // the first polls after the load are complete ones
			return err
		}
		cpu, began := used(st.Pid()), time.Now()
		if err := wait.For(ctx, 30*time.Second); err != nil {
			return err
		}
		r.add(figure{what: "five resources at default intervals, nothing new: CPU of storestream",
			target: "1 % of a core", format: "%.2f %%"},
			100*(used(st.Pid())-cpu).Seconds()/time.Since(began).Seconds())
		return nil
	})
}
