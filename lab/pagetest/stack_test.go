//go:build page

package pagetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/lab/product"
)

// The password that must not be on the page.
const studentPassword = "student-secret"

// stack is a storestream and all that it stands between, with traffic.
type stack struct {
	fake     *storefake.Fake
	postgres *servers.Postgres
	broker   *servers.Broker
	url      string
}

func start(t *testing.T, faults storefake.Faults) *stack {
	t.Helper()
	s := &stack{postgres: servers.PostgresForTest(t, servers.PostgresConfig{}),
		broker: servers.BrokerForTest(t, servers.BrokerConfig{})}
	var err error
	s.fake, err = storefake.Start(context.Background(), storefake.Config{Seed: 1,
		Size:     storefake.Size{Users: 2000, Products: 500, Orders: 3000},
		Database: storefake.Database{DSN: s.postgres.AdminDSN("postgres"), Password: studentPassword},
		Faults:   faults})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.fake.Close)
	s.url = "http://" + freeAddress(t) + "/"
	config := filepath.Join(t.TempDir(), "storestream.yaml")
	text := fmt.Sprintf(`
store: {base_url: %q, max_requests_per_second: 200}
postgres: {dsn: %q}
kafka: {brokers: [%s]}
registry: {url: %q}
http: {listen: %q, show_rows: true}
resources:
  orders:      {interval: 200ms, overlap: 2s}
  order_items: {interval: 200ms, overlap: 2s}
  products:    {interval: 500ms, overlap: 2s}
  users:       {interval: 500ms, overlap: 2s}
  shipments:   {interval: 500ms, overlap: 2s}
`, s.fake.BaseURL(), s.postgres.DSN(storefake.ReaderRole, studentPassword, "postgres"),
		strings.Join(s.broker.Brokers(), ","),
		servers.RegistryForTest(t).URL, strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, config)
	s.fake.StartTraffic(20)
	t.Cleanup(s.fake.Quiesce)
	return s
}

// run builds storestream and runs it until the test ends.
func (s *stack) run(t *testing.T, config string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "storestream")
	if err := product.Build(t.Context(), program, nil); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "run", "--config", config)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("storestream's log:\n%s", text[max(0, len(text)-8000):])
		}
		log.Close()
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := servers.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
