package config

import (
	"encoding/hex"
	"errors"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/schemas"
)

const (
	keyDSN     = "postgres.dsn"
	keyPrivacy = "privacy.key"

	maxAhead = 366 * 24 * time.Hour
)

var (
	// topicPrefix has the characters that Kafka allows in the name of a topic, which has 249 at most.
	topicPrefix = regexp.MustCompile(`^[a-zA-Z0-9._-]{0,200}$`)
	// settingName has the form of the name of a topic's setting.
	settingName = regexp.MustCompile(`^[a-z][a-z.]*$`)
)

// checkRules checks c by every rule.
func checkRules(c *Config, l *loader) {
	l.require("store.base_url", isHTTP(c.Store.BaseURL),
		"expected an http or https URL with the service's version segment, such as http://127.0.0.1:8090/v1")
	l.require("registry.url", isHTTP(c.Registry.URL), "expected an http or https URL without credentials "+
		"(registry.username, registry.password), such as http://127.0.0.1:8081")
	l.require("registry.username", !c.Registry.Password.IsSet() || c.Registry.Username != "",
		"registry.password is set: expected a name with it")
	l.require("registry.token",
		!c.Registry.Token.IsSet() || c.Registry.Username == "" && !c.Registry.Password.IsSet(),
		"registry.username or registry.password is set: expected one way to log in")
	openTLS(c, l)
	checkKafka(c.Kafka, l)
	checkSASL(c.Kafka.SASL, l)
	checkResources(c, l)
	checkSecurity(c, l)
	checkSchemas(c, l)
	l.require("http.listen", isHostPort(c.HTTP.Listen, 0),
		"expected host:port, such as 127.0.0.1:8080, or :8080 for every address")
	for _, host := range c.HTTP.Hosts {
		_, err := netip.ParseAddr(host)
		l.require("http.hosts", err == nil || !strings.ContainsAny(host, ":/[] "),
			"expected names or addresses without scheme and port, such as status.shop.example, or * for any")
	}
}

func checkKafka(k Kafka, l *loader) {
	wrong := func(broker string) bool { return !isHostPort(broker, 1) }
	l.require("kafka.brokers", len(k.Brokers) > 0 && !slices.ContainsFunc(k.Brokers, wrong),
		"expected host:port, or a list of them")
	l.require("kafka.topic_prefix", topicPrefix.MatchString(k.TopicPrefix) &&
		!strings.HasPrefix(k.TopicPrefix, "__"), "expected letters, digits, dots, dashes and underscores, 200 at "+
		"most, and not two underscores first, as in the names of Kafka's own topics")
	for _, name := range slices.Sorted(maps.Keys(k.TopicSettings)) {
		const key = "kafka.topic_settings"
		l.require(key, k.TopicSettings[name] != "" && settingName.MatchString(name),
			"expected name=value, such as segment.bytes=52428800")
		l.require(key, fixedSettings[name] == "", name+" is not to be set here: "+fixedSettings[name])
	}
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

// checkSASL checks that each mechanism has its settings, and no others, because they would do nothing.
func checkSASL(s SASL, l *loader) {
	const withAny = "expected a value if kafka.sasl.mechanism is set, else none"
	const withToken = "expected a value if kafka.sasl.mechanism is " + OAuthBearer + ", else none"
	login, token := s.Mechanism != "", s.Mechanism == OAuthBearer
	l.require("kafka.sasl.username", (s.Username != "") == login, withAny)
	l.require("kafka.sasl.password", s.Password.IsSet() == login, withAny)
	l.require("kafka.sasl.token_url", (s.TokenURL != "") == token, withToken)
	l.require("kafka.sasl.parameters", len(s.Parameters) == 0 || token, withToken)
	own := []string{"grant_type", "client_id", "client_secret", "extension_auth"}
	for name, value := range s.Parameters {
		l.require("kafka.sasl.parameters", value != "" && !slices.Contains(own, name),
			"expected name=value, such as audience=kafka; storestream sets "+strings.Join(own, ", "))
	}
	l.require("kafka.sasl.token_url", !token || isHTTP(s.TokenURL),
		"expected the https URL of a token endpoint, without credentials and query")
}

// openTLS opens the files of TLS. Without TLS there must be none: they would be believed and do nothing. The
// endpoint of tokens often is another company's, so for it the system's authorities count as well.
func openTLS(c *Config, l *loader) {
	open := func(client string, files tlsfile.Files, set *rotation.Set) {
		opened, err := files.Open(set)
		if wrong, ok := errors.AsType[*tlsfile.FileError](err); ok {
			l.mistake(files.Section+"."+wrong.Key, wrong.Err.Error())
		}
		c.tls[client] = opened
	}
	sections := map[string]TLS{"kafka": c.Kafka.TLS.TLS, "registry": c.Registry.TLS, "store": c.Store.TLS}
	used := map[string]bool{}
	for _, p := range c.peers() {
		if !p.Encrypted {
			continue
		}
		used[p.Connection] = true
		client, t := p.Connection, sections[p.Connection]
		if p.Key == keyTokenURL {
			client = TokenEndpoint
		}
		open(client, tlsfile.Files{Section: p.Connection + ".tls", CAFile: t.CAFile, CertFile: t.CertFile,
			KeyFile: t.KeyFile, AlsoSystem: client == TokenEndpoint,
			InsecureSkipVerify: slices.Contains(c.Security.AllowUnverified, p.Connection)}, l.files)
	}
	for connection, t := range sections {
		l.require(connection+".tls", t == (TLS{}) || used[connection], "the connection has no TLS: expected "+
			"nothing here, or https in its URL, or for brokers kafka.tls.enabled")
	}
	open("http", tlsfile.Files{Section: "http.tls", CertFile: c.HTTP.TLS.CertFile,
		KeyFile: c.HTTP.TLS.KeyFile}, nil) // the status server follows them itself
}

func checkResources(c *Config, l *loader) {
	now := schemas.InstantOf(time.Now())
	for _, d := range schemas.Declared() {
		r, path := c.Resources[d.Name], "resources."+d.Name
		sources := []string{REST}
		if d.Table != "" {
			sources = append(sources, Postgres)
		}
		l.require(path+".source", slices.Contains(sources, r.Source), "expected "+strings.Join(sources, " or "))
		l.require(path+".start", r.Start < now.Add(maxAhead), "nothing is published before: expected a day "+
			"no later than a year from now, which is "+now.Time().Format(time.DateOnly)+" by this machine's clock")
	}
	l.require("resources", len(c.Enabled()) > 0 || len(l.found) > 0,
		"none is enabled: expected at least one with enabled: true")
}

// checkSchemas loads the schemas and applies the policies to them.
func checkSchemas(c *Config, l *loader) {
	p := schemas.Privacy{Fields: c.Privacy.Fields, FullRejects: c.DeadLetters.Rows == "full"}
	key, err := hex.DecodeString(c.Privacy.Key.Get())
	different := slices.Compact(slices.Sorted(slices.Values(key)))
	// Who guesses the key has the values. Not one in 10^16 random keys repeats its bytes so often.
	random := err == nil && len(key) == len(p.Key) && len(different) >= len(key)/2
	copy(p.Key[:], key)
	l.require(keyPrivacy, random || !c.Privacy.Key.IsSet() && !p.Hashes(), "expected 64 hexadecimal digits "+
		"that do not repeat a few bytes, as `openssl rand -hex 32` prints them, if a field of privacy.fields is "+
		`to be hashed. If the topics hold hashes, docs/security.md says what to do then, "Custody of privacy.key"`)
	if c.schemas, err = schemas.Load(c.Schemas.Dir); err != nil {
		l.mistake("schemas.dir", err.Error())
		return
	}
	wrong := c.schemas.Protect(p)
	l.require("privacy.fields", len(wrong) == 0, strings.Join(wrong, "; "))
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
