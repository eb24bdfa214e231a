package servers

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// query connects and returns the single value that the query yields.
func query[T any](t *testing.T, dsn, sql string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var value T
	if err := conn.QueryRow(ctx, sql, pgx.QueryExecModeSimpleProtocol).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// execute runs statements that yield nothing.
func execute(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestPostgresKeepsItsDataAndPortOverARestartAndLeavesNothingBehind(t *testing.T) {
	p := PostgresForTest(t, PostgresConfig{Settings: map[string]string{"work_mem": "5MB"}})
	admin := p.AdminDSN("postgres")
	if got := query[string](t, admin, "SHOW work_mem"); got != "5MB" {
		t.Errorf("work_mem is %s, want the 5MB that was asked for", got)
	}
	execute(t, admin, "CREATE TABLE kept AS SELECT 42 AS n")
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, admin, "SELECT n FROM kept"); got != 42 {
		t.Errorf("after a restart n is %d, want 42", got)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.dir.path); !os.IsNotExist(err) {
		t.Errorf("%s is still there after Stop (%v)", p.dir.path, err)
	}
}

func TestPgBouncerServesAConfiguredUserAcrossItsOwnRestart(t *testing.T) {
	p := PostgresForTest(t, PostgresConfig{})
	b := PgBouncerForTest(t, PgBouncerConfig{Postgres: p, Users: map[string]string{"student_ro": `pass "word"`}})
	execute(t, p.AdminDSN("postgres"), `CREATE ROLE student_ro LOGIN PASSWORD 'pass "word"'`)
	reader := b.DSN("student_ro", `pass "word"`, "postgres")
	if got := query[string](t, reader, "SELECT current_user"); got != "student_ro" {
		t.Errorf("current_user is %s", got)
	}
	if got := query[int](t, reader, "SELECT inet_server_port()"); got != p.Port {
		t.Errorf("the query ran on port %d, want %d", got, p.Port)
	}
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query[string](t, reader, "SELECT current_user"); got != "student_ro" {
		t.Errorf("after a restart current_user is %s", got)
	}
	if _, err := pgx.Connect(t.Context(), b.DSN("student_ro", "wrong", "postgres")); err == nil {
		t.Error("a wrong password was let in")
	}
}
