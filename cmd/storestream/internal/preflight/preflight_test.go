package preflight

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// try tries what the settings of a stage name, and of more.
func try(t *testing.T, s *stage.Stage, more ...string) []Finding {
	t.Helper()
	cfg := s.Config(more...)
	client, err := connect.Registry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Settings: cfg, Schemas: s.Schemas, Registry: client, Cluster: s.Cluster("checker", more...)}
	return slices.Collect(Try(t.Context(), c))
}

// passing is try where nothing fails.
func passing(t *testing.T, s *stage.Stage, more ...string) []Finding {
	t.Helper()
	found := try(t, s, more...)
	for _, f := range found {
		if f.Level == Failure {
			t.Errorf("with %q: %+v", more, f)
		}
	}
	return found
}

// failing is try where something fails.
func failing(t *testing.T, s *stage.Stage, more ...string) []Finding {
	t.Helper()
	found := try(t, s, more...)
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Level == Failure }) {
		t.Errorf("with %q nothing fails", more)
	}
	return found
}

// says wants one finding of a part about something, at a level, whose text and remedy hold the words.
func says(t *testing.T, found []Finding, l Level, part, about string, words ...string) {
	t.Helper()
	for _, f := range found {
		lacks := func(w string) bool { return !strings.Contains(f.Found+" -> "+f.Do, w) }
		if f.Level == l && f.Part == part && f.About == about && !slices.ContainsFunc(words, lacks) {
			return
		}
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s  %s %s  %s -> %s\n", f.Level, f.Part, f.About, f.Found, f.Do)
	}
	t.Errorf("no %s of %s %s with %q among:\n%s", l, part, about, words, &b)
}

// database is a stage with a service, and a database behind a pooler in transaction mode.
type databaseStage struct {
	*stage.Stage
	fake     *storefake.Fake
	postgres *servers.Postgres
	pooler   *servers.PgBouncer
}

var readers = map[string]string{storefake.ReaderRole: "student"}

// withDatabase starts it. change may be nil.
func withDatabase(t *testing.T, change func(*storefake.Config)) *databaseStage {
	t.Helper()
	s := &databaseStage{Stage: stage.New(t), postgres: servers.PostgresForTest(t, servers.PostgresConfig{})}
	s.pooler = servers.PgBouncerForTest(t, servers.PgBouncerConfig{Postgres: s.postgres, Users: readers})
	s.fake = s.Serve(func(c *storefake.Config) {
		c.Database.DSN = s.postgres.AdminDSN("postgres")
		if change != nil {
			change(c)
		}
	})
	s.Settings = append(s.Settings, "postgres.dsn="+s.pooler.DSN(storefake.ReaderRole, "student", "postgres"))
	return s
}

// A cluster that was never asked for a group or a transaction makes the topics for them first.
func TestANewClusterIsGivenTimeToMakeItsCoordinators(t *testing.T) {
	s := stage.New(t)
	s.Serve(nil)
	s.Broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, Count: 4,
		Err: kerr.CoordinatorNotAvailable})
	found := passing(t, s)
	says(t, found, Note, "kafka", "coordinators", "waited", "__consumer_offsets")
	says(t, found, OK, "kafka", "group", "no instance runs")
}

func TestNothingIsWrongWhereAllIsWellAndNothingIsChanged(t *testing.T) {
	s := withDatabase(t, nil)
	found := try(t, s.Stage)
	for _, f := range found {
		if f.Level == Failure || f.Level == Warning {
			t.Errorf("%+v", f)
		}
		if strings.Contains(f.Found, "student@") {
			t.Errorf("a secret is shown: %+v", f)
		}
	}
	says(t, found, OK, "configuration", "",
		"orders, order_items over postgres; products, users, shipments over rest")
	says(t, found, OK, "service", "products")
	says(t, found, OK, "database", "orders", "rows of the overlap", "at an interval of 1s")
	says(t, found, OK, "kafka", "store.orders", "is not there yet, and `run` can create it with 2 partitions")
	says(t, found, OK, "kafka", "store.requests", "can create it with 1 partition")
	says(t, found, Note, "kafka", "store.users",
		"will hold personal data in clear: first_name, last_name, email, age, gender, street_address, "+
			"postal_code, city, latitude, longitude;")
	says(t, found, OK, "registry", "", s.Registry.URL)
	says(t, found, OK, "registry", "store.order_items", "store.order_items-key",
		"not registered yet; compatible")
	says(t, found, OK, "status", "", "127.0.0.1:0 is free")

	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(t.Context())
	if err != nil || len(topics) > 0 {
		t.Errorf("it made topics %v (%v)", topics.Names(), err)
	}
	for _, f := range try(t, s.Stage) {
		if f.Part == "registry" && f.About != "" && !strings.Contains(f.Found, "not registered yet") {
			t.Errorf("it registered schemas: %+v", f)
		}
	}
}

func TestWhatIsWrongWithTheDatabaseIsNamed(t *testing.T) {
	s := withDatabase(t, func(c *storefake.Config) {
		c.Database.NoIndex, c.Database.StatementTimeout = true,
			3*time.Second
	})
	found := passing(t, s.Stage)
	says(t, found, Warning, "database", "orders", "each poll reads the whole table",
		`CREATE INDEX CONCURRENTLY ON "public"."orders" (updated_at, id);`)
	says(t, found, Warning, "database", "timeout", "statement_timeout is 3s", "ALTER ROLE student_ro")

	s.exec(t, "ALTER TABLE orders ADD discount numeric; ALTER TABLE order_items ADD gift text, ADD \"A b\" text")
	found = passing(t, s.Stage)
	says(t, found, Note, "database", "orders", "column discount of orders is not in the schema: not published",
		"Order.avsc in schemas.dir", `docs/operations.md, "A field is added"`)
	says(t, found, Note, "database", "order_items", "columns A b, gift of order_items are not in the schema")

	direct := passing(t, s.Stage, "postgres.dsn="+s.postgres.AdminDSN("postgres"))
	says(t, direct, Warning, "database", "role", "is a superuser", "student_ro")
	says(t, direct, Warning, "database", "orders", "may change rows")
	says(t, failing(t, s.Stage, "postgres.dsn="+s.pooler.DSN(storefake.ReaderRole, "geheim", "postgres")),
		Failure, "database", "", "check user, password")
	says(t, failing(t, s.Stage, "postgres.dsn="+s.pooler.DSN(storefake.ReaderRole, "student", "nowhere")),
		Failure, "database", "", "nowhere")

	s.exec(t, "REVOKE SELECT ON orders FROM "+storefake.ReaderRole)
	s.exec(t, "ALTER TABLE order_items ALTER COLUMN quantity TYPE boolean USING true")
	found = failing(t, s.Stage)
	says(t, found, Failure, "database", "orders", "may not read", "GRANT SELECT ON")
	says(t, found, Failure, "database", "order_items", "column quantity is bool")
	says(t, found, OK, "service", "products") // the rest is tried all the same

	if err := s.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.pooler.Stop(); err != nil {
		t.Fatal(err)
	}
	says(t, failing(t, s.Stage), Failure, "database", "", "is the database up", "`run` waits for it")
}

func (s *databaseStage) exec(t *testing.T, sql string) {
	t.Helper()
	if err := s.fake.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestATopicWithRowsOfAnotherPolicyForFieldsIsNamed(t *testing.T) {
	s := withService(t, nil)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil) // in clear, before there was a policy
	s.Schemas.Protect(schemas.Privacy{Fields: map[string]schemas.Policy{"orders.status": schemas.PolicyDrop}})
	says(t, passing(t, s), Warning, "kafka", "store.orders", "under other policies",
		"restart the instances with this configuration, then storestream sweep orders")
	policies := watermark.Policies{}.Then(s.Schemas.Get("orders").PolicyFingerprint())
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.Policies = policies })
	says(t, passing(t, s), Warning, "kafka", "store.orders", "no longer in force", "storestream sweep orders")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.Policies = policies[1:] })
	for _, f := range passing(t, s) {
		if strings.Contains(f.Found, "policies") {
			t.Errorf("all rows are of the policy in force: %+v", f)
		}
	}
}

// withService is a stage with a service and no database.
func withService(t *testing.T, change func(*storefake.Config)) *stage.Stage {
	t.Helper()
	s := stage.New(t)
	s.Serve(change)
	return s
}

// The view takes a second, so the time it takes is the server's and above a quarter of the interval.
func TestAnOverlapThatTakesMoreThanAQuarterOfTheIntervalIsAWarning(t *testing.T) {
	t.Parallel()
	s := withDatabase(t, nil)
	s.exec(t, "UPDATE orders SET updated_at = now() WHERE id = (SELECT min(id) FROM orders)")
	s.exec(t, "ALTER TABLE orders RENAME TO base; CREATE VIEW orders AS SELECT base.* FROM base, "+
		"(SELECT pg_sleep(1)) AS slow; GRANT SELECT ON orders TO "+storefake.ReaderRole)
	found := passing(t, s.Stage, "resources.orders.interval=3s")
	says(t, found, Warning, "database", "orders", "a poll looks through", "at an interval of 3s",
		"shorten the overlap")
	says(t, found, Note, "database", "orders", "each poll reads all rows of the overlap", "it is a view")
	says(t, found, OK, "database", "order_items", "a poll looks through")
	// The same second is little in a minute.
	says(t, passing(t, s.Stage, "resources.orders.interval=1m"), OK, "database", "orders",
		"a poll looks through")
}

func TestWhatIsWrongWithTheServiceIsNamed(t *testing.T) {
	t.Parallel()
	s := withService(t, nil)
	says(t, failing(t, s, "store.base_url=http://"+stage.Nowhere(t)+"/v1"), Failure, "service", "",
		"is the service up", "store.base_url")
	says(t, failing(t, s, "store.api_key=geheim"), Failure, "service", "", "does not accept store.api_key")
	says(t, failing(t, s, "store.base_url="+s.Registry.URL), Failure, "service", "", "store.base_url")

	s = withService(t, func(c *storefake.Config) {
		c.Offset,
			c.Readings.ExtraFields = -90*time.Minute-30*time.Second, true
	})
	found := passing(t, s)
	says(t, found, Warning, "service", "clock", "1h30m", "behind this machine's", "NTP")
	says(t, found, Note, "service", "users", "fields that the schema does not know", "User.avsc",
		`docs/operations.md, "A field is added"`)

	s = withService(t, func(c *storefake.Config) {
		c.Readings.NoDate = true
		c.Faults.Choose = func(r *http.Request) storefake.Fault {
			if strings.HasSuffix(r.URL.Path, "store-users") {
				return storefake.TooMany
			}
			return storefake.NoFault
		}
	})
	found = passing(t, s)
	says(t, found, Note, "service", "clock", "sends no Date header")
	says(t, found, Warning, "service", "users", "answered 429", "max_requests_per_second")
}

func TestWhatIsWrongWithKafkaIsNamed(t *testing.T) {
	t.Parallel()
	s := withService(t, nil)
	says(t, failing(t, s, "kafka.brokers="+stage.Nowhere(t)), Failure, "kafka", "", "does not answer",
		"kafka.tls")
	says(t, failing(t, s, "kafka.replication_factor=3"), Failure, "kafka", "store.orders",
		"INVALID_REPLICATION_FACTOR")

	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	says(t, failing(t, s, "kafka.group=others"), Failure, "kafka", "store.orders",
		`published by group "storestream"`, "kafka.topic_prefix")
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	s.Publish("users", nil, nil, nil)
	if _, err := kadm.NewClient(cl).CreatePartitions(t.Context(), 1, "store.users"); err != nil {
		t.Fatal(err)
	}
	all := failing(t, s)
	says(t, all, Failure, "kafka", "store.users", "it has 3 partitions: expected 2",
		"delete the topic")
	says(t, all, Note, "kafka", "store.users", "holds personal data in clear")

	// A record that is no watermark is said of its own resource, and hides no other's.
	s.Garbage("products")
	all = failing(t, s)
	says(t, all, Failure, "kafka", "store.products", "watermark of products: ", "partition", "offset")
	says(t, all, Failure, "kafka", "store.users", "it has 3 partitions: expected 2")

	settings := map[string]*string{"cleanup.policy": kadm.StringPtr("delete")}
	small := map[string]*string{"cleanup.policy": kadm.StringPtr("compact"),
		"max.message.bytes": kadm.StringPtr("2000"), "min.insync.replicas": kadm.StringPtr("2")}
	for topic, with := range map[string]map[string]*string{"other.orders": settings, "other.users": small} {
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 2, 1, with, topic); err != nil {
			t.Fatal(err)
		}
	}
	found := failing(t, s, "kafka.topic_prefix=other.")
	says(t, found, Failure, "kafka", "other.orders", "cleanup.policy is delete, expected compact",
		"kafka-configs.sh --bootstrap-server "+s.Broker.Brokers()[0]+" --alter --topic other.orders")
	found = failing(t, s, "kafka.topic_prefix=third.", "kafka.replication_factor=3")
	says(t, found, Failure, "kafka", "third.orders", "INVALID_REPLICATION_FACTOR",
		"set kafka.replication_factor")
	found = failing(t, s, "kafka.topic_prefix=other.")
	says(t, found, Warning, "kafka", "other.users", "max.message.bytes is 2.0 KiB", "dead letter")
	says(t, found, Failure, "kafka", "other.users", "min.insync.replicas is 2")
	says(t, found, Warning, "kafka", "other.users", "max.compaction.lag.ms is not set",
		"kafka.erase_within, 168h", "--add-config max.compaction.lag.ms=604800000")
	says(t, found, Warning, "kafka", "other.users", "delete.retention.ms is 86400000: a consumer",
		"--add-config delete.retention.ms=604800000")

	// Another registry: the topic's keys carry an id that this one does not know.
	anew := servers.RegistryForTest(t)
	says(t, failing(t, s, "registry.url="+anew.URL), Failure, "registry", "store.orders",
		"the schema id of its keys is", "which this registry does not have", "point registry.url at")
}

func TestWhatIsWrongWithTheRegistryIsNamed(t *testing.T) {
	t.Parallel()
	s := withService(t, nil)
	says(t, failing(t, s, "registry.auto_register=false"), Failure, "registry", "store.users",
		"lacks store.users-key", "storestream schema register")
	says(t, failing(t, s, "registry.url=http://"+stage.Nowhere(t)), Failure, "registry", "", "does not answer",
		"registry.url")
	s.Registry.Fake.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		switch {
		case r.URL.Path == "/mode":
			fmt.Fprint(w, `{"mode":"READONLY"}`)
		// Something is there, and it is not ours.
		case strings.HasSuffix(r.URL.Path, "/subjects/store.orders-value"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error_code":40403,"message":"Schema not found"}`)
		case strings.HasPrefix(r.URL.Path, "/compatibility/subjects/store.orders-value"):
			fmt.Fprint(w, `{"is_compatible":false,"messages":["status: type changed"]}`)
		default:
			return false
		}
		return true
	})
	found := failing(t, s)
	says(t, found, Failure, "registry", "store.orders", "refuses store.orders-value: status: type changed",
		"compatibility")
	says(t, found, Failure, "registry", "store.users", "is read-only and lacks store.users-key")
}

// With two brokers that answer nothing the same stood there twice.
func TestTwoBrokersOfWhichTheSameIsToBeSaidAreOneLine(t *testing.T) {
	s := withService(t, nil)
	found := failing(t, s, "kafka.tls.enabled=true", "kafka.brokers="+stage.Nowhere(t)+","+stage.Nowhere(t))
	n := 0
	for _, f := range found {
		if f.Part == "security" && f.About == "kafka" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d lines, expected one: %+v", n, found)
	}
	says(t, found, Note, "security", "kafka", "cannot tell what protects it: there is no connection")
}

func TestAPortThatIsTakenIsOnlyWrongWhereNoStorestreamHasIt(t *testing.T) {
	s := withService(t, nil)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = http.Serve(l, http.NotFoundHandler()) }() //nolint:gosec // a test's
	says(t, failing(t, s, "http.listen="+l.Addr().String()), Failure, "status", "", "address already in use",
		"http.listen")
}
