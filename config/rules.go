package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/storestream/storestream/schemas"
)

const (
	keyDSN = "postgres.dsn"

	minInterval    = 100 * time.Millisecond
	minSweep       = time.Minute
	minSweepMemory = 16 * MiB
	maxSweepMemory = 1024 * GiB
	minPollMemory  = MiB
	maxPollMemory  = 1024 * GiB
	minTransaction = 10 * time.Second
	maxTransaction = 15 * time.Minute
	minSession     = time.Second
	maxSession     = 5 * time.Minute
	maxTopicPrefix = 200 // a topic's name has at most 249 characters
)

// topicName is what Kafka allows in a topic's name.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

// checkRules holds c against every rule.
func checkRules(c *Config, m *mistakes) {
	checkSources(c, m)
	checkKafka(c.Kafka, m)
	checkResources(c, m)
	m.require("registry.url", isHTTP(c.Registry.URL), "expected an http or https URL without credentials "+
		"(registry.username, registry.password), such as http://127.0.0.1:8081")
	m.require("registry.username", c.Registry.Password == "" || c.Registry.Username != "",
		"registry.password is set: expected a name with it")
	if dir := c.Schemas.Dir; dir != "" {
		info, err := os.Stat(dir)
		m.require("schemas.dir", err == nil && info.IsDir(),
			"expected a folder of .avsc files, or nothing for the built-in schemas")
	}
	m.require("poll.memory", c.Poll.Memory >= minPollMemory && c.Poll.Memory <= maxPollMemory,
		"expected 1MiB to 1024GiB: it is taken by each resource, 24 bytes a row that it has to remember")
	m.require("sweep.interval", c.Sweep.Interval == 0 || c.Sweep.Interval >= minSweep,
		"expected 1m or more, or 0s to sweep only on request")
	m.oneOf("sweep.deletes", c.Sweep.Deletes, Report, Tombstone)
	m.require("sweep.memory", c.Sweep.Memory >= minSweepMemory && c.Sweep.Memory <= maxSweepMemory,
		"expected 16MiB to 1024GiB")
	m.require("http.listen", isHostPort(c.HTTP.Listen, 0),
		"expected host:port, such as 127.0.0.1:8080, or :8080 for every address")
	m.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	m.oneOf("log.format", c.Log.Format, "json", "console")
}

func checkSources(c *Config, m *mistakes) {
	m.require("store.base_url", isHTTP(c.Store.BaseURL),
		"expected an http or https URL with the service's version segment, such as http://127.0.0.1:8090/v1")
	m.require("store.api_key", !strings.ContainsAny(string(c.Store.APIKey), "\r\n"),
		"expected a key of one line")
	rate := c.Store.MaxRequestsPerSecond
	m.require("store.max_requests_per_second", rate > 0 && !math.IsInf(rate, 0), "expected a number above 0")
	m.require("store.request_timeout", c.Store.RequestTimeout >= minInterval, "expected 100ms or more")
	m.oneOf("store.count", c.Store.Count, Exact, Estimate, Ignore)
	m.require("postgres.max_connections", c.Postgres.MaxConnections >= 1, "expected 1 or more")
	if c.Postgres.DSN != "" {
		_, err := pgconn.ParseConfig(string(c.Postgres.DSN)) // its error may hold the DSN, so nobody sees it
		m.require(keyDSN, err == nil, "not a connection string: expected "+
			"postgres://student_ro:PASSWORD@host:5432/database, "+
			"or host=... port=... user=... password=... dbname=...")
	}
}

func checkKafka(k Kafka, m *mistakes) {
	brokers := len(k.Brokers) > 0
	for _, broker := range k.Brokers {
		brokers = brokers && isHostPort(broker, 1)
	}
	m.require("kafka.brokers", brokers, "expected host:port, or a list of them")
	m.require("kafka.topic_prefix", topicName.MatchString(k.TopicPrefix) && len(k.TopicPrefix) <= maxTopicPrefix,
		"expected letters, digits, dots, dashes and underscores, 200 at most")
	m.require("kafka.partitions", k.Partitions >= 1, "expected 1 or more")
	m.require("kafka.replication_factor", k.ReplicationFactor == -1 || k.ReplicationFactor >= 1,
		"expected 1 or more, or -1 for the broker's default")
	m.require("kafka.group", k.Group != "", "expected a name")
	m.require("kafka.transaction_timeout",
		k.TransactionTimeout >= minTransaction && k.TransactionTimeout <= maxTransaction,
		"expected 10s to 15m, and no more than transaction.max.timeout.ms of the brokers' settings")
	m.require("kafka.session_timeout", k.SessionTimeout >= minSession && k.SessionTimeout <= maxSession,
		"expected 1s to 5m, within group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers' "+
			"settings")
	checkTLS(k.TLS, m)
	m.oneOf("kafka.sasl.mechanism", k.SASL.Mechanism, "", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
	if k.SASL.Mechanism == "" {
		m.require("kafka.sasl.mechanism", k.SASL.Username == "" && k.SASL.Password == "",
			"a user name or password is set: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
		return
	}
	m.require("kafka.sasl.username", k.SASL.Username != "", "a mechanism is set: expected the user's name")
	m.require("kafka.sasl.password", k.SASL.Password != "", "a mechanism is set: expected the user's password")
}

// checkTLS tries the files that t names.
func checkTLS(t TLS, m *mistakes) {
	if !t.Enabled {
		m.require("kafka.tls.enabled", t == TLS{}, "another key of kafka.tls is set: expected true")
		return
	}
	m.require("kafka.tls.key_file", t.CertFile == "" || t.KeyFile != "",
		"a certificate is set: expected the file of its key")
	m.require("kafka.tls.cert_file", t.KeyFile == "" || t.CertFile != "",
		"a key is set: expected the file of its certificate")
	if t.CAFile != "" {
		if pem, err := os.ReadFile(t.CAFile); err != nil {
			m.value("kafka.tls.ca_file", fmt.Sprintf("the file cannot be read: %v", fileError(err)))
		} else if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			m.value("kafka.tls.ca_file", "expected certificates in PEM form, found none")
		}
	}
	if t.CertFile != "" && t.KeyFile != "" {
		if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
			m.value("kafka.tls.cert_file", fmt.Sprintf("certificate and key cannot be used: %v", err))
		}
	}
}

func checkResources(c *Config, m *mistakes) {
	var inDatabase []string
	for _, d := range schemas.Declared() {
		if d.Table != "" {
			inDatabase = append(inDatabase, d.Name)
		}
	}
	for _, d := range schemas.Declared() {
		r, path := c.Resources[d.Name], "resources."+d.Name
		if d.Table != "" {
			m.oneOf(path+".source", r.Source, Postgres, REST)
		} else {
			m.require(path+".source", r.Source == REST,
				"expected rest: the database offers only "+strings.Join(inDatabase, ", "))
		}
		m.require(path+".interval", r.Interval >= minInterval, "expected 100ms or more")
		m.require(path+".overlap", r.Overlap >= 0, "expected 0s or more")
	}
	if len(c.Enabled()) == 0 && len(m.found) == 0 {
		m.add(Mistake{Key: "resources", Rule: "none is enabled: expected at least one with enabled: true"})
	}
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

func isHostPort(s string, lowest int) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || (host == "" && lowest > 0) {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= lowest && n <= 65535
}
