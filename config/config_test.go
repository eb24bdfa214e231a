package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/schemas"
)

// file writes a configuration file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, in Input) *Config {
	t.Helper()
	c, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mistakesOf loads what must not load.
func mistakesOf(t *testing.T, in Input) []Mistake {
	t.Helper()
	_, err := Load(in)
	if err == nil {
		t.Fatal("expected mistakes")
	}
	var found []Mistake
	for _, one := range errors.Unwrap(err).(interface{ Unwrap() []error }).Unwrap() {
		mistake, ok := errors.AsType[Mistake](one)
		if !ok {
			t.Fatalf("error %v, expected a Mistake", one)
		}
		found = append(found, mistake)
	}
	return found
}

func entry(t *testing.T, c *Config, key string) Entry {
	t.Helper()
	for _, e := range c.Entries() {
		if e.Key == key {
			return e
		}
	}
	t.Fatalf("no entry %s", key)
	return Entry{}
}

func TestTheExampleHoldsEveryKeyAndNothingButDefaults(t *testing.T) {
	const file = "example.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	resources, _ := raw["resources"].(map[string]any)
	for _, name := range schemas.Names() {
		if resources[name] == nil {
			t.Fatalf("resources in %s lacks %s: copy the section of one like it, with its defaults", file, name)
		}
	}
	example, nothing := load(t, Input{File: file}), load(t, Input{})
	for _, e := range nothing.Entries() {
		in := entry(t, example, e.Key)
		if in.Value != e.Value {
			t.Errorf("%s is %q in %s, its default is %q", e.Key, in.Value, file, e.Value)
		}
	}
	example.entries, nothing.entries, example.tls, nothing.tls = nil, nil, nil, nil
	example.schemas, nothing.schemas = nil, nil
	if !reflect.DeepEqual(example, nothing) {
		t.Errorf("%s loads to\n%+v\nthe defaults are\n%+v", file, example, nothing)
	}
	// The same as written: loading turned the resources of the database to REST, for there is no DSN.
	for key, leaf := range newLoader().leaves {
		var at any = raw
		for part := range strings.SplitSeq(key, ".") {
			section, _ := at.(map[string]any)
			at = section[part]
		}
		if list, ok := at.([]any); ok {
			var elements []string
			for _, element := range list {
				elements = append(elements, fmt.Sprint(element))
			}
			at = strings.Join(elements, ",")
		}
		if got := fmt.Sprint(at); got != leaf.Tag.Get("default") {
			t.Errorf("%s is %q in %s, its default is %q", key, got, file, leaf.Tag.Get("default"))
		}
	}
}

func TestLaterLayersWinAndEveryValueKnowsWhereItCameFrom(t *testing.T) {
	in := Input{
		File: file(t, "storestream.yaml", `
store:
  base_url: https://shop.example/v1/
  request_timeout: 5s
kafka:
  brokers: [a:9092, "b:9093"]
  topic_prefix:
resources:
  order_items: {interval: 3s, start: 2026-01-31}
`),
		Environ: []string{"STORESTREAM_STORE__REQUEST_TIMEOUT=6s",
			"STORESTREAM_RESOURCES__ORDER_ITEMS__INTERVAL=4s",
			"STORESTREAM_KAFKA__PARTITIONS=12", "PATH=/bin"},
		Set: []string{"resources.order_items.interval=5s"},
	}
	c := load(t, in)
	for _, test := range []struct{ key, value, from string }{
		{"store.base_url", "https://shop.example/v1/", "storestream.yaml:3"},
		{"store.request_timeout", "6s", "environment STORESTREAM_STORE__REQUEST_TIMEOUT"},
		{"kafka.brokers", "a:9092,b:9093", "storestream.yaml:6"},
		{"kafka.partitions", "12", "environment STORESTREAM_KAFKA__PARTITIONS"},
		{"kafka.topic_prefix", "store.", "default"}, // no value: not set
		{"resources.order_items.interval", "5s", "flag --set"},
		{"resources.order_items.start", "2026-01-31", "storestream.yaml:9"},
		{"log.level", "info", "default"},
	} {
		if e := entry(t, c, test.key); e.Value != test.value || e.From != test.from {
			t.Errorf("%s is %q from %q, expected %q from %q", test.key, e.Value, e.From, test.value, test.from)
		}
	}
	if c.Store.BaseURL != "https://shop.example/v1" {
		t.Errorf("base_url %q, expected it without the slash at its end", c.Store.BaseURL)
	}
	items := c.Resources["order_items"]
	want := schemas.InstantOf(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC))
	if items.Interval != 5*time.Second || items.Start != want {
		t.Errorf("order_items %+v, expected interval 5s and start %v", items, want)
	}
	if !reflect.DeepEqual(c.Kafka.Brokers, []string{"a:9092", "b:9093"}) {
		t.Errorf("brokers %q", c.Kafka.Brokers)
	}
}

func TestWithoutADSNOrdersAndItemsGoOverRESTAtItsPace(t *testing.T) {
	dsn := "STORESTREAM_POSTGRES__DSN=postgres://student_ro@127.0.0.1:6432/store"
	for _, test := range []struct {
		name              string
		environ, set      []string
		source            string
		interval, overlap time.Duration
	}{
		{"nothing set", nil, nil, REST, 30 * time.Second, 5 * time.Minute},
		{"with a DSN", []string{dsn}, nil, Postgres, time.Second, 2 * time.Minute},
		{"PostgreSQL asked for", nil, []string{"resources.orders.source=postgres"},
			REST, 30 * time.Second, 5 * time.Minute},
		{"an interval of the user's", nil, []string{"resources.orders.interval=7s"},
			REST, 7 * time.Second, 5 * time.Minute},
		{"REST asked for", []string{dsn}, []string{"resources.orders.source=rest"},
			REST, 30 * time.Second, 5 * time.Minute},
		{"REST asked for, every second", nil,
			[]string{"resources.orders.source=rest", "resources.orders.interval=1s"},
			REST, time.Second, 5 * time.Minute},
	} {
		c := load(t, Input{Environ: test.environ, Set: test.set})
		r := c.Resources["orders"]
		if r.Source != test.source || r.Interval != test.interval || r.Overlap != test.overlap {
			t.Errorf("%s: %+v, expected %s %v %v", test.name, r, test.source, test.interval, test.overlap)
		}
	}
	e := entry(t, load(t, Input{}), "resources.orders.source")
	if e.Value != REST || e.From != "because postgres.dsn is empty" {
		t.Errorf("the source is shown as %+v", e)
	}
}

func TestEveryMistakeIsReportedAtOnceWithKeyValueAndRule(t *testing.T) {
	path := file(t, "storestream.yaml", `
store: {base_url: shop.example, max_requests_per_second: 0}
kafka:
  brokers: [127.0.0.1]
  partitions: six
  sasl: {mechanism: MD5, password: hunter2}
resources:
  orders: {interval: 10ms, overlap: -1s, start: 31.1.2026}
  users: {source: postgres}
sweep: {deletes: maybe, interval: 5}
log: {leve: debug}
`)
	_, err := Load(Input{File: path})
	if err == nil {
		t.Fatal("expected mistakes")
	}
	for _, want := range []string{
		`mistakes in the configuration:`,
		`log.leve (storestream.yaml:11): unknown key; the nearest known one is log.level`,
		`store.base_url: "shop.example" (storestream.yaml:2): expected an http or https URL ` +
			`with the service's version segment`,
		`store.max_requests_per_second: "0" (storestream.yaml:2): expected 0.01 or more`,
		`kafka.brokers: "127.0.0.1" (storestream.yaml:4): expected host:port`,
		`kafka.partitions: "six" (storestream.yaml:5): expected a whole number`,
		`kafka.sasl.mechanism: "MD5" (storestream.yaml:6): expected`,
		`resources.orders.interval: "10ms" (storestream.yaml:8): expected 100ms or more`,
		`resources.orders.overlap: "-1s" (storestream.yaml:8): expected 0s or more`,
		`resources.orders.start: "31.1.2026" (storestream.yaml:8): expected a day, such as 2026-01-31`,
		`resources.users.source: "postgres" (storestream.yaml:9): expected rest`,
		`sweep.interval: "5" (storestream.yaml:10): expected a duration with its unit`,
		`sweep.deletes: "maybe" (storestream.yaml:10): expected report or tombstone`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("the error shows a password")
	}
}

// environ is key=value as the environment has it: where secrets may stand.
func environ(settings ...string) []string {
	var variables []string
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		variables = append(variables, envName(key)+"="+value)
	}
	return variables
}

// settings splits "a.b=1,kafka.tls.c=2" before each key of kafka.tls: elsewhere a comma is part of a value.
func settings(text string) []string {
	return strings.Split(strings.ReplaceAll(text, ",kafka.tls.", "\x00kafka.tls."), "\x00")
}

func TestOneMistakeOfEachRule(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, test := range []struct{ set, key, rule string }{
		{"store.base_url=ftp://x/v1", "store.base_url", "http"},
		{"store.base_url=http://user:pw@x/v1", "store.base_url", "http"},
		{"store.api_key=file:" + missing, "store.api_key", "no such file"},
		{"store.request_timeout=1", "store.request_timeout", "unit"},
		{"sweep.memory=128", "sweep.memory", "16MiB to"},
		{"sweep.memory=128 bits", "sweep.memory", "unit"},
		{"sweep.memory=9007199254740993KiB", "sweep.memory", "16MiB to"},
		{"sweep.memory=15MiB", "sweep.memory", "16MiB"},
		{"store.max_requests_per_second=Inf", "store.max_requests_per_second", "a number"},
		{"store.max_requests_per_second=1e-300", "store.max_requests_per_second", "0.01"},
		{"store.max_requests_per_second=NaN", "store.max_requests_per_second", "a number"},
		{"store.max_requests_per_second=010", "store.max_requests_per_second", "a number"},
		{"postgres.dsn=server", "postgres.dsn", "postgres://"},
		{"postgres.dsn=postgres://u:p@host:port/db", "postgres.dsn", "postgres://"},
		{"postgres.dsn=file:example.yaml", "postgres.dsn",
			"the content of file example.yaml: not a connection string"},
		{"sweep.memory=-16MiB", "sweep.memory", "unit"},
		{"postgres.dsn=host=x password=file:" + missing, "postgres.dsn", "no such file"},
		{"postgres.dsn=host=x sslrootcert=" + missing, "postgres.dsn", "its sslrootcert cannot be used"},
		{"postgres.dsn=host=x sslrootcert=example.yaml", "postgres.dsn", "0 certificates begin"},
		{"kafka.brokers=", "kafka.brokers", "host:port"},
		{"kafka.brokers=a:9092,b", "kafka.brokers", "host:port"},
		{"kafka.brokers=a:99999", "kafka.brokers", "host:port"},
		{"kafka.topic_prefix=a b", "kafka.topic_prefix", "letters"},
		{"kafka.topic_prefix=__consumer_", "kafka.topic_prefix", "Kafka's own topics"},
		{"kafka.partitions=0", "kafka.partitions", "1 or more"},
		{"kafka.partitions=010", "kafka.partitions", "whole number"},
		{"kafka.replication_factor=0", "kafka.replication_factor", "-1"},
		{"kafka.replication_factor=70000", "kafka.replication_factor", "whole number"},
		{"kafka.session_timeout=900ms", "kafka.session_timeout", "1s to 5m"},
		{"kafka.session_timeout=6m", "kafka.session_timeout", "1s to 5m"},
		{"kafka.tls.ca_file=/x", "kafka.tls", "kafka.tls.enabled"},
		{"kafka.tls.enabled=true,kafka.tls.ca_file=" + missing, "kafka.tls.ca_file", "no such file"},
		{"kafka.tls.enabled=true,kafka.tls.ca_file=example.yaml", "kafka.tls.ca_file", "PEM"},
		{"kafka.tls.enabled=true,kafka.tls.cert_file=/x", "kafka.tls.key_file", "its key"},
		{"kafka.tls.enabled=true,kafka.tls.cert_file=/x,kafka.tls.key_file=/x", "kafka.tls.cert_file",
			"no such file"},
		{"kafka.tls.enabled=yes", "kafka.tls.enabled", "true or false"},
		{"kafka.tls.enabled=null", "kafka.tls.enabled", "true or false"},
		{"resources.orders.enabled=null", "resources.orders.enabled", "true or false"},
		{"resources.orders.source=mysql", "resources.orders.source", "postgres"},
		{"kafka.sasl.username=u", "kafka.sasl.username", "mechanism is set"},
		{"registry.url=registry:8081", "registry.url", "http"},
		{"registry.password=p", "registry.username", "a name"},
		{"schemas.dir=" + missing, "schemas.dir", "folder"},
		{"resources.products.interval=99ms", "resources.products.interval", "100ms or more"},
		{"resources.orders.start=9999-12-31", "resources.orders.start", "a year from now"},
		{"poll.memory=all", "poll.memory", "with its unit, such as 64MiB"},
		{"poll.memory=0MiB", "poll.memory", "1MiB to 1024GiB"},
		{"poll.memory=512KiB", "poll.memory", "1MiB to"},
		{"sweep.interval=1s", "sweep.interval", "1m or more"},
		{"http.listen=8080", "http.listen", "host:port"},
		{"http.hosts=http://status.shop.example", "http.hosts", "without scheme and port"},
		{"http.hosts=status.shop.example:8080", "http.hosts", "without scheme and port"},
		{"http.token=short", "http.token", "16 or more"},
		{"http.token=0123456789 abcdef", "http.token", "without spaces"},
		{"http.tls.cert_file=/x", "http.tls.key_file", "its key"},
		{"http.tls.key_file=/x", "http.tls.cert_file", "its certificate"},
		{"log.format=xml", "log.format", "json or console"},
	} {
		found := mistakesOf(t, Input{Environ: environ(settings(test.set)...)})
		if len(found) != 1 || found[0].Key != test.key || !strings.Contains(found[0].Rule, test.rule) {
			t.Errorf("%s gives %v, expected one mistake in %s that says %q", test.set, found, test.key, test.rule)
		}
	}
}

// No pace belongs to an unknown source. That must not end the load before the other mistakes are found.
func TestAnUnknownSourceIsOneMistakeAmongTheOthers(t *testing.T) {
	for _, dsn := range []string{"", "postgres://student_ro@127.0.0.1:6432/store"} {
		var keys []string
		for _, m := range mistakesOf(t, Input{Environ: environ("postgres.dsn="+dsn,
			"resources.orders.source=mysql", "kafka.partitions=six")}) {
			keys = append(keys, m.Key)
		}
		if want := []string{"kafka.partitions", "resources.orders.source"}; !slices.Equal(keys, want) {
			t.Errorf("with the DSN %q mistakes in %q, expected %q", dsn, keys, want)
		}
	}
}

func TestAFlagThatSetsNothingIsAMistake(t *testing.T) {
	for _, test := range []struct{ set, key, rule string }{
		{"resources.order.interval=1s", "resources.order.interval",
			"nearest known one is resources.orders.interval"},
		{"kafka.partitions", "--set", "key=value"},
		{"store.api_keygeheim", "--set", "key=value"},
		{"postgres.dsnpostgres://u:geheim@h/db?sslmode=require", "--set", "key=value"},
	} {
		found := mistakesOf(t, Input{Set: []string{test.set}})
		if len(found) != 1 || found[0].Key != test.key || !strings.Contains(found[0].Rule, test.rule) {
			t.Errorf("--set %s gives %v, expected one mistake in %s that says %q", test.set, found, test.key,
				test.rule)
		}
		if strings.Contains(fmt.Sprint(found), "geheim") {
			t.Errorf("%v repeats what may be a secret whose = was forgotten", found)
		}
	}
}

func TestASecretOnTheCommandLineIsRefusedAndItsFileIsNot(t *testing.T) {
	for key, leaf := range newLoader().leaves {
		if leaf.Type != reflect.TypeFor[rotation.Secret]() || key == keyDSN {
			continue
		}
		found := mistakesOf(t, Input{Set: []string{key + "=geheim"}})
		at := slices.IndexFunc(found, func(m Mistake) bool { return m.Key == key })
		if at < 0 || !strings.Contains(found[at].Rule, envName(key)) ||
			!strings.Contains(found[at].Rule, "file:/path") {
			t.Errorf("--set %s=geheim gives %v, expected to be told of %s and files", key, found, envName(key))
		}
		if strings.Contains(fmt.Sprint(found), "geheim") {
			t.Errorf("%v repeats the secret", found)
		}
	}
	for _, secret := range []string{"postgres://u:geheim@127.0.0.1/db", "host=localhost user=u password=geheim",
		"postgres://u@127.0.0.1/db?password=geheim"} {
		found := mistakesOf(t, Input{Set: []string{"postgres.dsn=" + secret}})
		if len(found) != 1 || found[0].Key != keyDSN || !strings.Contains(found[0].Rule, "password=file:/path") ||
			strings.Contains(fmt.Sprint(found), "geheim") {
			t.Errorf("--set postgres.dsn=%s gives %v", secret, found)
		}
	}
	password, whole := file(t, "password", "geheim\n"), file(t, "dsn", "postgres://u:geheim@127.0.0.1/db\n")
	for _, dsn := range []string{"postgres://u@127.0.0.1/db", "host=localhost user=u", "", "file:" + whole,
		"host=localhost user=u password=file:" + password} {
		load(t, Input{Set: []string{"postgres.dsn=" + dsn, "store.api_key=file:" + password, "store.api_key="}})
	}
}

// connections are the names that the settings of Security take.
var connections = []string{"postgres", "kafka", "registry", "store"}

func TestACredentialTravelsUnencryptedToOtherMachinesOnlyWhereThatIsAnException(t *testing.T) {
	plain := "kafka.sasl.mechanism=PLAIN\nkafka.sasl.username=u\nkafka.sasl.password=p\n"
	login := "\nregistry.username=u\nregistry.password=p"
	for _, test := range []struct{ settings, connection, key, host string }{
		{"postgres.dsn=postgres://u:p@db/store?sslmode=disable", "postgres", "postgres.dsn", "db"},
		{"postgres.dsn=postgres://u:p@db/store?sslmode=allow", "postgres", "postgres.dsn", "db"},
		{"postgres.dsn=host=127.0.0.1,db user=u password=p sslmode=prefer", "postgres", "postgres.dsn", "db"},
		{plain + "kafka.brokers=localhost:9092,10.0.0.1:9092", "kafka", "kafka.tls.enabled", "10.0.0.1"},
		{"registry.url=http://schemas:8081" + login, "registry", "registry.url", "schemas"},
		{"store.base_url=http://shop.example/v1", "store", "store.base_url", "shop.example"},
		{"store.base_url=http://shop.example/v1\nstore.api_key=k", "store", "store.base_url", "shop.example"},
		{"store.base_url=http://0.0.0.0/v1", "store", "store.base_url", "0.0.0.0"},
	} {
		given := environ(strings.Split(test.settings, "\n")...)
		found := mistakesOf(t, Input{Environ: given})
		if len(found) != 1 || found[0].Key != test.key {
			t.Errorf("%q gives %v, expected one mistake in %s", test.settings, found, test.key)
			continue
		}
		for _, want := range []string{"to " + test.host + " ", "expected ",
			"security.allow_plaintext: [" + test.connection + "]"} {
			if !strings.Contains(found[0].Rule, want) {
				t.Errorf("%v does not say %q", found[0], want)
			}
		}
		for _, other := range connections {
			set := []string{"security.allow_plaintext=" + other}
			if other == test.connection {
				exceptions := exposed(load(t, Input{Environ: given, Set: set}), false)
				if len(exceptions) != 1 || exceptions[0].Connection != other ||
					!reflect.DeepEqual(exceptions[0].Hosts, []string{test.host}) {
					t.Errorf("%q has the exceptions %v", test.settings, exceptions)
				}
			} else {
				mistakesOf(t, Input{Environ: given, Set: set})
			}
		}
	}
	for _, good := range []string{
		"postgres.dsn=postgres://u:p@db/store", "postgres.dsn=postgres://u:p@127.0.0.1/store?sslmode=require",
		"postgres.dsn=postgres://u:p@127.0.0.1/store?sslmode=disable",
		"postgres.dsn=host=/run/pg user=u password=p",
		plain + "kafka.brokers=127.0.0.1:9092", plain + "kafka.brokers=b:9092\nkafka.tls.enabled=true",
		strings.Replace(plain, "PLAIN", "SCRAM-SHA-256", 1) + "kafka.brokers=b:9092", "kafka.brokers=b:9092",
		"registry.url=http://schemas:8081", "registry.url=https://schemas:8081" + login,
		"registry.url=http://[::1]:8081" + login, "store.base_url=https://shop.example/v1",
	} {
		given := environ(strings.Split(strings.TrimSpace(good), "\n")...)
		for _, e := range exposed(load(t, Input{Environ: given}), false) {
			t.Errorf("%q: %v", good, e)
		}
	}
	found := mistakesOf(t, Input{Set: []string{"security.allow_plaintext=postgres,redis"}})
	if len(found) != 1 || found[0].Key != "security.allow_plaintext" ||
		!strings.Contains(found[0].Rule, "expected postgres or kafka or registry or store") {
		t.Errorf("%v", found)
	}
}

// exposed is the connections of c that are encrypted, or those that are not, over which a credential goes.
func exposed(c *Config, encrypted bool) []Exposed {
	return slices.DeleteFunc(c.Exposed(), func(e Exposed) bool {
		return !e.Credential || e.Encrypted != encrypted
	})
}

func TestACredentialGoesToAServerThatIsNotVerifiedOnlyWhereThatIsAnException(t *testing.T) {
	authority := servers.AuthorityForTest(t, t.TempDir()).File
	for _, dsn := range []string{"postgres://u:p@db/store?sslmode=require",
		"postgres://u:p@db/store?sslmode=verify-ca",
		"host=127.0.0.1,db user=u password=p sslmode=require sslrootcert=" + authority} {
		given := environ("postgres.dsn=" + dsn)
		found := mistakesOf(t, Input{Environ: given})
		if len(found) != 1 || found[0].Key != keyDSN || !strings.Contains(found[0].Rule, "to db ") ||
			!strings.Contains(found[0].Rule, "security.allow_unverified: [postgres]") {
			t.Errorf("%q gives %v", dsn, found)
		}
		mistakesOf(t, Input{Environ: given, Set: []string{"security.allow_unverified=store",
			"security.allow_plaintext=postgres"}})
	}
	base := []string{"postgres.dsn=postgres://u:p@db/store?sslmode=require",
		"store.base_url=https://shop.example/v1",
		"kafka.brokers=localhost:9093,b:9093", "kafka.tls.enabled=true", "kafka.sasl.username=u",
		"kafka.sasl.password=p", "registry.url=https://schemas"}
	oauth := []string{"kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.token_url=https://tokens/x"}
	for _, test := range []struct {
		settings []string
		wants    []string // connection, hosts
	}{
		{[]string{"kafka.sasl.mechanism=PLAIN", "registry.token=t"}, []string{"postgres db", "kafka b",
			"registry schemas", "store shop.example"}},
		{append(oauth, "registry.username=u", "registry.password=p"), []string{"postgres db", "kafka b",
			"registry schemas", "store shop.example", "kafka tokens"}},
		{[]string{"kafka.sasl.mechanism=SCRAM-SHA-512", "store.base_url=https://127.0.0.1/v1"},
			[]string{"postgres db"}}, // the registry without a login
	} {
		given := slices.Concat(base, test.settings)
		c := load(t, Input{Environ: environ(given...), Set: []string{"security.allow_unverified=" +
			strings.Join(connections, ",")}})
		var exceptions []string
		for _, e := range exposed(c, true) {
			exceptions = append(exceptions, e.Connection+" "+strings.Join(e.Hosts, ","))
		}
		if !slices.Equal(exceptions, test.wants) {
			t.Errorf("%q has the exceptions %q, expected %q", given, exceptions, test.wants)
		}
		verified := load(t, Input{Environ: environ(given...), Set: []string{"security.allow_unverified=postgres"}})
		if all := exposed(verified, true); len(all) != 1 {
			t.Errorf("%q has the exceptions %v without asking for them", given, all)
		}
	}
	for _, good := range []string{"localhost/store?sslmode=require", "db/store?sslmode=verify-full"} {
		for _, e := range exposed(load(t, Input{Environ: environ("postgres.dsn=postgres://u:p@" + good)}), true) {
			t.Errorf("%q: %v", good, e)
		}
	}
	found := mistakesOf(t, Input{Set: []string{"security.allow_unverified=kafka,redis"}})
	if len(found) != 1 || found[0].Key != "security.allow_unverified" {
		t.Errorf("%v", found)
	}
}

func TestAURLWithALoginOrAQueryIsNotShown(t *testing.T) {
	for _, text := range []string{"http://127.0.0.1:8090/v1", "me@example.org", "", "store."} {
		if got := maskURL(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	for _, text := range []string{"http://u:geheim@x/v1", "http://geheim@x/v1", "http://u:1/geheim@x/v1",
		"http://u:1?geheim@x/v1", "http://u:1#geheim@x/v1", "http://u:ge@heim@x/v1", "https://x/v1?key=geheim",
		"u:geheim@b:9092", "https://x/v1#geheim"} {
		if got := maskURL(text); got != rotation.Mask {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestAnAliasOrAKeyThatMayBeASecretIsNotRepeated(t *testing.T) {
	for _, value := range []string{"*geheim", "{{geheim}}", "{[geheim]}"} {
		_, err := Load(Input{File: file(t, "c.yaml", "kafka: {sasl: {password: "+value+"}}")})
		if err == nil || strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), "quotes") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestAStatusServerBeyondLoopbackIsInClearUnlessTLSProtectsIt(t *testing.T) {
	secure := ServerTLS{CertFile: "/x", KeyFile: "/y"}
	for _, test := range []struct {
		http    HTTP
		inClear bool
	}{
		{HTTP{Listen: "127.0.0.1:8080"}, false},
		{HTTP{Listen: "localhost:8080"}, false},
		{HTTP{Listen: "[::1]:8080"}, false},
		{HTTP{Listen: ":8080"}, true},
		{HTTP{Listen: "0.0.0.0:8080"}, true},
		{HTTP{Listen: "status.shop.example:8080"}, true},
		{HTTP{Listen: ":8080", Token: rotation.Literal("0123456789abcdef")}, true},
		{HTTP{Listen: ":8080", TLS: secure}, false},
	} {
		if got := test.http.InClear(); got != test.inClear {
			t.Errorf("%+v is in clear: %v", test.http, got)
		}
	}
}

func TestAnUnknownEnvironmentVariableIsAMistakeUnlessKubernetesSetIt(t *testing.T) {
	found := mistakesOf(t, Input{Environ: []string{"STORESTREAM_STORE_BASE_URL=http://x/v1",
		"STORESTREAM_STORE__API_KYE=geheim"}})
	if len(found) != 2 {
		t.Fatalf("%v, expected two mistakes", found)
	}
	all := fmt.Sprint(found)
	for _, want := range []string{"STORESTREAM_STORE_BASE_URL",
		"nearest known one is store.base_url (in the environment STORESTREAM_STORE__BASE_URL)",
		"STORESTREAM_STORE__API_KEY"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s does not name %s", all, want)
		}
	}
	if strings.Contains(all, "geheim") {
		t.Error("the value of an unknown variable is shown: it may be a misspelled secret")
	}
	load(t, Input{Environ: []string{"STORESTREAM_SERVICE_HOST=10.0.0.1", "STORESTREAM_SERVICE_PORT=8080",
		"STORESTREAM_PORT=tcp://10.0.0.1:8080", "STORESTREAM_PORT_8080_TCP_ADDR=10.0.0.1",
		"STORESTREAM_STATUS_PORT_8080_TCP=x", "STORESTREAM_SERVICE_PORT_HTTP=8080"}})
}

// Reading such a file would wait for ever, or until the memory is gone.
func TestOnlyARegularFileOrAPipeThatSomebodyWritesToIsRead(t *testing.T) {
	dir := t.TempDir()
	fifo, zero, huge := filepath.Join(dir, "Order.avsc"), filepath.Join(dir, "zero"), filepath.Join(dir, "huge")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink("/dev/zero", zero),
		os.WriteFile(huge, make([]byte, 1<<20+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ setting, path, want string }{
		{"", fifo, fifo + ": nothing writes to this pipe"},
		{"", zero, "expected a regular file"},
		{"", huge, "the file is larger than 1048576 bytes"},
		{"", dir, "expected a regular file"},
		{"kafka.tls.enabled=true\nkafka.tls.ca_file=", fifo, "expected a regular file"},
		{"http.tls.key_file=/dev/null\nhttp.tls.cert_file=", fifo, "expected a regular file"},
		{"postgres.dsn=host=127.0.0.1 sslmode=verify-full sslrootcert=", fifo, "expected a regular file"},
		{"postgres.dsn=host=127.0.0.1 sslmode=verify-full sslrootcert=", zero, "expected a regular file"},
		{"postgres.dsn=host=127.0.0.1 passfile=", fifo, "expected a regular file"},
		{"store.api_key=file:", fifo, "expected a regular file"},
	} {
		in := Input{File: test.path}
		if test.setting != "" {
			in = Input{Environ: environ(strings.Split(test.setting+test.path, "\n")...)}
		}
		if _, err := Load(in); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s%s: %v, expected %q", test.setting, test.path, err, test.want)
		}
	}
	load(t, Input{File: os.DevNull})
	linked := filepath.Join(dir, "linked.yaml") // as Kubernetes mounts it
	if err := os.Symlink(file(t, "storestream.yaml", "log: {level: warn}"), linked); err != nil {
		t.Fatal(err)
	}
	if c := load(t, Input{File: linked}); c.Log.Level != "warn" {
		t.Errorf("the level is %q, expected that of the file", c.Log.Level)
	}
}

func TestAConfigurationMayComeFromAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	in := Input{File: fmt.Sprintf("/dev/fd/%d", r.Fd())}
	if _, err := w.WriteString("log: {level: warn}"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if c := load(t, in); c.Log.Level != "warn" {
		t.Errorf("the level is %q, expected what the pipe says", c.Log.Level)
	}
}

func TestAFileThatIsNotAConfigurationSaysWhy(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"store: [", "not YAML"},
		{"store:\n\tbase_url: http://x/v1\n", "not YAML: yaml: line 2: found character that cannot"},
		{"log: {level: info}\nstore:\n  \tbase_url: http://x/v1\n", "not YAML: yaml: line 3"},
		{"store:\n  api_key: @geheim\n", "line 2: found character that cannot start any token"},
		{"- a", "expected one of its keys: store, postgres, kafka"},
		{"\xff\xfes\x00t\x00o\x00r\x00e\x00", "expected one of its keys: store, postgres, kafka"},
		{"store: x", "expected one of its keys: base_url, api_key"},
		{"log: {level: {a: b}}", "found a list or a section"},
		{"log: {level: info, level: warn}", "already defined at line 1"},
		{"log: {level: info}\n---\nlog: {level: warn}", "one YAML document"},
		{"store: &x {a: *x}", "cannot be read"},
		{"store: {api_key: !!int geheim}", "cannot be read"},
		{"postgrs: {dsn: x}", "nearest known one is postgres"},
		{"log: {leve: }", "log.leve (c.yaml:1): unknown key; the nearest known one is log.level"},
		{"kafka: {brokers: [{a: b}]}", "plain values"},
	} {
		_, err := Load(Input{File: file(t, "c.yaml", test.text)})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q gives %v, expected %q", test.text, err, test.want)
		}
	}
	const missing = "/no/such/file.yaml"
	if _, err := Load(Input{File: missing}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing file gives %v", err)
	}
	load(t, Input{File: file(t, "empty.yaml", "# nothing\n")})
	load(t, Input{File: file(t, "sections.yaml", "store:\nkafka: {tls: }\n")})
}

// A list where one value is expected was joined by commas: a password that nobody meant, and no word of it.
func TestAListWhereOneValueIsExpectedIsAMistakeThatDoesNotShowIt(t *testing.T) {
	for key, leaf := range newLoader().leaves {
		list := leaf.Type.Kind() == reflect.Slice || leaf.Type.Kind() == reflect.Map
		for _, given := range []string{"[plant1, plant2]", "[plant1]", "[]"} {
			text, ends := "", ""
			for _, name := range strings.Split(key, ".") {
				text, ends = text+"{"+name+": ", ends+"}"
			}
			_, err := Load(Input{File: file(t, "c.yaml", text+given+ends)})
			want := "expected one value, found a list"
			says := err != nil && strings.Contains(err.Error(), key+" (c.yaml:1): "+want)
			if says == list || err != nil && !list && strings.Contains(err.Error(), "plant") {
				t.Errorf("%s: %s gives %v, expected %q: %v", key, given, err, want, !list)
			}
		}
	}
}

func TestTwoAddressesWhereOneIsExpectedAreAMistake(t *testing.T) {
	for _, key := range []string{"registry.url", "store.base_url"} {
		for _, given := range []string{"http://127.0.0.1,http://127.0.0.1", "http://127.0.0.1:1,http://127.0.0.1:2",
			"http://127.0.0.1/v1,http://127.0.0.1/v1", "http://127.0.0.1,127.0.0.2"} {
			found := mistakesOf(t, Input{Environ: environ(key + "=" + given)})
			if !strings.Contains(fmt.Sprint(found), "expected an http or https URL") {
				t.Errorf("%s=%s: %v", key, given, found)
			}
		}
	}
}

func TestAnchorsAndMergesOfYAMLWork(t *testing.T) {
	c := load(t, Input{File: file(t, "c.yaml", `
resources:
  users: &slow {interval: 5m, overlap: 10m}
  products: *slow
  shipments: {overlap: 1m, <<: *slow}
`)})
	if r := c.Resources["products"]; r.Interval != 5*time.Minute || r.Overlap != 10*time.Minute {
		t.Errorf("products %+v", r)
	}
	if r := c.Resources["shipments"]; r.Interval != 5*time.Minute || r.Overlap != time.Minute {
		t.Errorf("shipments %+v", r)
	}
}

// Else values stay that the file replaces or unsets, such as the key file of another server.
func TestAKeyOfASectionReplacesAMergedOneWithAllThatIsInIt(t *testing.T) {
	c := load(t, Input{File: file(t, "c.yaml", `
resources:
  users: &slow {interval: 5m, overlap: 10m}
  products: {<<: *slow, interval: }
  shipments: {<<: [*slow, {start: 2026-01-31}]}
kafka:
  <<: {sasl: {mechanism: SCRAM-SHA-512, username: &broker "b:9092", password: p}, partitions: 12}
  sasl: {}
  brokers: [*broker]
`)})
	if r := c.Resources["products"]; r.Interval != 30*time.Second || r.Overlap != 10*time.Minute {
		t.Errorf("products %+v", r)
	}
	if r := c.Resources["shipments"]; r.Interval != 5*time.Minute || r.Start == schemas.MinInstant {
		t.Errorf("shipments %+v", r)
	}
	k := c.Kafka
	if k.SASL.Mechanism != "" || k.Partitions != 12 || !slices.Equal(k.Brokers, []string{"b:9092"}) {
		t.Errorf("kafka %+v", k)
	}
}

func TestSecretsComeFromFilesAndAreNeverShown(t *testing.T) {
	password := file(t, "password", "it's \\ secret\n")
	key := file(t, "key", "k3y\r\n")
	c := load(t, Input{Environ: environ("store.api_key=file:"+key, "registry.username=u",
		"registry.password=pa55",
		"postgres.dsn=host=db user=student_ro password=file:"+password)})
	if c.Store.APIKey.Get() != "k3y" {
		t.Errorf("api_key %q, expected the file's text without its newline", c.Store.APIKey.Get())
	}
	if want := `host=db user=student_ro password='it\'s \\ secret'`; c.Postgres.DSN.Get() != want {
		t.Errorf("dsn %q, expected %q", c.Postgres.DSN.Get(), want)
	}
	if e := entry(t, c, "store.api_key"); e.Value != "file:"+key {
		t.Errorf("api_key is shown as %q, expected its file", e.Value)
	}
	if e := entry(t, c, "registry.password"); e.Value != rotation.Mask {
		t.Errorf("registry.password is shown as %q", e.Value)
	}
	withDSN := load(t, Input{Environ: environ("postgres.dsn=postgres://student_ro:d5n@db/store")})
	e := entry(t, withDSN, "postgres.dsn")
	if e.Value != "host=db user=student_ro dbname=store password=******" {
		t.Errorf("postgres.dsn is shown as %q", e.Value)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v", c.Registry, c.Registry), string(asJSON),
		fmt.Sprint(c.Entries())} {
		for _, secret := range []string{"k3y", "pa55", "it's"} {
			if strings.Contains(shown, secret) {
				t.Errorf("%q is shown in %s", secret, shown)
			}
		}
	}
}

// net/http refuses a header with a control character, and names neither key nor file.
func TestASecretThatCannotBeSentIsRefusedAndItsFileNamed(t *testing.T) {
	const base = "kafka.tls.enabled=true\n"
	settings := map[string]string{ // by key, what else it takes
		"store.api_key": "", "registry.token": "", "http.token": "",
		"registry.password":   "registry.username=u",
		"kafka.sasl.password": base + "kafka.sasl.mechanism=PLAIN\nkafka.sasl.username=u",
		"postgres.dsn":        "",
	}
	bad := []string{"geheim-geheim-geheim\x00\x00", "\ufeffgeheim-geheim-geheim",
		"\xff\xfeg\x00e\x00h\x00e\x00i\x00m\x00",
		"geheim-geheim-geheim\nzwei"}
	for key, with := range settings {
		texts := append([]string{"geheim-geheim-geheim\a"}, bad...)
		switch key {
		case "kafka.sasl.password", "postgres.dsn":
			texts = bad
		case "store.api_key", "registry.token": // which are sent as they are
			texts = append(texts, "geheim-gehéim-geheim", "geheim\u200b-geheim-geheim")
		}
		const good = "first-first-first"
		path := file(t, "secret", good)
		value := "file:" + path
		if key == "postgres.dsn" {
			value = "host=127.0.0.1 user=u password=" + value
		}
		in := Input{Environ: environ(append(strings.Fields(with), key+"="+value)...)}
		c := load(t, in)
		secret := map[string]rotation.Secret{"store.api_key": c.Store.APIKey, "registry.token": c.Registry.Token,
			"http.token": c.HTTP.Token, "registry.password": c.Registry.Password, "postgres.dsn": c.Postgres.DSN,
			"kafka.sasl.password": c.Kafka.SASL.Password}[key]
		was := secret.Get()
		for _, text := range texts {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			now, wrong := secret.Current()
			_, start := Load(in)
			for when, err := range map[string]error{"while it runs": wrong, "at the start": start} {
				if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "geheim") {
					t.Errorf("%s holds %q %s: %v, expected that names %s", key, text, when, err, path)
				}
			}
			if start != nil && !strings.Contains(start.Error(), key) {
				t.Errorf("%v, expected that it names %s", start, key)
			}
			if now != was {
				t.Errorf("%s is %q, expected what it was before", key, now)
			}
		}
	}
}

func TestADSNIsShownWithoutItsPassword(t *testing.T) {
	for _, test := range []struct{ dsn, shown string }{
		{"", ""},
		{"file:/run/dsn", "file:/run/dsn"},
		{"postgres://u:p%40ss@h:5432/db?sslmode=disable",
			"host=h port=5432 user=u dbname=db sslmode=disable password=******"},
		{"postgres://u@h/db?password=geheim", "host=h user=u dbname=db password=******"},
		{"postgresql://u@h/db", "host=h user=u dbname=db"},
		{"postgres://u:ge heim@h:x/db", "******"},
		{"host=h user=u password=geheim dbname=d", "host=h user=u dbname=d password=******"},
		{`host=h password = 'ge\'heim x' user=u`, "host=h user=u password=******"},
		{"host=h pasword=geheim", "******"},
		{"postgres://u:ge/heim@h/db", "******"},
		{"host=h password='geheim", "******"},
		{"geheim", "******"},
	} {
		if got := maskDSN(test.dsn); got != test.shown {
			t.Errorf("%q is shown as %q, expected %q", test.dsn, got, test.shown)
		}
	}
}

func TestADSNIsWhatItsFileHoldsInBothForms(t *testing.T) {
	mount := servers.MountForTest(t, t.TempDir(), map[string]string{"dsn": "postgres://u:first@127.0.0.1/db\n",
		"password": "first\n"})
	whole, password := mount.Path("dsn"), mount.Path("password")
	inFile := load(t, Input{Set: []string{"postgres.dsn=file:" + whole}})
	mount.Swap(map[string]string{"dsn": "postgres://u:second@127.0.0.1/db\n", "password": "first\n"})
	if got := inFile.Postgres.DSN.Get(); got != "host=127.0.0.1 user=u dbname=db password=second" {
		t.Errorf("the DSN is %q, expected what its file holds", got)
	}
	moved := "host=127.0.0.1 user=u password=file:" + password
	mount.Swap(map[string]string{"dsn": moved, "password": "first\n"})
	both := load(t, Input{Set: []string{"postgres.dsn=file:" + whole}})
	alone := load(t, Input{Set: []string{"postgres.dsn=host=127.0.0.1 user=u password=file:" + password}})
	mount.Swap(map[string]string{"dsn": moved, "password": "third"})
	for _, c := range []*Config{both, alone} {
		if got := c.Postgres.DSN.Get(); got != "host=127.0.0.1 user=u password=third" {
			t.Errorf("the DSN is %q, expected the password that its file holds", got)
		}
	}
}
