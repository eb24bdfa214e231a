package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// The servers of this package's tests: a PostgreSQL, and a PgBouncer in transaction mode before it. Transaction ids are the whole cluster's, so
// tests do not run in parallel: one's open transaction would hold another's settled back.
var (
	server *servers.Postgres
	pooler *servers.PgBouncer
	orders *schemas.Resource
)

const role, password = "student_ro", "s3cret/of:the@role"

func TestMain(m *testing.M) { os.Exit(withServers(m)) }

func withServers(m *testing.M) int {
	ctx := context.Background()
	fail := func(err error) int { fmt.Fprintln(os.Stderr, err); return 1 }
	set, err := schemas.Load("")
	if err != nil {
		return fail(err)
	}
	orders = set.Get("orders")
	if server, err = servers.StartPostgres(ctx, servers.PostgresConfig{Settings: map[string]string{"max_prepared_transactions": "5"}}); err != nil {
		return fail(err)
	}
	defer func() { _ = server.Stop() }()
	pooler, err = servers.StartPgBouncer(ctx, servers.PgBouncerConfig{Postgres: server, Users: map[string]string{role: password}})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = pooler.Stop() }()
	admin, err := pgx.Connect(ctx, server.AdminDSN("postgres"))
	if err != nil {
		return fail(err)
	}
	defer admin.Close(ctx)
	if _, err := admin.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, password)); err != nil {
		return fail(err)
	}
	return m.Run()
}

const ordersTable = `CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint, status text, total_amount numeric(12,2),
	created_at timestamptz, updated_at timestamptz);
	CREATE INDEX ON orders (updated_at, id)`

// shop is a database of one test, with the table orders.
type shop struct {
	t     *testing.T
	name  string
	admin *pgx.Conn
}

var shops atomic.Int32

func openShop(t *testing.T, ddl string) *shop {
	t.Helper()
	s := &shop{t: t, name: fmt.Sprintf("shop_%d", shops.Add(1))}
	root := dial(t, "postgres")
	run(t, root, "CREATE DATABASE "+s.name)
	s.admin = dial(t, s.name)
	s.exec(ddl)
	s.exec("GRANT SELECT ON orders TO " + role)
	return s
}

func dial(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.AdminDSN(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (s *shop) exec(sql string) { s.t.Helper(); run(s.t, s.admin, sql) }

// writer is another connection, for a transaction of its own.
func (s *shop) writer() *pgx.Conn { s.t.Helper(); return dial(s.t, s.name) }

// put is an upsert of order id, stamped at the expression.
func put(id int, stamp string) string {
	return fmt.Sprintf(`INSERT INTO orders VALUES (%d, 1, 'Processing', 9.99, %s, %s)
		ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, status = 'Shipped'`, id, stamp, stamp)
}

// query returns one value.
func query[T any](s *shop, sql string) T {
	s.t.Helper()
	var v T
	if err := s.admin.QueryRow(s.t.Context(), sql).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// reader is a source through the pooler, and what a topic would hold of it: the part of the poller that these tests need.
type reader struct {
	t       *testing.T
	source  *postgres.Source
	metrics *prometheus.Registry

	settled schemas.Instant
	cursor  *watermark.Cursor
	rows    map[int64]schemas.Record
	rejects map[int64]schemas.Reject
	done    poller.Done
	batches []poller.Batch
	// before is called with each batch before it is taken; an error refuses it.
	before func(poller.Batch) error
}

const overlap = 2 * time.Second

func (s *shop) reader() *reader { s.t.Helper(); return s.readerOf(postgres.SourceConfig{}) }

func (s *shop) readerOf(c postgres.SourceConfig) *reader {
	s.t.Helper()
	return openReader(s.t, pooler.DSN(role, password, s.name), c)
}

func openReader(t *testing.T, dsn string, c postgres.SourceConfig) *reader {
	t.Helper()
	db, err := postgres.Open(postgres.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	r := &reader{t: t, metrics: prometheus.NewRegistry(), settled: schemas.MinInstant, rows: map[int64]schemas.Record{}, rejects: map[int64]schemas.Reject{}}
	c.Resource, c.Start = orders, schemas.MinInstant
	c.Metrics = metrics.New(r.metrics).Resource("orders")
	if c.Overlap == 0 {
		c.Overlap = overlap
	}
	r.source = postgres.NewSource(db, c)
	return r
}

// poll is one pass; it fails the test if the pass fails, or if a batch breaks the promise that settled makes.
func (r *reader) poll() poller.Done  { r.t.Helper(); return r.must(poller.Pass) }
func (r *reader) whole() poller.Done { r.t.Helper(); return r.must(poller.CompletePass) }

func (r *reader) must(kind poller.Kind) poller.Done {
	r.t.Helper()
	if err := r.read(poller.Request{Kind: kind}); err != nil {
		r.t.Fatalf("read: %v", err)
	}
	return r.done
}

func (r *reader) read(q poller.Request) error {
	if q.Kind == poller.Pass || q.Kind == poller.CompletePass {
		q.From, q.Cursor = r.settled, r.cursor
	}
	q.Started = schemas.InstantOf(time.Now())
	r.done, r.batches = poller.Done{}, nil
	return r.source.Read(r.t.Context(), q, func(b poller.Batch) error {
		if r.before != nil {
			if err := r.before(b); err != nil {
				return err
			}
		}
		return r.take(b, q)
	})
}

func (r *reader) take(b poller.Batch, q poller.Request) error {
	for _, row := range b.Rows {
		if old, ok := r.rows[row.ID]; row.UpdatedAt < r.settled && q.Kind <= poller.CompletePass && (!ok || old.UpdatedAt != row.UpdatedAt) {
			r.t.Errorf("row %d at %s appeared after settled had reached %s", row.ID, row.UpdatedAt, r.settled)
		}
		r.rows[row.ID] = row
	}
	for _, x := range b.Rejects {
		r.rejects[x.ID] = x
	}
	if q.Kind <= poller.CompletePass {
		r.settled = max(r.settled, b.Settled)
		r.cursor = b.Cursor
	}
	if b.Done != nil {
		r.done = *b.Done
	}
	r.batches = append(r.batches, b)
	return nil
}

func (r *reader) has(ids ...int64) {
	r.t.Helper()
	for _, id := range ids {
		if _, ok := r.rows[id]; !ok {
			r.t.Errorf("order %d was never read", id)
		}
	}
}

// settles polls until settled has passed at, for at most 20 s.
func (r *reader) settles(at schemas.Instant) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); r.settled <= at; {
		if time.Now().After(end) {
			r.t.Fatalf("settled stands at %s and does not pass %s", r.settled, at)
		}
		r.poll()
	}
}

var errCrash = errors.New("crash")

// until polls until done says so, for at most 30 s.
func (r *reader) until(what string, done func(poller.Done) bool) {
	r.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		if done(r.poll()) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s does not come about: settled %s, done %+v", what, r.settled, r.done)
		}
	}
}

func (s *shop) instant(sql string) schemas.Instant {
	s.t.Helper()
	return schemas.InstantOf(query[time.Time](s, sql))
}

// sameAs compares what was read with the table: every order, at its newest updated_at, and no other.
func (r *reader) sameAs(s *shop) {
	r.t.Helper()
	rows, err := s.admin.Query(r.t.Context(), "SELECT id, updated_at AT TIME ZONE 'UTC' FROM orders WHERE updated_at IS NOT NULL")
	if err != nil {
		r.t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		var id int64
		var at time.Time
		if err := rows.Scan(&id, &at); err != nil {
			r.t.Fatal(err)
		}
		n++
		if got, ok := r.rows[id]; !ok || got.UpdatedAt != schemas.InstantOf(at) {
			r.t.Errorf("order %d: read at %v (%v), the table has %v", id, got.UpdatedAt, ok, at)
		}
	}
	if rows.Err() != nil {
		r.t.Fatal(rows.Err())
	}
	if n != len(r.rows) {
		r.t.Errorf("%d orders were read, the table has %d", len(r.rows), n)
	}
}

// counted is the value of a counter.
func (r *reader) counted(name string) float64 {
	r.t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	r.t.Fatalf("no metric %s", name)
	return 0
}

func dialDSN(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// caughtUp waits until the standby has replayed what the primary has written.
func caughtUp(t *testing.T, s *shop, standby *pgx.Conn) {
	t.Helper()
	position := query[string](s, "SELECT pg_current_wal_lsn()::text")
	for end := time.Now().Add(20 * time.Second); ; {
		var done bool
		if err := standby.QueryRow(t.Context(), "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", position).Scan(&done); err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the standby does not reach %s", position)
		}
	}
}
