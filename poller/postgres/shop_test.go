package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// The servers of this package's tests: a PostgreSQL, a PgBouncer in transaction mode before it, and a standby
// for those who ask. Transaction ids belong to the whole cluster, and one test's open transaction would hold
// another's settled back. So only tests run in parallel that leave no transaction open, and that mostly wait.
var (
	server  *servers.Postgres
	pooler  *servers.PgBouncer
	orders  *schemas.Resource
	standby struct {
		start  sync.Once
		server *servers.Postgres
		err    error
	}
)

const role, password = "student_ro", "s3cret/of:the@role"

func TestMain(m *testing.M) {
	flag.Parse()
	err := flag.Set("test.parallel", "8") // they wait, whatever the number of cores
	code := 1
	if err == nil {
		code, err = withServers(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func withServers(m *testing.M) (code int, err error) {
	ctx := context.Background()
	set, err := schemas.Load("")
	if err != nil {
		return 1, err
	}
	orders = set.Get("orders")
	server, err = servers.StartPostgres(ctx, servers.PostgresConfig{
		InMemory: true, Settings: map[string]string{"max_prepared_transactions": "5"}})
	if err != nil {
		return 1, err
	}
	defer func() { _ = server.Stop() }()
	users := map[string]string{role: password}
	pooler, err = servers.StartPgBouncer(ctx, servers.PgBouncerConfig{Postgres: server, Users: users})
	if err != nil {
		return 1, err
	}
	defer func() { _ = pooler.Stop() }()
	admin, err := pgx.Connect(ctx, server.AdminDSN("postgres"))
	if err != nil {
		return 1, err
	}
	defer admin.Close(ctx)
	if _, err := admin.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, password)); err != nil {
		return 1, err
	}
	defer func() {
		if standby.server != nil {
			_ = standby.server.Stop()
		}
	}()
	return m.Run(), nil
}

const ordersTable = `CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint, status text,
	total_amount numeric(12,2), created_at timestamptz, updated_at timestamptz);
	CREATE INDEX ON orders (updated_at, id)`

// startStandby is the standby that tests share.
func startStandby(t *testing.T) *servers.Postgres {
	t.Helper()
	standby.start.Do(func() { standby.server, standby.err = server.Standby(context.Background()) })
	if standby.err != nil {
		t.Fatal(standby.err)
	}
	return standby.server
}

// shop is a database of one test, with the table orders.
type shop struct {
	t      *testing.T
	server *servers.Postgres
	name   string
	admin  *pgx.Conn
}

var shops atomic.Int32

func openShop(t *testing.T, ddl string) *shop { t.Helper(); return openShopIn(t, server, ddl) }

func openShopIn(t *testing.T, in *servers.Postgres, ddl string) *shop {
	t.Helper()
	s := &shop{t: t, server: in, name: fmt.Sprintf("shop_%d", shops.Add(1))}
	root := dialDSN(t, in.AdminDSN("postgres"))
	run(t, root, "CREATE DATABASE "+s.name)
	t.Cleanup(func() { // a standby is a copy of all databases; one that a prepared transaction holds stays
		ctx := context.Background()
		if root, err := pgx.Connect(ctx, in.AdminDSN("postgres")); err == nil {
			_, _ = root.Exec(ctx, "DROP DATABASE "+s.name+" WITH (FORCE)")
			_ = root.Close(ctx)
		}
	})
	s.admin = s.writer()
	s.exec(ddl)
	s.exec("GRANT SELECT ON orders TO " + role)
	return s
}

// openShopAlone is a shop in a cluster of its own, which a test may stop and put back.
func openShopAlone(t *testing.T, settings map[string]string) *shop {
	t.Helper()
	own := servers.PostgresForTest(t, servers.PostgresConfig{Settings: settings})
	root := dialDSN(t, own.AdminDSN("postgres"))
	run(t, root, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, password))
	return openShopIn(t, own, ordersTable)
}

// whileDown shuts the server down, does something to it, and starts it again.
func (s *shop) whileDown(do func() error) {
	s.t.Helper()
	if err := s.server.Shutdown(); err != nil {
		s.t.Fatal(err)
	}
	if err := do(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.server.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.reconnect("SELECT NOT pg_is_in_recovery()")
}

// reconnect connects once the server answers true.
func (s *shop) reconnect(when string) {
	s.t.Helper()
	for {
		conn, err := pgx.Connect(s.t.Context(), s.server.AdminDSN(s.name))
		if err == nil {
			ready := false
			if err = conn.QueryRow(s.t.Context(), when).Scan(&ready); ready {
				s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
				s.admin = conn
				return
			}
			_ = conn.Close(s.t.Context())
		}
		if wait.For(s.t.Context(), 20*time.Millisecond) != nil {
			s.t.Fatalf("%s: %v", when, err)
		}
	}
}

func run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (s *shop) exec(sql string) { s.t.Helper(); run(s.t, s.admin, sql) }

// writer is another connection, for a transaction of its own.
func (s *shop) writer() *pgx.Conn { s.t.Helper(); return dialDSN(s.t, s.server.AdminDSN(s.name)) }

// direct is a reader past the pooler.
func (s *shop) direct(c postgres.SourceConfig) *reader {
	s.t.Helper()
	return openReader(s.t, s.server.DSN(role, password, s.name), c)
}

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

func (s *shop) instant(sql string) schemas.Instant {
	s.t.Helper()
	return schemas.InstantOf(query[time.Time](s, sql))
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
		const sql = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
		if err := standby.QueryRow(t.Context(), sql, position).Scan(&done); err != nil {
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
