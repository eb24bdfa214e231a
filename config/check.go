package config

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/storestream/storestream/schemas"
)

const (
	keyDSN = "postgres.dsn"

	minInterval      = 100 * time.Millisecond
	minSweep         = time.Minute
	maxTopicPrefix   = 200 // a topic's name has at most 249 characters
	maxBrokerMessage = "expected host:port, or a list of them"
)

// topicName is what Kafka allows in a topic's name.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

// resolve reads the secrets that are given as files.
func (l *loader) resolve(c *Config) {
	for key, secret := range map[string]*Secret{
		"store.api_key": &c.Store.APIKey, keyDSN: &c.Postgres.DSN, "kafka.sasl.password": &c.Kafka.SASL.Password,
		"registry.password": &c.Registry.Password,
	} {
		value, err := secret.resolve()
		if err == nil && key == keyDSN {
			value, err = withPassword(value)
		}
		if err != nil {
			l.broken(key, fmt.Sprintf("the secret cannot be read from its file: %v", err))
		}
		*secret = value
	}
}

// pace turns resources whose Postgres is not there to REST, and gives each the interval and overlap of the source that it is really
// read from. Without a DSN a value that equals the Postgres default counts as not set: in a copy of example.yaml every default is written
// out, and one second is not what anyone wants of whole days over REST. Who does want it says `source: rest`.
func (l *loader) pace(c *Config) {
	interval, overlap := pace(Postgres)
	for _, d := range schemas.Declared() {
		r, path := c.Resources[d.Name], "resources."+d.Name
		from, fallback := fromDefault, false
		if r.Source == Postgres && d.Table != "" && c.Postgres.DSN == "" && !l.wrong[keyDSN] {
			r.Source, fallback, from = REST, true, "because postgres.dsn is empty"
			l.settings[path+".source"] = setting{REST, from}
		}
		if r.Source == REST {
			if unset := l.unset(path + ".interval"); unset || (fallback && r.Interval == interval) {
				r.Interval, _ = pace(REST)
				l.settings[path+".interval"] = setting{durationText(r.Interval), from}
			}
			if unset := l.unset(path + ".overlap"); unset || (fallback && r.Overlap == overlap) {
				_, r.Overlap = pace(REST)
				l.settings[path+".overlap"] = setting{durationText(r.Overlap), from}
			}
		}
		c.Resources[d.Name] = r
	}
}

func (l *loader) unset(key string) bool { return l.settings[key].from == fromDefault }

// require is a rule: what key was expected to be, unless ok.
func (l *loader) require(key string, ok bool, rule string) {
	if !ok {
		l.broken(key, rule)
	}
}

func (l *loader) oneOf(key, value string, allowed ...string) {
	names := strings.Join(allowed, " or ")
	if allowed[0] == "" {
		names = "nothing" + names
	}
	l.require(key, slices.Contains(allowed, value), "expected "+names)
}

// check holds c against every rule.
func (l *loader) check(c *Config) {
	l.checkSources(c)
	l.checkKafka(c)
	l.checkResources(c)
	l.require("registry.url", isHTTP(c.Registry.URL), "expected an http or https URL without credentials (registry.username, registry.password), such as http://127.0.0.1:8081")
	l.require("registry.username", c.Registry.Password == "" || c.Registry.Username != "", "registry.password is set: expected a name with it")
	if dir := c.Schemas.Dir; dir != "" {
		info, err := os.Stat(dir)
		l.require("schemas.dir", err == nil && info.IsDir(), "expected a folder of .avsc files, or nothing for the built-in schemas")
	}
	l.require("sweep.interval", c.Sweep.Interval == 0 || c.Sweep.Interval >= minSweep, "expected 1m or more, or 0s to sweep only on request")
	l.oneOf("sweep.deletes", c.Sweep.Deletes, Report, Tombstone)
	l.require("http.listen", isHostPort(c.HTTP.Listen, 0), "expected host:port, such as 127.0.0.1:8080, or :8080 for every address")
	l.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	l.oneOf("log.format", c.Log.Format, "json", "console")
}

func (l *loader) checkSources(c *Config) {
	l.require("store.base_url", isHTTP(c.Store.BaseURL), "expected an http or https URL with the service's version segment, such as http://127.0.0.1:8090/v1")
	c.Store.BaseURL = strings.TrimRight(c.Store.BaseURL, "/")
	l.require("store.api_key", !strings.ContainsAny(string(c.Store.APIKey), "\r\n"), "expected a key of one line")
	rate := c.Store.MaxRequestsPerSecond
	l.require("store.max_requests_per_second", rate > 0 && !math.IsInf(rate, 0), "expected a number above 0")
	l.require("store.request_timeout", c.Store.RequestTimeout >= minInterval, "expected 100ms or more")
	l.require("postgres.max_connections", c.Postgres.MaxConnections >= 1, "expected 1 or more")
	if c.Postgres.DSN != "" {
		_, err := pgconn.ParseConfig(string(c.Postgres.DSN)) // its error may hold the DSN, so it is not shown
		l.require(keyDSN, err == nil, "not a connection string: expected postgres://student_ro:PASSWORD@host:5432/database, "+
			"or host=... port=... user=... password=... dbname=...")
	}
}

func (l *loader) checkKafka(c *Config) {
	k := c.Kafka
	l.require("kafka.brokers", len(k.Brokers) > 0, maxBrokerMessage)
	for _, broker := range k.Brokers {
		l.require("kafka.brokers", isHostPort(broker, 1), maxBrokerMessage)
	}
	l.require("kafka.topic_prefix", topicName.MatchString(k.TopicPrefix) && len(k.TopicPrefix) <= maxTopicPrefix,
		"expected letters, digits, dots, dashes and underscores, 200 at most")
	l.require("kafka.partitions", k.Partitions >= 1, "expected 1 or more")
	l.require("kafka.replication_factor", k.ReplicationFactor == -1 || k.ReplicationFactor >= 1, "expected 1 or more, or -1 for the broker's default")
	l.require("kafka.group", k.Group != "", "expected a name")
	l.checkTLS(k.TLS)
	l.oneOf("kafka.sasl.mechanism", k.SASL.Mechanism, "", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
	if k.SASL.Mechanism == "" {
		l.require("kafka.sasl.mechanism", k.SASL.Username == "" && k.SASL.Password == "",
			"a user name or password is set: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
		return
	}
	l.require("kafka.sasl.username", k.SASL.Username != "", "a mechanism is set: expected the user's name")
	l.require("kafka.sasl.password", k.SASL.Password != "", "a mechanism is set: expected the user's password")
}

func (l *loader) checkTLS(t TLS) {
	if !t.Enabled {
		l.require("kafka.tls.enabled", t.CAFile == "" && t.CertFile == "" && t.KeyFile == "" && !t.InsecureSkipVerify,
			"another key of kafka.tls is set: expected true")
		return
	}
	l.require("kafka.tls.key_file", t.CertFile == "" || t.KeyFile != "", "a certificate is set: expected the file of its key")
	l.require("kafka.tls.cert_file", t.KeyFile == "" || t.CertFile != "", "a key is set: expected the file of its certificate")
	if key, err := t.try(); err != nil {
		l.broken(key, err.Error())
	}
}

func (l *loader) checkResources(c *Config) {
	for _, d := range schemas.Declared() {
		r, path := c.Resources[d.Name], "resources."+d.Name
		if d.Table != "" {
			l.oneOf(path+".source", r.Source, Postgres, REST)
		} else {
			l.require(path+".source", r.Source == REST, "expected rest: the database offers orders and order_items only")
		}
		l.require(path+".interval", r.Interval >= minInterval, "expected 100ms or more")
		l.require(path+".overlap", r.Overlap >= 0, "expected 0s or more")
	}
	if len(c.Enabled()) == 0 && len(l.mistakes) == 0 {
		l.mistake(Mistake{Key: "resources", Rule: "none is enabled: expected at least one with enabled: true"})
	}
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

func isHostPort(s string, lowest int) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || (host == "" && lowest > 0) {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= lowest && n <= 65535
}
