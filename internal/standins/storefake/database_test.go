package storefake_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

// cluster is the PostgreSQL of the tests that want no more than a database: to make a cluster takes longer
// than most of them. It is started when the first one asks.
var cluster struct {
	start     sync.Once
	server    *servers.Postgres
	err       error
	databases int
}

func TestMain(m *testing.M) {
	code := m.Run()
	if cluster.server != nil {
		_ = cluster.server.Stop()
	}
	os.Exit(code)
}

// database makes a database of the test's own and returns how the superuser connects to it.
func database(t *testing.T) (dsn string) {
	t.Helper()
	cluster.start.Do(func() {
		cluster.server, cluster.err = servers.StartPostgres(context.Background(),
			servers.PostgresConfig{InMemory: true})
	})
	if cluster.err != nil {
		t.Fatal(cluster.err)
	}
	conn, err := pgx.Connect(t.Context(), cluster.server.AdminDSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	cluster.databases++
	name := fmt.Sprintf("test%d", cluster.databases)
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return cluster.server.AdminDSN(name)
}

// reader connects as student_ro.
func reader(t *testing.T, f *storefake.Fake) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.ReaderDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// table reads orders or order_items as text, by id.
func table(t *testing.T, conn *pgx.Conn, name string) map[int64][]string {
	t.Helper()
	columns := map[string]string{
		"orders":      "id, user_id, status, total_amount::text, created_at, updated_at",
		"order_items": "id, order_id, product_id, sale_price::text, quantity, amount::text, created_at, updated_at",
	}
	rows, err := conn.Query(t.Context(), "SELECT "+columns[name]+" FROM "+name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int64][]string{}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		text := make([]string, len(values))
		for i, v := range values {
			if at, ok := v.(time.Time); ok {
				v = at.UTC()
			}
			text[i] = fmt.Sprint(v)
		}
		out[toInt(values[0])] = text
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func toInt(v any) int64 {
	if n, ok := v.(int32); ok {
		return int64(n)
	}
	return v.(int64)
}

// memory is the same rows as the fake serves them over REST.
func memory(f *storefake.Fake, name string) map[int64][]string {
	fields := map[string][]string{
		"orders": {"id", "user_id", "status", "total_amount", "created_at", "updated_at"},
		"order_items": {"id", "order_id", "product_id", "sale_price", "quantity", "amount", "created_at",
			"updated_at"},
	}
	out := map[int64][]string{}
	for id, row := range f.Rows(name) {
		for _, field := range fields[name] {
			out[id] = append(out[id], fmt.Sprint(row[field]))
		}
	}
	return out
}

func requireSame(t *testing.T, f *storefake.Fake, conn *pgx.Conn) {
	t.Helper()
	for _, name := range []string{"orders", "order_items"} {
		sql, rest := table(t, conn, name), memory(f, name)
		if len(sql) != len(rest) {
			t.Errorf("%s: %d rows in PostgreSQL, %d in memory", name, len(sql), len(rest))
		}
		wrong := 0
		for id, row := range rest {
			if fmt.Sprint(sql[id]) != fmt.Sprint(row) && wrong < 3 {
				wrong++
				t.Errorf("%s %d: PostgreSQL has %v, memory %v", name, id, sql[id], row)
			}
		}
	}
}

func TestBothPathsShowTheSameRows(t *testing.T) {
	dsn := database(t)
	variants := map[string]storefake.Database{
		"numeric":       {},
		"float8, naive": {Columns: storefake.Columns{Money: "float8", Time: "timestamp"}},
		"float4, int4": {Columns: storefake.Columns{Money: "float4", Int: "int4", Status: "varchar"},
			NoIndex: true},
		"text, with nulls": {Columns: storefake.Columns{Money: "text"}},
	}
	for name, database := range variants {
		t.Run(name, func(t *testing.T) {
			database.DSN = dsn
			c := storefake.Config{Seed: 3, Size: small, Database: database}
			if name == "text, with nulls" {
				c.Readings.Nulls = .1
			}
			f := start(t, c)
			conn := reader(t, f)
			requireSame(t, f, conn)
			for range 200 {
				if err := f.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			requireSame(t, f, conn)
		})
	}
}

func TestConcurrentTrafficLeavesBothPathsEqual(t *testing.T) {
	f := start(t, storefake.Config{Seed: 4, Size: small,
		Database: storefake.Database{DSN: database(t)},
		Readings: storefake.Readings{Deletes: .05}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Traffic(ctx, 1000) }()
	for range 20 { // between them, bulk statements over rows that traffic changes too
		if _, _, err := f.BulkUpdate(ctx, storefake.Orders, 1, 100); err != nil {
			t.Error(err)
		}
		if err := f.Touch(ctx, storefake.OrderItems, 1); err != nil {
			t.Error(err)
		}
	}
	cancel()
	<-done
	if n, err := f.TrafficErrors(); n > 0 {
		t.Errorf("%d of traffic's transactions failed: %v", n, err)
	}
	requireSame(t, f, reader(t, f))
}

// A transaction held open commits rows with an updated_at long past, on both paths at once.
func TestAnOpenTransactionIsSeenByNobodyAndKeepsItsFirstInstant(t *testing.T) {
	f := start(t, storefake.Config{Seed: 5, Size: small,
		Database: storefake.Database{DSN: database(t)}})
	conn, ctx := reader(t, f), t.Context()
	before := f.Rows(storefake.Orders)[1].Time("updated_at")
	tx := f.Begin()
	if err := tx.Update(ctx, storefake.Orders, 1,
		func(r storefake.Row) { r["user_id"] = int64(77) }); err != nil {
		t.Fatal(err)
	}
	if err := f.Touch(ctx, storefake.Orders, 2); err != nil { // begins later, commits earlier
		t.Fatal(err)
	}
	requireSame(t, f, conn)
	if got := f.Rows(storefake.Orders)[1].Time("updated_at"); !got.Equal(before) {
		t.Errorf("an open transaction is visible: %v", got)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	requireSame(t, f, conn)
	rows := f.Rows(storefake.Orders)
	if got := rows[1].Time("updated_at"); !got.Equal(tx.At) || !got.Before(rows[2].Time("updated_at")) {
		t.Errorf("updated_at %v: expected the begin of the transaction, %v, before %v", got, tx.At,
			rows[2].Time("updated_at"))
	}
}

func TestStudentMayReadTwoTablesAndNothingElse(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Database: storefake.Database{DSN: database(t),
		Password: "it's \"secret\""}})
	if err := f.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS private (n int)"); err != nil {
		t.Fatal(err)
	}
	conn := reader(t, f)
	var timeout string
	if err := conn.QueryRow(t.Context(), "SHOW statement_timeout").Scan(&timeout); err != nil ||
		timeout != "1min" {
		t.Errorf("statement_timeout %q, %v: expected 1min", timeout, err)
	}
	for _, sql := range []string{"SELECT * FROM private", "UPDATE orders SET user_id = 1",
		"DELETE FROM order_items"} {
		_, err := conn.Exec(t.Context(), sql)
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "42501" && pgErr.Code != "25006" {
			t.Errorf("%s: %v, expected to be refused", sql, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "SET default_transaction_read_only = off"); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "UPDATE orders SET user_id = 1")
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "42501" {
		t.Errorf("an update outside of read-only mode: %v, expected insufficient privilege", err)
	}
}

func TestATableThatIsNotOursIsLeftAlone(t *testing.T) {
	dsn := database(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(),
		"CREATE TABLE orders (precious int); INSERT INTO orders VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if f, err := storefake.Start(t.Context(),
		storefake.Config{Database: storefake.Database{DSN: dsn}}); err == nil {
		f.Close()
		t.Fatal("storefake dropped somebody's table")
	}
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT precious FROM orders").Scan(&n); err != nil || n != 1 {
		t.Errorf("the table holds %d, %v", n, err)
	}
}

// A column that a test drops is no longer written.
func TestRowsAreWrittenOnAfterAColumnWasDropped(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Database: storefake.Database{DSN: database(t)}})
	for _, sql := range []string{"ALTER TABLE orders DROP COLUMN total_amount",
		"ALTER TABLE orders ADD COLUMN note text DEFAULT 'x'"} {
		if err := f.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Touch(t.Context(), storefake.Orders, 1); err != nil {
		t.Error(err)
	}
	if _, err := f.Insert(t.Context(), storefake.Orders, storefake.Row{"user_id": int64(1)}); err != nil {
		t.Error(err)
	}
}

// The outcome of a commit whose connection breaks is asked for, so memory and database agree after a crash.
func TestMemoryAndDatabaseAgreeAfterPostgresWasKilledUnderTraffic(t *testing.T) {
	pg := servers.PostgresForTest(t, servers.PostgresConfig{})
	f := start(t, storefake.Config{Seed: 6, Size: small,
		Database: storefake.Database{DSN: pg.AdminDSN("postgres")}})
	f.StartTraffic(2000)
	for range 3 {
		waitForChanges(t, f, 100)
		if err := pg.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := pg.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	waitForChanges(t, f, 100)
	f.Quiesce()
	requireSame(t, f, reader(t, f))
}
