package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// stack is everything that storestream stands between.
type stack struct {
	t         *testing.T
	dir       string
	fake      *storefake.Fake
	postgres  *servers.Postgres  // nil: none
	pgbouncer *servers.PgBouncer // nil: none
	broker    *servers.Broker    // nil: not the embedded one, or another stack's
	kafka     *servers.Kafka     // nil: not Apache Kafka, or another stack's
	brokers   []string
	schemas   *servers.Registry // nil: not the embedded one, or another stack's
	registry  string
	login     []kgo.Opt // of the test's own Kafka clients
	dsn       string    // of the database's reader; "": none
	yaml      string    // what the test adds to the configuration file
	prefix    string    // of the topics
	config    string    // the configuration file
	// ask asks a status server; nil: by http, and without a token.
	ask    func(addr, path string) (*http.Response, error)
	topics map[string]topicCopy
	sees   view
	// wroteAnew tells the orders that the service wrote anew as they were, with the same updated_at.
	wroteAnew func(id int64) bool
}

// view says how the topic of a resource shows a row of the service, where that is not as storefake knows it;
// nil: as it is. The row is the view's to change.
type view func(resource string, row storefake.Row) storefake.Row

// setup says how a stack differs from the usual one.
type setup struct {
	fake storefake.Config
	// noPostgres: orders and order_items go over REST.
	noPostgres bool
	// yaml is added to the configuration file.
	yaml string
	// broker is started where the test needs its own settings; nil: the usual one.
	broker servers.BrokerConfig
	// kafka is the same for Apache Kafka.
	kafka servers.KafkaConfig
	// database and pooler are started with these settings; zero: the usual ones.
	database servers.PostgresConfig
	pooler   servers.PgBouncerConfig
	// embedded: the embedded broker, whatever E2E_BROKER says, because the test makes it fail.
	embedded bool
	// login is how the test's own clients log in to the broker, where that asks for it.
	login []kgo.Opt
	// apicurio: a real schema registry, which refuses what is incompatible.
	apicurio bool
	// beside, if not nil, is a stack whose broker and registry serve this one too, with topics below prefix.
	beside *stack
	prefix string // "": store.
}

const studentPassword = "student"

// start brings a stack up; it goes when the test ends.
func start(t *testing.T, s setup) *stack {
	t.Helper()
	skipIfMakeTestRunsIt(t)
	st := &stack{t: t, dir: t.TempDir(), prefix: "store.", yaml: s.yaml, login: s.login}
	if s.prefix != "" {
		st.prefix = s.prefix
	}
	if !s.noPostgres {
		st.postgres = servers.PostgresForTest(t, s.database)
		s.pooler.Postgres = st.postgres
		s.pooler.Users = map[string]string{storefake.ReaderRole: studentPassword}
		st.pgbouncer = servers.PgBouncerForTest(t, s.pooler)
		s.fake.Database.DSN, s.fake.Database.Password = st.postgres.AdminDSN("postgres"), studentPassword
		st.dsn = st.pgbouncer.DSN(storefake.ReaderRole, studentPassword, "postgres")
	}
	var err error
	if st.fake, err = storefake.Start(context.Background(), s.fake); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.fake.Close)
	st.openBroker(s)
	st.configure("storestream.yaml")
	return st
}

// configure writes the configuration file.
func (s *stack) configure(name string) {
	s.t.Helper()
	s.config = s.write(name, fmt.Sprintf(`
store: {base_url: %q, max_requests_per_second: 1000}
postgres: {dsn: %q}
kafka: {brokers: [%s], topic_prefix: %q}
registry: {url: %q}
http: {listen: 127.0.0.1:0}
log: {level: info}
%s`, s.fake.BaseURL(), s.dsn, strings.Join(s.brokers, ","), s.prefix, s.registry, s.yaml))
}

// at is the stack with another cluster and registry.
func (s *stack) at(name string, k *servers.Kafka, registry string) *stack {
	s.t.Helper()
	other := *s
	other.kafka, other.brokers, other.registry, other.topics = k, k.Brokers(), registry, nil
	other.configure(name + ".yaml")
	return &other
}

func (s *stack) openBroker(c setup) {
	switch {
	case c.beside != nil:
		s.brokers, s.registry = c.beside.brokers, c.beside.registry
		return
	case os.Getenv("E2E_BROKER") == "kafka" && !c.embedded:
		s.kafka = servers.KafkaForTest(s.t, c.kafka)
		s.brokers = s.kafka.Brokers()
	default:
		s.broker = servers.BrokerForTest(s.t, c.broker)
		s.brokers = s.broker.Brokers()
	}
	if c.apicurio {
		s.registry = servers.ApicurioForTest(s.t, servers.ApicurioConfig{}).URL()
		return
	}
	s.schemas = servers.RegistryForTest(s.t)
	s.registry = s.schemas.URL
}

// write puts a file into the stack's folder and returns its path.
func (s *stack) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// quick polls so often, and reaches back so little, that a test need not wait. The overlap must stay longer
// than storefake's transactions stay open.
var quick = resources("2s")

// resources are settings of all resources that poll quickly. The tables' are read more often.
func resources(overlapOfOrders string) string {
	yaml := "\nresources:\n"
	for _, name := range storefake.Names() {
		interval, overlap := "200ms", "2s"
		if name == storefake.Orders || name == storefake.OrderItems {
			interval = "100ms"
		}
		if name == storefake.Orders {
			overlap = overlapOfOrders
		}
		yaml += fmt.Sprintf("  %s: {interval: %s, overlap: %s}\n", name, interval, overlap)
	}
	return yaml
}

// without are all resources but one.
func without(resource string) []string {
	return slices.DeleteFunc(storefake.Names(), func(name string) bool { return name == resource })
}
