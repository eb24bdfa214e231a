package preflight

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// try tries what the settings of a stage name, and of more.
func try(t *testing.T, s *stage.Stage, more ...string) []Finding {
	t.Helper()
	return slices.Collect(Try(t.Context(), opened(t, s.Config(more...), s.Schemas)))
}

// opened is what the settings describe.
func opened(t *testing.T, cfg *config.Config, set *schemas.Set) Config {
	t.Helper()
	c := Config{Settings: cfg, Schemas: set, Requests: new(Requests)}
	var errs [3]error
	c.Registry, errs[0] = connect.Registry(cfg)
	c.Cluster, errs[1] = connect.Kafka(cfg, "checker", zap.NewNop(), nil)
	c.Sources, errs[2] = connect.OpenSources(cfg, zap.NewNop(), c.Requests.Watch)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Cluster.Close)
	t.Cleanup(c.Sources.Close)
	return c
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
	s := withService(t, nil)
	s.Broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, Count: 4,
		Err: kerr.CoordinatorNotAvailable})
	says(t, passing(t, s), OK, "kafka", "group", "has 0 instances")
}

func TestADirectoryInWhichNoFileCanBeMadeIsNamed(t *testing.T) {
	for dir, want := range map[string]bool{t.TempDir(): false, "/dev/null": true} {
		t.Setenv("TMPDIR", dir)
		found := &findings{part: "configuration"}
		tryConfiguration(t.Context(), Config{Settings: stage.New(t).Config()}, found)
		warned := slices.ContainsFunc(found.all, func(f Finding) bool {
			return f.Level == Warning && f.About == "sweep.scratch" && strings.Contains(f.Found, dir) &&
				strings.Contains(f.Do, "TMPDIR")
		})
		if warned != want {
			t.Errorf("%s: %+v", dir, found.all)
		}
	}
}

func TestNothingIsWrongWhereAllIsWellAndNothingIsChanged(t *testing.T) {
	s := withDatabase(t, nil)
	found := try(t, s.Stage, "store.request_timeout=1h") // else a busy machine has slow answers
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
	says(t, found, OK, "database", "orders", "the first rows of a pass and of a sweep")
	says(t, found, OK, "kafka", "store.orders", "is not there yet, and `run` can create it")
	says(t, found, Note, "kafka", "store.users", "personal data in clear: first_name, last_name, email, age, "+
		"gender, street_address, postal_code, city, latitude, longitude")
	says(t, found, OK, "registry", "", s.Registry.URL)
	says(t, found, OK, "security", "", "each connection to another machine is encrypted")
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
	if s.Registry.Fake.SubjectExists("store.orders-key") {
		t.Error("it registered a schema")
	}
}

func TestWhatIsWrongWithTheDatabaseIsNamed(t *testing.T) {
	s := withDatabase(t, func(c *storefake.Config) { c.Database.NoIndex = true })
	s.exec(t, "ALTER TABLE orders ADD discount numeric; ALTER TABLE order_items ADD gift text, ADD \"A b\" text")
	found := passing(t, s.Stage)
	says(t, found, Warning, "database", "orders", "each poll reads the whole table",
		`CREATE INDEX CONCURRENTLY ON "public"."orders" (updated_at, id);`)
	says(t, found, Note, "database", "orders", "1 field that the schema does not know, not published: "+
		"`storestream check --names`", "Order.avsc in schemas.dir", `docs/lifecycle.md, "A field is added"`)
	says(t, found, Note, "database", "order_items", "2 fields that the schema does not know")

	says(t, passing(t, s.Stage, "postgres.dsn="+s.postgres.AdminDSN("postgres")), Warning, "database", "orders",
		"may change rows", "student_ro")
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
	says(t, failing(t, s.Stage), Failure, "database", "", "is the database up")
}

// One row that breaks the contract is a dead letter. If a chunk has no good row, the resource is blocked.
func TestARowThatCannotBePublishedIsNamed(t *testing.T) {
	s := withDatabase(t, nil)
	s.exec(t, "UPDATE orders SET total_amount = 1e25 WHERE id = (SELECT min(id) FROM orders)")
	says(t, passing(t, s.Stage), Warning, "database", "orders", `breaks the contract in "total_amount"`)
	s.exec(t, "UPDATE orders SET total_amount = 1e25")
	says(t, failing(t, s.Stage), Failure, "database", "orders", "Something bigger is wrong than those rows")
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
	says(t, passing(t, s), Warning, "kafka", "store.orders", "under other policies", "storestream sweep orders")
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

func TestWhatIsWrongWithTheServiceIsNamed(t *testing.T) {
	t.Parallel()
	s := withService(t, nil)
	says(t, failing(t, s, "store.base_url=http://"+stage.Nowhere(t)+"/v1"), Failure, "service", "products",
		"connection refused")
	says(t, failing(t, s, "store.api_key=geheim"), Failure, "service", "users", "does not accept store.api_key")
	says(t, failing(t, s, "store.base_url="+s.Registry.URL), Failure, "service", "users",
		"no API key could be fetched")

	s = withService(t, func(c *storefake.Config) {
		c.Offset, c.Readings.ExtraFields = -90*time.Minute-30*time.Second, true
	})
	found := passing(t, s)
	says(t, found, Warning, "service", "clock", "1h30m", "NTP")
	says(t, found, Note, "service", "users", " that the schema does not know, not published: `storestream "+
		"check --names`", "User.avsc", `docs/lifecycle.md, "A field is added"`)

	s = withService(t, answering(func(r *http.Request) storefake.Fault {
		if strings.HasSuffix(r.URL.Path, "store-users") {
			return storefake.TooMany
		}
		return storefake.NoFault
	}))
	says(t, passing(t, s), Warning, "service", "users", "answered 429", "max_requests_per_second")
}

// answering chooses the service's faults.
func answering(choose func(*http.Request) storefake.Fault) func(*storefake.Config) {
	return func(c *storefake.Config) { c.Faults.Choose = choose }
}

// What check asks is what run asks: the windows of a pass and of a sweep. What run steps over fails no check.
func TestARequestThatOnlyRunWouldSendFailsTheCheck(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]func(url.Values) bool{
		"windows by updated_to": func(q url.Values) bool { return q.Get("updated_to") != "" },
		"windows by created_to": func(q url.Values) bool { return q.Get("created_to") != "" },
	} {
		s := withService(t, answering(func(r *http.Request) storefake.Fault {
			if strings.HasSuffix(r.URL.Path, "store-users") && refused(r.URL.Query()) {
				return storefake.ServerError
			}
			return storefake.NoFault
		}))
		t.Run(name, func(t *testing.T) {
			says(t, failing(t, s), Failure, "service", "users", "answered 500")
		})
	}
}

func TestWhatIsWrongWithKafkaIsNamed(t *testing.T) {
	t.Parallel()
	s := withService(t, nil)
	says(t, failing(t, s, "kafka.brokers="+stage.Nowhere(t)), Failure, "kafka", "", "does not answer",
		"kafka.tls")
	found := failing(t, s, "kafka.replication_factor=3")
	says(t, found, Failure, "kafka", "store.orders", "INVALID_REPLICATION_FACTOR",
		"set kafka.replication_factor")
	shared := slices.DeleteFunc(found, func(f Finding) bool {
		return f.Part != "kafka" || !strings.Contains(f.Found, "store.watermarks:")
	})
	if len(shared) != 1 || shared[0].About != "store.watermarks" {
		t.Errorf("a topic that all resources share is named %d times: %+v", len(shared), shared)
	}

	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	s.Publish("users", nil, nil, nil)
	if _, err := kadm.NewClient(cl).CreatePartitions(t.Context(), 1, "store.users"); err != nil {
		t.Fatal(err)
	}
	// A record that is no watermark is said of its own resource, and hides no other's.
	s.Garbage("products")
	all := failing(t, s)
	says(t, all, Failure, "kafka", "store.users", "the number of partitions is 3, expected 2",
		"delete the topic")
	says(t, all, Failure, "kafka", "store.products", "watermark of products: ", "partition", "offset")
	says(t, all, OK, "kafka", "store.orders", "can be taken over: 2 partitions")

	for topic, with := range map[string]map[string]*string{
		"other.orders": {"cleanup.policy": kadm.StringPtr("delete")},
		"other.users": {"cleanup.policy": kadm.StringPtr("compact"), "max.message.bytes": kadm.StringPtr("2000"),
			"min.insync.replicas": kadm.StringPtr("1")},
	} {
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 2, 1, with, topic); err != nil {
			t.Fatal(err)
		}
	}
	found = failing(t, s, "kafka.topic_prefix=other.")
	says(t, found, Failure, "kafka", "other.orders", "cleanup.policy is delete, expected compact",
		"kafka-configs.sh --bootstrap-server "+s.Broker.Brokers()[0]+" --alter --topic other.orders")
	says(t, found, Warning, "kafka", "other.users", "max.message.bytes is 2000", "dead letter")
	says(t, found, Note, "kafka", "other.users", "max.compaction.lag.ms is not shown by the brokers",
		"max.compaction.lag.ms:604800000")
	says(t, found, Warning, "kafka", "other.users", "delete.retention.ms is 86400000", "a consumer",
		"--add-config delete.retention.ms=604800000")

	// Another registry: the topic's keys carry an id that this one does not know.
	anew := servers.RegistryForTest(t)
	says(t, failing(t, s, "registry.url="+anew.URL), Failure, "kafka", "store.orders",
		"the schema id of its keys is", "which this registry does not have", "point registry.url at")
}

func TestAGroupThatSharesItsResourcesOutHasNoNumberOfInstances(t *testing.T) {
	t.Parallel()
	s := withService(t, nil)
	s.Broker.ControlKey(int16(kmsg.DescribeGroups), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.Broker.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
		group := kmsg.NewDescribeGroupsResponseGroup()
		group.Group, group.State = req.(*kmsg.DescribeGroupsRequest).Groups[0], "PreparingRebalance"
		resp.Groups = append(resp.Groups, group)
		return resp, nil, true
	})
	says(t, passing(t, s), OK, "kafka", "group", "is sharing its resources out")
}

func TestWhatIsWrongWithTheRegistryIsNamed(t *testing.T) {
	t.Parallel()
	s := withService(t, nil)
	says(t, failing(t, s, "registry.auto_register=false"), Failure, "kafka", "store.users",
		"store.users-key: ", "it does not hold this schema", "storestream schema register")
	says(t, failing(t, s, "registry.url=http://"+stage.Nowhere(t)), Failure, "registry", "",
		"cannot serve this now", "registry.url")
	ours := ""
	s.Registry.Fake.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if ours == "" || !strings.Contains(r.URL.Path, ours) {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	ours = "store.shipments-value" // the last of all subjects, which another user's rules protect
	says(t, failing(t, s), Failure, "registry", "", "store.shipments-value", "refuses the credentials")
	ours = ""
	mode := "READWRITE"
	s.Registry.Fake.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		switch {
		case r.URL.Path == "/mode":
			fmt.Fprintf(w, `{"mode":%q}`, mode)
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
	says(t, failing(t, s), Failure, "kafka", "store.orders", "store.orders-value", "status: type changed",
		"compatibility")
	mode = "READONLY"
	says(t, failing(t, s), Failure, "kafka", "store.users", "store.users-key", "is read-only")
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	s := withService(t, nil)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	says(t, passing(t, s, "http.listen="+l.Addr().String()), Note, "status", "", "is in use", "http.listen")
}
