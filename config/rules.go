package config

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/schemas"
)

const (
	keyDSN      = "postgres.dsn"
	keyPolicies = "privacy.fields"

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
	minEraseWithin = time.Hour // compaction reads a partition's log each time
	maxTopicPrefix = 200       // a topic's name has at most 249 characters
	minRate        = 0.01      // requests a second: below it, a poll of a few pages takes an hour
	maxAhead       = 366 * 24 * time.Hour
)

// topicName has the characters that Kafka allows in the name of a topic.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

// settingName has the form of the name of a topic's setting.
var settingName = regexp.MustCompile(`^[a-z][a-z.]*$`)

// checkRules checks c by every rule.
func checkRules(c *Config, m *mistakes) {
	checkSources(c, m)
	checkKafka(c.Kafka, m)
	checkResources(c, m)
	checkSecurity(c, m)
	for key, secret := range c.rotated() {
		if err := checkSecret(key, secret.Get()); err != nil {
			m.value(key, err.Error())
		}
	}
	m.require("registry.url", isHTTP(c.Registry.URL), "expected an http or https URL without credentials "+
		"(registry.username, registry.password), such as http://127.0.0.1:8081")
	m.require("registry.username", !c.Registry.Password.IsSet() || c.Registry.Username != "",
		"registry.password is set: expected a name with it")
	m.require("registry.token",
		!c.Registry.Token.IsSet() || c.Registry.Username == "" && !c.Registry.Password.IsSet(),
		"registry.username or registry.password is set: expected one way to log in")
	checkHTTPTLS("registry.tls", c.Registry.TLS, "registry.url", c.Registry.URL, m)
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
	checkPrivacy(c, m)
	checkHTTP(c.HTTP, m)
	m.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	m.oneOf("log.format", c.Log.Format, "json", "console")
}

func checkHTTP(h HTTP, m *mistakes) {
	m.require("http.listen", isHostPort(h.Listen, 0),
		"expected host:port, such as 127.0.0.1:8080, or :8080 for every address")
	for _, host := range h.Hosts {
		_, err := netip.ParseAddr(host)
		m.require("http.hosts", err == nil || !strings.ContainsAny(host, ":/[] "),
			"expected names or addresses without scheme and port, such as status.shop.example, or * for any")
	}
	checkTLS("http.tls", TLS{CertFile: h.TLS.CertFile, KeyFile: h.TLS.KeyFile}, m)
}

func checkSources(c *Config, m *mistakes) {
	m.require("store.base_url", isHTTP(c.Store.BaseURL),
		"expected an http or https URL with the service's version segment, such as http://127.0.0.1:8090/v1")
	checkHTTPTLS("store.tls", c.Store.TLS, "store.base_url", c.Store.BaseURL, m)
	rate := c.Store.MaxRequestsPerSecond
	m.require("store.max_requests_per_second", rate >= minRate && !math.IsInf(rate, 0),
		"expected a number above 0, and 0.01 (36 requests an hour) at least")
	m.require("store.request_timeout", c.Store.RequestTimeout >= minInterval, "expected 100ms or more")
	m.oneOf("store.dialect.days", c.Store.Dialect.Days, Auto, "utc", "other")
	m.oneOf("store.dialect.updated_to", c.Store.Dialect.UpdatedTo, Auto, "whole", "midnight")
	m.oneOf("store.dialect.created_to", c.Store.Dialect.CreatedTo, Auto, "whole", "midnight")
	m.oneOf("store.dialect.count", c.Store.Dialect.Count, Auto, "estimate", "ignore")
	m.require("postgres.max_connections", c.Postgres.MaxConnections >= 1, "expected 1 or more")
}

func checkKafka(k Kafka, m *mistakes) {
	brokers := len(k.Brokers) > 0
	for _, broker := range k.Brokers {
		brokers = brokers && isHostPort(broker, 1)
	}
	m.require("kafka.brokers", brokers, "expected host:port, or a list of them")
	m.require("kafka.topic_prefix", topicName.MatchString(k.TopicPrefix) && len(k.TopicPrefix) <= maxTopicPrefix,
		"expected letters, digits, dots, dashes and underscores, 200 at most")
	m.require("kafka.topic_prefix", !strings.HasPrefix(k.TopicPrefix, "__"),
		"so begin the names of Kafka's own topics: expected no two underscores at the beginning")
	m.require("kafka.partitions", k.Partitions >= 1, "expected 1 or more")
	m.require("kafka.replication_factor", k.ReplicationFactor == -1 || k.ReplicationFactor >= 1,
		"expected 1 or more, or -1 for the broker's default")
	m.require("kafka.group", k.Group != "" && isPlain(k.Group),
		"expected a name, of characters that can be seen and spaces between them")
	m.require("kafka.transaction_timeout",
		k.TransactionTimeout >= minTransaction && k.TransactionTimeout <= maxTransaction,
		"expected 10s to 15m, and no more than transaction.max.timeout.ms of the brokers' settings")
	m.require("kafka.session_timeout", k.SessionTimeout >= minSession && k.SessionTimeout <= maxSession,
		"expected 1s to 5m, within group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers' "+
			"settings")
	m.require("kafka.erase_within", k.EraseWithin == 0 || k.EraseWithin >= minEraseWithin,
		"expected 1h or more, or 0s to leave it to the brokers")
	if k.TLS.Enabled {
		checkTLS("kafka.tls", k.TLS.TLS, m)
	} else {
		m.require("kafka.tls.enabled", k.TLS == KafkaTLS{}, "another key of kafka.tls is set: expected true")
	}
	m.oneOf("kafka.compression", k.Compression, "none", "gzip", "snappy", "lz4", "zstd")
	checkTopicSettings(k.TopicSettings, m)
	checkSASL(k.SASL, m)
}

// fixedSettings has the settings of topics that lose rows with another value, and the reason.
var fixedSettings = map[string]string{
	"cleanup.policy":                      "compacted topics keep every row only as they are",
	"message.timestamp.type":              "a takeover goes by the times that records carry",
	"message.timestamp.before.max.ms":     "records carry the rows' updated_at, years ago",
	"message.timestamp.difference.max.ms": "records carry the rows' updated_at, years ago",
	"retention.ms":                        "requests wait for a week, and rows for ever",
	"retention.bytes":                     "requests wait for a week, and rows for ever",
	"max.compaction.lag.ms":               "kafka.erase_within sets it",
}

func checkTopicSettings(settings []string, m *mistakes) {
	const key = "kafka.topic_settings"
	set := map[string]bool{}
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		m.require(key, ok && value != "" && settingName.MatchString(name),
			"expected name=value, or a list of them, such as segment.bytes=52428800")
		m.require(key, fixedSettings[name] == "", name+" is not to be set here: "+fixedSettings[name])
		m.require(key, !set[name], name+" is set twice")
		set[name] = true
	}
}

func checkSASL(s SASL, m *mistakes) {
	const mechanisms = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
	m.oneOf("kafka.sasl.mechanism", s.Mechanism, "", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAuthBearer)
	password := s.Username != "" || s.Password.IsSet()
	token := s.TokenURL != "" || s.ClientID != "" || s.ClientSecret.IsSet() || len(s.Scopes) > 0 ||
		s.TokenTLS != TLS{}
	switch s.Mechanism {
	case "":
		m.require("kafka.sasl.mechanism", !password && !token,
			"another key of kafka.sasl is set: expected "+mechanisms)
	case OAuthBearer:
		m.require("kafka.sasl.mechanism", !password,
			"OAUTHBEARER takes no username and password: expected neither")
		m.require("kafka.sasl.token_url", isHTTP(s.TokenURL),
			"expected the https URL of a token endpoint, without credentials and query")
		m.require("kafka.sasl.client_id", s.ClientID != "",
			"the mechanism is OAUTHBEARER: expected the client's id")
		m.require("kafka.sasl.client_secret", s.ClientSecret.IsSet(),
			"the mechanism is OAUTHBEARER: expected the client's secret")
		checkHTTPTLS("kafka.sasl.token_tls", s.TokenTLS, "kafka.sasl.token_url", s.TokenURL, m)
	default:
		m.require("kafka.sasl.mechanism", !token, "token_url, client_id, client_secret, scopes or token_tls "+
			"is set: expected OAUTHBEARER, or none of them")
		m.require("kafka.sasl.username", s.Username != "", "a mechanism is set: expected the user's name")
		m.require("kafka.sasl.password", s.Password.IsSet(), "a mechanism is set: expected the user's password")
	}
}

// checkTLS tries the files in t.
func checkTLS(section string, t TLS, m *mistakes) {
	_, err := t.Files(section).Config()
	if wrong, ok := errors.AsType[*tlsfile.FileError](err); ok {
		m.value(section+"."+wrong.Key, wrong.Err.Error())
	}
}

// checkHTTPTLS checks t by its address: the scheme shows whether there is TLS at all.
func checkHTTPTLS(section string, t TLS, addressKey, address string, m *mistakes) {
	if strings.HasPrefix(address, "https:") {
		checkTLS(section, t, m)
		return
	}
	const rule = "there is no TLS with this address: expected nothing here, or an https URL in "
	m.require(section+".ca_file", t.CAFile == "", rule+addressKey)
	m.require(section+".cert_file", t.CertFile == "", rule+addressKey)
	m.require(section+".key_file", t.KeyFile == "", rule+addressKey)
	m.require(section+".insecure_skip_verify", !t.InsecureSkipVerify, rule+addressKey)
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
		now := time.Now().UTC()
		m.require(path+".start", r.Start.Before(now.Add(maxAhead)), "nothing is published before: expected a day "+
			"no later than a year from now, which is "+now.Format(time.DateOnly)+" by this machine's clock")
	}
	if len(c.Enabled()) == 0 && len(m.found) == 0 {
		m.add(Mistake{Key: "resources", Rule: "none is enabled: expected at least one with enabled: true"})
	}
}

// isPlain reports whether every character of s is visible and does not change how others look.
func isPlain(s string) bool {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	return utf8.ValidString(s) && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, hidden)
}

// isHTTP reports whether s is one HTTP address. url.Parse takes two addresses with a comma between them for
// one host with a comma.
func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		!strings.Contains(u.Host, ",") && strings.Count(s, "://") == 1 &&
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
