package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// openWriter is a transaction of the database that has written, and stays open until end is called.
func (db *database) openWriter(ctx context.Context) (end func() error, err error) {
	conn, err := pgx.Connect(ctx, db.server.AdminDSN("postgres"))
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"BEGIN", "SELECT pg_current_xact_id()"} { // the id makes it a writer
		if _, err := conn.Exec(ctx, sql); err != nil {
			_ = conn.Close(ctx)
			return nil, err
		}
	}
	return func() error { return conn.Close(ctx) }, nil
}

// besideAWriter measures how often rows are published if a first load begins while a transaction is open, and
// ends before that does. The transaction stays open for half a minute after the load, so polls go on beside
// it.
func besideAWriter(ctx context.Context, r *round) error {
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	name, err := db.tableOf(ctx, r.large)
	if err != nil {
		return err
	}
	end, err := db.openWriter(ctx)
	if err != nil {
		return err
	}
	ended := false
	defer func() {
		if !ended {
			_ = end()
		}
	}()
	stays := 30 * time.Second
	if r.quick {
		stays = 2 * time.Second
	}
	set := setting{dsn: db.reader(name), resources: map[string]string{storefake.Orders: "interval: 1s"}}
	return r.running(ctx, set, func(_ *broker, st *stream) error {
		if err := st.awaitPublished(ctx, r.large); err != nil {
			return err
		}
		if err := wait.For(ctx, stays); err != nil {
			return err
		}
		ended = true
		if err := end(); err != nil {
			return err
		}
		published, err := st.settledDown(ctx)
		what := fmt.Sprintf("first load of %s orders beside an open transaction: ", count(r.large))
		r.add(figure{what: what + "records a row", target: "1", format: "%.2f"}, published/float64(r.large))
		r.add(figure{what: what + "peak memory", format: "%.0f MiB"}, mebibytes(st.peak.Load()))
		return err
	})
}

// settledDown waits until 15 polls in a row published nothing, and returns the number of records.
func (st *stream) settledDown(ctx context.Context) (published float64, err error) {
	for {
		if err := wait.For(ctx, 15*time.Second); err != nil {
			return 0, err
		}
		n, err := st.metric(ctx, "storestream_rows_published_total")
		if err != nil || n == published {
			return n, err
		}
		published = n
	}
}

// openTransaction measures how often a version is published if many rows change within a minute while a
// transaction stays open, and how much storestream remembers meanwhile.
func openTransaction(ctx context.Context, r *round) error {
	const name = "open"
	n, steps, look := r.large*2/5, 50, 80*time.Second
	if r.quick {
		steps, look = 2, 4*time.Second
	}
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	if err := db.freshTable(ctx, name, n); err != nil {
		return err
	}
	set := setting{dsn: db.reader(name), resources: map[string]string{storefake.Orders: "interval: 1s"}}
	err = r.running(ctx, set, func(_ *broker, st *stream) error {
		if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		end, err := db.openWriter(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = end() }()
		began, most := time.Now(), 0.0
		for i := range steps {
			sql := fmt.Sprintf("UPDATE orders SET updated_at = now() WHERE id > %d AND id <= %d", n*i/steps,
				n*(i+1)/steps)
			if err := db.exec(ctx, name, sql); err != nil {
				return err
			}
			due := began.Add(time.Duration(i+1) * time.Second)
			if err := wait.For(ctx, max(time.Until(due), 0)); err != nil {
				return err
			}
		}
		if steps >= 50 && time.Since(began) > time.Minute {
			r.note("the changes took %s instead of a minute", time.Since(began).Round(time.Second))
		}
		if err := st.awaitPublished(ctx, 2*n); err != nil {
			return err
		}
		for time.Since(began) < look {
			if err := wait.For(ctx, 500*time.Millisecond); err != nil {
				return err
			}
			heap, err := st.metric(ctx, "go_memstats_heap_inuse_bytes")
			if err != nil {
				return err
			}
			most = max(most, heap)
		}
		published, err := st.metric(ctx, "storestream_rows_published_total")
		what := fmt.Sprintf("%s orders changed within a minute beside an open transaction: ", count(n))
		r.add(figure{what: what + "records a version after 80 s", target: "1", format: "%.2f"},
			published/float64(n)-1)
		r.add(figure{what: what + "peak memory", target: "120 MiB", format: "%.0f MiB"},
			mebibytes(st.peak.Load()))
		r.add(figure{what: what + "Go heap in use, at most", format: "%.0f MiB"}, most/(1<<20))
		return err
	})
	if err != nil {
		return err
	}
	return db.drop(ctx, name)
}
