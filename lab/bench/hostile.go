package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// hostile measures the memory that a hostile service can make us take: one row that is far too large, and
// answers that do not end.
func hostile(ctx context.Context, r *round) error {
	return errors.Join(hugeRow(ctx, r), endlessBodies(ctx, r))
}

func hugeRow(ctx context.Context, r *round) error {
	const name = "huge"
	size := 200
	if r.quick {
		size = 5
	}
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	huge := fmt.Sprintf("UPDATE orders SET status = repeat('x', %d << 20) WHERE id = 500", size)
	if err := db.freshTable(ctx, name, 1000, huge); err != nil {
		return err
	}
	set := setting{dsn: db.reader(name), resources: map[string]string{storefake.Orders: "interval: 1s"}}
	err = r.running(ctx, set, func(_ *broker, st *stream) error {
		// It becomes a dead letter, or the resource is blocked; either way it was read by then.
		err := untilEvery(ctx, 100*time.Millisecond, time.Minute, "the dead letter", func() bool {
			letters, err := st.metric(ctx, "storestream_dead_letters_total")
			return err == nil && letters > 0
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.note("one row of %d MB: %v", size, err)
		}
		if err := wait.For(ctx, 3*time.Second); err != nil { // polls read it again
			return err
		}
		r.add(figure{what: fmt.Sprintf("one row of %d MB: peak memory of run", size), target: "256 MiB",
			format: "%.0f MiB"}, mebibytes(st.peak.Load()))
		return nil
	})
	if err != nil {
		return err
	}
	return db.drop(ctx, name)
}

// endlessBodies has every data request of all five resources answered with rows without end.
func endlessBodies(ctx context.Context, r *round) (err error) {
	v, err := startService(ctx, r.stage, "--orders", "100", "--users", "100", "--products", "100", "--fault",
		string(storefake.Endless))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Kill()) }()
	all := map[string]string{}
	for _, resource := range storefake.Names() {
		all[resource] = "interval: 1s"
	}
	lasts := 30 * time.Second
	if r.quick {
		lasts = 5 * time.Second
	}
	return r.running(ctx, setting{base: v.base, resources: all}, func(_ *broker, st *stream) error {
		if err := wait.For(ctx, lasts); err != nil {
			return err
		}
		if servers.Closed(st.Exited()) {
			return st.Ended()
		}
		r.add(figure{what: "endless bodies over five resources: peak memory of run", target: "256 MiB",
			format: "%.0f MiB"}, mebibytes(st.peak.Load()))
		return nil
	})
}
