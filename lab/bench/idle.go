package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/storefake"
)

// threeYears is the days of history that a table of tableOf has.
const threeYears = 1095

// rowsSQL makes a table of orders by itself, spread over so many days up to an hour ago: larger ones than the stand-in service is good for.
const rowsSQL = `CREATE TABLE orders (id int8, user_id int8, status text, total_amount numeric, created_at timestamptz, updated_at timestamptz);
INSERT INTO orders SELECT n, n %% 100000, (ARRAY['Shipped','Complete','Processing','Cancelled','Returned'])[1 + n %% 5], (n %% 100000) / 100.0,
  now() - interval '2 hours %[2]d days' + n * (interval '%[2]d days' / %[1]d), now() - interval '1 hour %[2]d days' + n * (interval '%[2]d days' / %[1]d) FROM generate_series(1, %[1]d) n;
ALTER TABLE orders ADD PRIMARY KEY (id); CREATE INDEX ON orders (updated_at, id); GRANT SELECT ON orders TO ` + storefake.ReaderRole

// tableOf makes a database that holds n orders of three years, once, and returns where the reader reads it.
func (s *stage) tableOf(ctx context.Context, n int) (reader, admin string, err error) {
	return s.tableOver(ctx, n, threeYears)
}

func (s *stage) tableOver(ctx context.Context, n, days int) (reader, admin string, err error) {
	if err := s.database(ctx); err != nil {
		return "", "", err
	}
	name := tableName(n, days)
	reader, admin = s.postgres.DSN(storefake.ReaderRole, readerPassword, name), s.postgres.AdminDSN(name)
	var there bool
	if err := s.query(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = '"+name+"')", &there); err != nil || there {
		return reader, admin, err
	}
	s.say("a table of %d orders", n)
	if err := s.exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", "", err
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, fmt.Sprintf(rowsSQL, n, days)).ReadAll(); err != nil {
		return "", "", err
	}
	_, err = conn.Exec(ctx, "VACUUM (FREEZE, ANALYZE) orders")
	return reader, admin, err
}

// dropTable drops what tableOf made, for the next one to find it as new.
func (s *stage) dropTable(ctx context.Context, n int) error {
	return s.exec(ctx, "DROP DATABASE "+tableName(n, threeYears)+" WITH (FORCE)")
}

func tableName(n, days int) string { return fmt.Sprintf("rows_%d_%d", n, days) }

// sizes are the tables that are compared with each other.
func (s *stage) sizes() []int {
	switch {
	case s.quick:
		return []int{2_000, 20_000}
	case s.big:
		return []int{100_000, 1_000_000, 10_000_000}
	default:
		return []int{100_000, 1_000_000}
	}
}

// growing measures what must not grow with the table: memory of a first load, and the cost of a poll that finds nothing.
func growing(ctx context.Context, s *stage, t *table) error {
	for _, n := range s.sizes() {
		dsn, admin, err := s.tableOf(ctx, n)
		if err != nil {
			return err
		}
		var peak, rowCPU, pollCPU series
		for range min(s.runs, 3) {
			if err := s.onTable(ctx, n, dsn, admin, &peak, &rowCPU, &pollCPU, nil); err != nil {
				return err
			}
		}
		t.add(fmt.Sprintf("first load of %d generated orders: peak memory", n), "<= 80 MB, the same for all", peak, "%.0f MiB")
		t.add("... CPU of storestream a row", "", rowCPU, "%.2f us")
		t.add(fmt.Sprintf("a poll that finds nothing, table of %d rows: CPU of storestream", n), "the same for all", pollCPU, "%.2f ms")
		s.say("%d orders: first load with %.0f MiB at the peak, %.2f us a row; idle poll %.2f ms", n, peak.median(), rowCPU.median(), pollCPU.median())
	}
	n := s.sizes()[1]
	dsn, admin, err := s.tableOf(ctx, n)
	if err != nil {
		return err
	}
	var seen series
	var none series
	if err := s.onTable(ctx, n, dsn, admin, &none, &none, &none, &seen); err != nil {
		return err
	}
	t.add(fmt.Sprintf("seen, after %d rows were updated at once: bytes a row", n), "<= 24", seen[:1], "%.1f")
	t.note("... peak memory with it", "", "%.0f MiB", seen[1])
	return nil
}

// onTable runs storestream on a table: a first load, then polls that find nothing, then, if asked, what it remembers of an update of all rows.
func (s *stage) onTable(ctx context.Context, n int, dsn, admin string, peak, rowCPU, pollCPU, seen *series) (err error) {
	b, err := s.embedded(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	st, err := s.start(setting{dsn: dsn, broker: b, resources: map[string]string{"orders": "interval: 100ms"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, 10*time.Minute); err != nil {
		return err
	}
	peak.add(float64(st.peak.Load()) / (1 << 20))
	rowCPU.add(micros(used(st.Pid())) / float64(n))
	before, err := st.metric(ctx, "storestream_polls_total")
	if err != nil {
		return err
	}
	cpu := used(st.Pid())
	if err := rest(ctx, 10*time.Second); err != nil {
		return err
	}
	spent := used(st.Pid()) - cpu
	after, err := st.metric(ctx, "storestream_polls_total")
	if err != nil {
		return err
	}
	pollCPU.add(spent.Seconds() * 1000 / (after - before))
	if seen == nil {
		return nil
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "UPDATE orders SET updated_at = now()"); err != nil {
		return err
	}
	if err := st.awaitPublished(ctx, 2*n); err != nil {
		return err
	}
	bytes, err := st.metric(ctx, "storestream_seen_bytes")
	seen.add(bytes / float64(n))
	seen.add(float64(st.peak.Load()) / (1 << 20))
	return err
}

// idleness measures the whole program when nothing happens.
func idleness(ctx context.Context, s *stage, t *table) (err error) {
	if err := s.shop(ctx); err != nil {
		return err
	}
	b, err := s.embedded(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	st, err := s.start(setting{broker: b, resources: map[string]string{"orders": "", "order_items": "", "products": "", "users": "", "shipments": ""}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, 15*time.Minute); err != nil {
		return err
	}
	if err := rest(ctx, 35*time.Second); err != nil { // the first polls after the load are complete ones
		return err
	}
	var share series
	for range s.runs {
		cpu, began := used(st.Pid()), time.Now()
		if err := rest(ctx, 30*time.Second); err != nil {
			return err
		}
		share.add(100 * (used(st.Pid()) - cpu).Seconds() / time.Since(began).Seconds())
	}
	s.say("idle: %.2f %% of a core", share.median())
	t.add("all five resources at default intervals, nothing new: share of a core", "< 1 %", share, "%.2f %%")
	t.note("... peak memory, after first loads of all five at once", "", "%d MiB", st.peak.Load()>>20)
	return nil
}
