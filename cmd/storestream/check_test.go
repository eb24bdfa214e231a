package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// shop is a stage with all that stands around storestream: a service, and a database behind a pooler in transaction mode.
type shop struct {
	*stage
	fake     *storefake.Fake
	postgres *servers.Postgres
	pooler   *servers.PgBouncer
}

// newShop starts it. change may be nil.
func newShop(t *testing.T, change func(*storefake.Config)) *shop {
	t.Helper()
	s := &shop{stage: newStage(t)}
	s.postgres = servers.PostgresForTest(t, servers.PostgresConfig{})
	s.pooler = servers.PgBouncerForTest(t, servers.PgBouncerConfig{Postgres: s.postgres, Users: map[string]string{storefake.ReaderRole: "student"}})
	config := storefake.Config{Size: storefake.Size{Users: 20, Orders: 30, Products: 10}, Database: storefake.Database{DSN: s.postgres.AdminDSN("postgres")}}
	if change != nil {
		change(&config)
	}
	var err error
	if s.fake, err = storefake.Start(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.fake.Close)
	s.flags = append(s.flags, "--set", "store.base_url="+s.fake.BaseURL(), "--set", "postgres.dsn="+s.pooler.DSN(storefake.ReaderRole, "student", "postgres"))
	return s
}

// check runs `check -o json` with more settings.
func (s *stage) check(code int, settings ...string) []finding {
	s.t.Helper()
	args := []string{"check", "-o", "json"}
	args = append(args, s.flags...)
	for _, setting := range settings {
		args = append(args, "--set", setting)
	}
	c := do(s.t, args...).expect(s.t, code)
	var found []finding
	if err := json.Unmarshal([]byte(c.stdout.String()), &found); err != nil {
		s.t.Fatalf("%v:\n%s%s", err, c.stdout, c.stderr)
	}
	return found
}

// says wants one finding of a part about something, at a level, whose text and remedy hold the words.
func says(t *testing.T, found []finding, l level, part, about string, words ...string) {
	t.Helper()
	for _, f := range found {
		text := f.Found + " -> " + f.Do
		if f.Level == l && f.Part == part && f.About == about && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			return
		}
	}
	t.Errorf("no %s of %s %s with %q among:\n%s", l, part, about, words, listed(found))
}

func listed(found []finding) string {
	var b strings.Builder
	for _, f := range found {
		_ = f.print(&b, false, 30)
	}
	return b.String()
}

func TestCheckFindsNothingWrongWhereAllIsWellAndChangesNothing(t *testing.T) {
	s := newShop(t, nil)
	for _, f := range s.check(exitDone) {
		if f.Level == failing || f.Level == warning {
			t.Errorf("%+v", f)
		}
	}
	c := s.do("check").expect(t, exitDone, "ok    service products", "a pooler in transaction mode", "ok    database orders", "is not there yet, and `run` can create it with 2 partitions",
		"holds personal data in clear: first_name, last_name, email, street_address", "not registered yet; compatible", "Nothing fails",
		"ok    registry store.order_items  store.order_items-key", "ok    registry                    http://", "ok    status                      127.0.0.1:0 is free") // one below the other
	if strings.Contains(c.stdout.String(), "\x1b[") || strings.Contains(c.stdout.String(), "student@") {
		t.Errorf("colors where no terminal is, or a secret:\n%s", c.stdout)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(t.Context())
	if err != nil || len(topics) > 0 {
		t.Errorf("check made topics %v (%v)", topics.Names(), err)
	}
	registered := s.do("schema", "check").expect(t, exitDone)
	if got := strings.Count(registered.stdout.String(), "not registered; compatible"); got != 10 {
		t.Errorf("check registered schemas:\n%s", registered.stdout)
	}
}

func TestCheckNamesWhatIsWrongWithTheDatabase(t *testing.T) {
	s := newShop(t, func(c *storefake.Config) { c.Database.NoIndex, c.Database.StatementTimeout = true, 3*time.Second })
	found := s.check(exitDone)
	says(t, found, warning, "database", "orders", "each poll reads the whole table", `CREATE INDEX CONCURRENTLY ON "public"."orders" (updated_at, id);`)
	says(t, found, warning, "database", "timeout", "statement_timeout is 3s", "ALTER ROLE student_ro")

	session := servers.PgBouncerForTest(t, servers.PgBouncerConfig{Postgres: s.postgres, PoolMode: "session", Users: map[string]string{storefake.ReaderRole: "student"}})
	says(t, s.check(exitDone, "postgres.dsn="+session.DSN(storefake.ReaderRole, "student", "postgres")), warning, "database", "pooler", "a pooler in session mode", "pool_mode=transaction")
	direct := s.check(exitDone, "postgres.dsn="+s.postgres.AdminDSN("postgres"))
	says(t, direct, warning, "database", "role", "is a superuser", "student_ro")
	says(t, direct, warning, "database", "orders", "may change rows")
	says(t, s.check(exitFailed, "postgres.dsn="+s.pooler.DSN(storefake.ReaderRole, "geheim", "postgres")), failing, "database", "", "check user, password")
	says(t, s.check(exitFailed, "postgres.dsn="+s.pooler.DSN(storefake.ReaderRole, "student", "nowhere")), failing, "database", "", "nowhere")

	s.exec("REVOKE SELECT ON orders FROM " + storefake.ReaderRole)
	s.exec("ALTER TABLE order_items ALTER COLUMN quantity TYPE boolean USING true")
	found = s.check(exitFailed)
	says(t, found, failing, "database", "orders", "may not read", "GRANT SELECT ON")
	says(t, found, failing, "database", "order_items", "column quantity is bool")
	says(t, found, fine, "service", "products") // the rest is told all the same

	if err := s.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.pooler.Stop(); err != nil {
		t.Fatal(err)
	}
	says(t, s.check(exitFailed), failing, "database", "", "is the database up", "`run` waits for it")
}

func (s *shop) exec(sql string) {
	s.t.Helper()
	if err := s.fake.Exec(s.t.Context(), sql); err != nil {
		s.t.Fatal(err)
	}
}

// offline is a stage with a service and no database.
func offline(t *testing.T, change func(*storefake.Config)) *stage {
	t.Helper()
	s := newStage(t)
	config := storefake.Config{Size: storefake.Size{Users: 20, Orders: 30, Products: 10}}
	if change != nil {
		change(&config)
	}
	fake, err := storefake.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	s.flags = append(s.flags, "--set", "store.base_url="+fake.BaseURL())
	return s
}

func TestCheckNamesWhatIsWrongWithTheService(t *testing.T) {
	s := offline(t, nil)
	says(t, s.check(exitFailed, "store.base_url=http://"+noBroker(t)+"/v1"), failing, "service", "", "is the service up", "store.base_url")
	says(t, s.check(exitFailed, "store.api_key=geheim"), failing, "service", "", "does not accept store.api_key")
	says(t, s.check(exitFailed, "store.base_url="+s.registry.URL), failing, "service", "", "store.base_url")

	s = offline(t, func(c *storefake.Config) { c.Offset, c.Readings.ExtraFields = -90*time.Minute-30*time.Second, true })
	found := s.check(exitDone)
	says(t, found, warning, "service", "clock", "1h30m", "behind this machine's", "NTP")
	says(t, found, note, "service", "users", "fields that the schema does not know")

	s = offline(t, func(c *storefake.Config) {
		c.Readings.NoDate = true
		c.Faults.Choose = func(r *http.Request) storefake.Fault {
			if strings.HasSuffix(r.URL.Path, "store-users") {
				return storefake.TooMany
			}
			return storefake.NoFault
		}
	})
	found = s.check(exitDone)
	says(t, found, note, "service", "clock", "sends no Date header")
	says(t, found, warning, "service", "users", "answered 429", "max_requests_per_second")
}

func TestCheckNamesWhatIsWrongWithKafka(t *testing.T) {
	s := offline(t, nil)
	says(t, s.check(exitFailed, "kafka.brokers="+noBroker(t)), failing, "kafka", "", "does not answer", "kafka.tls")
	says(t, s.check(exitFailed, "kafka.replication_factor=3"), failing, "kafka", "store.orders", "INVALID_REPLICATION_FACTOR")

	s.publish("orders", []schemas.Record{s.order(1, "Shipped")}, nil, func(*watermark.Watermark) {})
	says(t, s.check(exitFailed, "kafka.group=others"), failing, "kafka", "store.orders", `published by group "storestream"`, "kafka.topic_prefix")
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	s.publish("users", nil, nil, func(*watermark.Watermark) {})
	if _, err := kadm.NewClient(cl).CreatePartitions(t.Context(), 1, "store.users"); err != nil {
		t.Fatal(err)
	}
	says(t, s.check(exitFailed), failing, "kafka", "store.users", "it has 3 partitions, and was filled when it had 2", "delete the topic")

	settings := map[string]*string{"cleanup.policy": kadm.StringPtr("delete")}
	small := map[string]*string{"cleanup.policy": kadm.StringPtr("compact"), "max.message.bytes": kadm.StringPtr("2000"), "min.insync.replicas": kadm.StringPtr("2")}
	for topic, with := range map[string]map[string]*string{"other.orders": settings, "other.users": small} {
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 2, 1, with, topic); err != nil {
			t.Fatal(err)
		}
	}
	found := s.check(exitFailed, "kafka.topic_prefix=other.")
	says(t, found, failing, "kafka", "other.orders", "cleanup.policy is delete, expected compact", "kafka-configs.sh --alter")
	says(t, found, warning, "kafka", "other.users", "max.message.bytes is 2.0 KiB", "dead letter")
	says(t, found, failing, "kafka", "other.users", "min.insync.replicas is 2")

	// Another registry: the topic's keys carry an id that this one does not know.
	anew := servers.RegistryForTest(t)
	says(t, s.check(exitFailed, "registry.url="+anew.URL), failing, "registry", "store.orders", "the same row would have two keys", "point registry.url at")
}

func TestCheckNamesWhatIsWrongWithTheRegistry(t *testing.T) {
	s := offline(t, nil)
	says(t, s.check(exitFailed, "registry.auto_register=false"), failing, "registry", "store.users", "lacks store.users-key", "storestream schema register")
	says(t, s.check(exitFailed, "registry.url=http://"+noBroker(t)), failing, "registry", "", "does not answer", "registry.url")
	s.registry.Fake.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		switch {
		case r.URL.Path == "/mode":
			fmt.Fprint(w, `{"mode":"READONLY"}`)
		case strings.HasSuffix(r.URL.Path, "/subjects/store.orders-value"): // something is there, and it is not ours
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error_code":40403,"message":"Schema not found"}`)
		case strings.HasPrefix(r.URL.Path, "/compatibility/subjects/store.orders-value"):
			fmt.Fprint(w, `{"is_compatible":false,"messages":["status: type changed"]}`)
		default:
			return false
		}
		return true
	})
	found := s.check(exitFailed)
	says(t, found, failing, "registry", "store.orders", "refuses store.orders-value: status: type changed", "compatibility")
	says(t, found, failing, "registry", "store.users", "is read-only and lacks store.users-key")
}

func TestAPortThatIsTakenIsOnlyWrongWhereNoStorestreamHasIt(t *testing.T) {
	s := offline(t, nil)
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = http.Serve(l, http.NotFoundHandler()) }() //nolint:gosec // a test's
	says(t, s.check(exitFailed, "http.listen="+l.Addr().String()), failing, "status", "", "address already in use", "http.listen")
}
