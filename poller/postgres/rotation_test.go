package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller/postgres"
)

// followed opens a database whose DSN stands in a file, and returns what the log is told of that.
func followed(t *testing.T, path string) (*postgres.DB, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	set := &rotation.Set{}
	set.Log = zap.New(core)
	secret, err := rotation.Follow(nil, "postgres.dsn", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(secret, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, logs
}

// answered asks until an answer comes: a connection that was ended is found out by an error.
func answered(t *testing.T, db *postgres.DB) (server string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		server, _, err := postgres.CheckServer(ctx, db)
		if err == nil {
			return server
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestAPasswordOrUserThatIsRotatedIsUsedByTheNextConnection(t *testing.T) {
	s := openShop(t, ordersTable)
	one, other := s.name+"_one", s.name+"_other"
	end := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE '" + s.name + "_o%'"
	s.exec("CREATE ROLE " + one + " LOGIN PASSWORD 'first-word'")
	s.exec("CREATE ROLE " + other + " LOGIN PASSWORD 'third-word'")
	dsn := func(user, password, database string) map[string]string {
		return map[string]string{"dsn": server.DSN(user, password, database)}
	}
	mount := servers.MountForTest(t, t.TempDir(), dsn(one, "first-word", s.name))
	db, logs := followed(t, mount.Path("dsn"))
	answered(t, db)
	s.exec("ALTER ROLE " + one + " PASSWORD 'second-word'")
	s.exec(end)
	for {
		_, _, err := postgres.CheckServer(t.Context(), db)
		if err == nil {
			t.Fatal("the old password is taken")
		}
		if strings.Contains(err.Error(), "refuses the login of role") { // not the connection that was ended
			break
		}
	}
	mount.Swap(dsn(one, "second-word", s.name))
	answered(t, db)
	mount.Swap(dsn(other, "third-word", s.name))
	s.exec(end)
	if found := answered(t, db); !strings.Contains(found, "role "+other) {
		t.Errorf("%s: expected the other user", found)
	}

	// Another database is not for a running storestream, nor is the password that comes with it.
	logs.TakeAll()
	mount.Swap(dsn(one, "second-word", "postgres"))
	s.exec(end)
	if found := answered(t, db); !strings.HasSuffix(found, "role "+other+", database "+s.name) {
		t.Errorf("%s: expected that nothing of the new DSN is used", found)
	}
	told := logs.FilterMessageSnippet("cannot be used").All()
	if len(told) != 1 || !strings.Contains(told[0].ContextMap()["error"].(string), "takes a restart") {
		t.Errorf("the log has %v", told)
	}
	for _, entry := range logs.All() {
		for _, value := range entry.ContextMap() {
			if text, _ := value.(string); strings.Contains(text, "-word") {
				t.Errorf("a password is in the log: %s", text)
			}
		}
	}
}

func TestAnAuthorityThatIsReplacedIsUsedByTheNextConnection(t *testing.T) {
	a, b := servers.AuthorityForTest(t, t.TempDir()), servers.AuthorityForTest(t, t.TempDir())
	made := a.Issue(servers.CertificateConfig{})
	secured := servers.PostgresForTest(t, servers.PostgresConfig{Certificate: &made})
	mount := servers.MountForTest(t, t.TempDir(), b.Files(made))
	dsn := strings.Replace(secured.AdminDSN("postgres"), "sslmode=disable",
		"sslmode=verify-full&sslrootcert="+mount.Path("ca"), 1)
	db, err := postgres.Open(rotation.Literal(dsn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, _, err := postgres.CheckServer(t.Context(), db); err == nil || !strings.Contains(err.Error(),
		"certificate signed by unknown authority") || !strings.Contains(err.Error(), "check postgres.dsn") ||
		strings.Contains(err.Error(), "is the database up") {
		t.Fatalf("a server whose authority is not trusted: %v", err)
	}
	mount.Swap(map[string]string{"ca": "half written"})
	if _, _, err := postgres.CheckServer(t.Context(), db); err == nil {
		t.Fatal("a server is taken with no authority at all")
	}
	mount.Swap(a.Files(made))
	if _, _, err := postgres.CheckServer(t.Context(), db); err != nil {
		t.Error(err)
	}
}

// The server knows the role by its certificate, and tells which one it was shown.
func TestAClientsCertificateThatIsReplacedIsUsedByTheNextConnection(t *testing.T) {
	a, stranger := servers.AuthorityForTest(t, t.TempDir()), servers.AuthorityForTest(t, t.TempDir())
	made := a.Issue(servers.CertificateConfig{})
	secured := servers.PostgresForTest(t, servers.PostgresConfig{Certificate: &made, Clients: a})
	admin, err := pgx.Connect(t.Context(), secured.AdminDSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	if _, err := admin.Exec(t.Context(), "CREATE ROLE reader LOGIN"); err != nil {
		t.Fatal(err)
	}
	issue := func(by *servers.Authority) (files map[string]string, serial string) {
		own := by.Issue(servers.CertificateConfig{Name: "reader"})
		return a.Files(own), own.Pair.Leaf.SerialNumber.String()
	}
	first, firstSerial := issue(a)
	mount := servers.MountForTest(t, t.TempDir(), first)
	where := servers.MountForTest(t, t.TempDir(), map[string]string{"dsn": fmt.Sprintf("host=127.0.0.1 port=%d "+
		"user=reader dbname=postgres sslrootcert=%s sslcert=%s sslkey=%s", secured.Port, mount.Path("ca"),
		mount.Path("cert"), mount.Path("key"))})
	db, logs := followed(t, where.Path("dsn"))
	shown := func(serial string) {
		t.Helper()
		answered(t, db)
		var found string
		err := admin.QueryRow(t.Context(), "SELECT coalesce(string_agg(DISTINCT client_serial::text, ','), '') "+
			"FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'reader'").Scan(&found)
		if err != nil || found != serial {
			t.Errorf("the server was shown the certificate %q (%v), expected %s", found, err, serial)
		}
	}
	cut := func() {
		t.Helper()
		for left := 1; left > 0; { // PostgreSQL 13 cannot wait for the end by itself
			if err := admin.QueryRow(t.Context(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "+
				"WHERE usename = 'reader'").Scan(&left); err != nil {
				t.Fatal(err)
			}
		}
	}
	shown(firstSerial)

	second, secondSerial := issue(a)
	half := maps.Clone(second)
	half["cert"] += second["ca"][:100] // the first half of a chain
	mount.Swap(half)
	cut()
	shown(firstSerial)
	told := logs.FilterMessageSnippet("cannot be used").All()
	if len(told) != 1 || !strings.Contains(fmt.Sprint(told[0].ContextMap()["error"]),
		"sslcert cannot be used: "+mount.Path("cert")+": 2 certificates begin in it, and 1 are whole") {
		t.Errorf("the log has %v", told)
	}
	mount.Swap(second)
	cut()
	shown(secondSerial)

	refused, _ := issue(stranger)
	mount.Swap(refused)
	cut()
	for err == nil || errors.As(err, new(*pgconn.PgError)) { // by the connection that was ended
		_, _, err = postgres.CheckServer(t.Context(), db)
		if err == nil {
			t.Fatal("a certificate of another authority is taken: this test shows nothing")
		}
	}
	third, thirdSerial := issue(a)
	mount.Swap(third)
	shown(thirdSerial)
}
