package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

func TestTheVersionThatIsAskedForIsTheOneThatRuns(t *testing.T) {
	want := os.Getenv(postgresVariable)
	if want == "" {
		t.Skip("make test-versions runs it")
	}
	p := PostgresForTest(t, PostgresConfig{})
	if got := query[string](t, p.AdminDSN("postgres"), "SHOW server_version"); got+".0" != want {
		t.Errorf("PostgreSQL %s runs, %s=%s", got, postgresVariable, want)
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

func TestAStandbyFollowsItsPrimaryAndRefusesWrites(t *testing.T) {
	p := PostgresForTest(t, PostgresConfig{})
	execute(t, p.AdminDSN("postgres"), "CREATE TABLE followed AS SELECT generate_series(1, 1000) AS n")
	s := StandbyForTest(t, p)
	execute(t, p.AdminDSN("postgres"), "INSERT INTO followed VALUES (1001)")
	want := query[string](t, p.AdminDSN("postgres"), "SELECT pg_current_wal_lsn()::text")
	waitFor(t, "the standby to replay "+want, func() bool {
		return query[bool](t, s.AdminDSN("postgres"), "SELECT pg_last_wal_replay_lsn() >= '"+want+"'")
	})
	if got := query[int](t, s.AdminDSN("postgres"), "SELECT count(*)::int FROM followed"); got != 1001 {
		t.Errorf("the standby has %d rows, want 1001", got)
	}
	if got := query[string](t, s.AdminDSN("postgres"), "SHOW transaction_read_only"); got != "on" {
		t.Errorf("transaction_read_only is %s on the standby", got)
	}
}

// A link to nothing is there for whoever lists the folder, and not for whoever opens it, as is a file that
// the primary removes in between.
func TestAFileThatVanishesWhileAClusterIsCopiedIsNotMissed(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	err := errors.Join(os.WriteFile(filepath.Join(from, "stays"), []byte("1"), 0o600),
		os.Symlink("nowhere", filepath.Join(from, "pg_internal.init")))
	if err != nil {
		t.Fatal(err)
	}
	self := &account{uid: uint32(os.Getuid()), gid: uint32(os.Getgid())}
	if err := copyCluster(from, to, self, nil); err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadDir(to)
	if err != nil || len(copied) != 1 || copied[0].Name() != "stays" {
		t.Errorf("the copy has %v, %v", copied, err)
	}
}

// The archive is there already and cannot be read, so that the test needs no network.
func TestAFetchOfPostgreSQLLeavesNoTemporaryFile(t *testing.T) {
	dir, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	architecture := strings.Replace(runtime.GOARCH, "arm64", "arm64v8", 1)
	archive := fmt.Sprintf("embedded-postgres-binaries-%s-%s-%s.txz", runtime.GOOS, architecture, fetchedVersion)
	if err := os.WriteFile(filepath.Join(dir, archive), []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fetchPostgres(dir, fetchedVersion); err == nil {
		t.Error("what is no archive was taken for one")
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// waitFor polls until the event has happened, and fails the test after a generous deadline.
func waitFor(t *testing.T, event string, happened func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !happened() {
		select {
		case <-deadline:
			t.Fatalf("gave up waiting for %s", event)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
