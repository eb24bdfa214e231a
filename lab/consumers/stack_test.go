//go:build consumers

package consumers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

const studentPassword = "student"

// stack is a storestream and all that it stands between.
type stack struct {
	t           *testing.T
	dir         string
	fake        *storefake.Fake
	postgres    *servers.Postgres // the service's, and of examples that write to one
	brokers     string
	registry    string
	storestream *child
}

// start starts everything; with embedded, the broker and the registry of make demo, else Apache Kafka and
// Apicurio.
func start(t *testing.T, embedded bool) *stack {
	t.Helper()
	s := &stack{t: t, dir: t.TempDir(), postgres: servers.PostgresForTest(t, servers.PostgresConfig{})}
	pooler := servers.PgBouncerForTest(t, servers.PgBouncerConfig{Postgres: s.postgres,
		Users: map[string]string{storefake.ReaderRole: studentPassword}})
	if embedded {
		s.brokers = servers.BrokerForTest(t, servers.BrokerConfig{}).Brokers()[0]
		s.registry = servers.RegistryForTest(t).URL
	} else {
		s.brokers = servers.KafkaForTest(t, servers.KafkaConfig{}).Brokers()[0]
		s.registry = servers.ApicurioForTest(t, servers.ApicurioConfig{}).URL()
	}
	var err error
	s.fake, err = storefake.Start(context.Background(), storefake.Config{Seed: 1,
		Size:     storefake.Size{Users: 300, Orders: 1200, Products: 200},
		Readings: storefake.Readings{Nulls: .1, Deletes: .1, UsedIDs: .2},
		Database: storefake.Database{DSN: s.postgres.AdminDSN("postgres"), Password: studentPassword}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.fake.Close)
	// It polls so often, and reaches back so little, that a test need not wait.
	yaml := fmt.Sprintf(`
store: {base_url: %q, max_requests_per_second: 1000}
postgres: {dsn: %q}
kafka: {brokers: [%s]}
registry: {url: %q}
http: {listen: 127.0.0.1:0}
resources:
`, s.fake.BaseURL(), pooler.DSN(storefake.ReaderRole, studentPassword, "postgres"), s.brokers, s.registry)
	for _, name := range storefake.Names() {
		yaml += fmt.Sprintf("  %s: {interval: 200ms, overlap: 2s}\n", name)
	}
	s.configure(yaml)
	s.run()
	return s
}

// configure adds lines to storestream's configuration, which it reads when it starts.
func (s *stack) configure(yaml string) {
	s.t.Helper()
	f, err := os.OpenFile(s.configuration(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(yaml)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stack) configuration() string { return filepath.Join(s.dir, "storestream.yaml") }

// run starts storestream and waits until it is ready.
func (s *stack) run() {
	s.t.Helper()
	s.storestream = launch(s.t, "storestream", exec.Command(program, "run", "--config", s.configuration()))
	s.ready()
}

// listens is where storestream says that its status server listens.
var listens = regexp.MustCompile(`"addr":"(127\.0\.0\.1:\d+)"`)

// ready waits until storestream has published all that there is.
func (s *stack) ready() {
	s.t.Helper()
	eventually(s.t, "storestream is ready", func() (bool, string) {
		addr := listens.FindStringSubmatch(s.storestream.output(s.t))
		if addr == nil {
			return false, "it does not listen"
		}
		client := http.Client{Timeout: patience}
		resp, err := client.Get("http://" + addr[1] + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK, resp.Status
	})
}

// do runs a command of storestream that has to succeed.
func (s *stack) do(args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(args, "--config", s.configuration())...)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("storestream %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// changes waits until traffic has changed some rows more.
func (s *stack) changes() {
	s.t.Helper()
	target := s.fake.Changes() + 60
	eventually(s.t, "traffic", func() (bool, string) { return s.fake.Changes() >= target, "" })
}

// makeDatabase makes an empty database for an example and returns its DSN.
func (s *stack) makeDatabase(name string) string {
	s.t.Helper()
	s.execute(s.postgres.AdminDSN("postgres"), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	return s.postgres.AdminDSN(name)
}

// database is makeDatabase, with the tables of examples/tables.sql, in which texts are replaced by others.
func (s *stack) database(name string, replace ...string) string {
	s.t.Helper()
	sql, err := os.ReadFile(filepath.Join(root, "examples", "tables.sql"))
	if err != nil {
		s.t.Fatal(err)
	}
	dsn := s.makeDatabase(name)
	s.execute(dsn, strings.NewReplacer(replace...).Replace(string(sql)))
	return dsn
}

func (s *stack) execute(dsn, sql string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(s.t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// topics are those that hold rows.
func topics() []string {
	var names []string
	for _, name := range storefake.Names() {
		names = append(names, "store."+name)
	}
	return slices.Sorted(slices.Values(names))
}
