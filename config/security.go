package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/loopback"
)

const keyAllowPlaintext = "security.allow_plaintext"

// connections are the names that security.allow_plaintext takes.
var connections = []string{"postgres", "kafka", "registry", "store"}

// Security says what may be less safe than storestream wants it.
type Security struct {
	// AllowPlaintext names the connections over which a credential may travel unencrypted to other machines:
	// postgres, kafka, registry, store.
	AllowPlaintext []string `koanf:"allow_plaintext"`
}

// Plaintext is a connection over which a credential may travel unencrypted to other machines.
type Plaintext struct {
	Connection string   // a name of security.allow_plaintext
	Key        string   // that makes it so
	Hosts      []string // to which it may travel; none of them is this machine
	risk, out  string   // what would happen, and what to do about it
}

// Plaintext is every such connection of c. In a configuration that Load has returned, all of them are
// exceptions that the user has named.
func (c *Config) Plaintext() []Plaintext {
	var all []Plaintext
	add := func(connection, key string, hosts []string, risk, out string) {
		if len(hosts) > 0 {
			all = append(all, Plaintext{connection, key, hosts, risk, out})
		}
	}
	if d, err := dsn.Parse(c.Postgres.DSN.Get()); err == nil {
		add("postgres", keyDSN, d.InClear(), "sslmode="+d.Mode()+" may send the password and the rows unencrypted",
			"expected sslmode=verify-full, which is the default, with sslrootcert=/path where the server's "+
				"certificate is not of a public authority")
	}
	// SCRAM proves that it knows the password and does not send it. PLAIN and OAUTHBEARER send what they have.
	if mechanism := c.Kafka.SASL.Mechanism; !c.Kafka.TLS.Enabled && mechanism != "" &&
		!strings.HasPrefix(mechanism, "SCRAM-") {
		add("kafka", "kafka.tls.enabled", beyond(c.Kafka.Brokers...), mechanism+" sends its secret unencrypted",
			"expected true, or a kafka.sasl.mechanism of SCRAM")
	}
	if s := c.Kafka.SASL; s.Mechanism == OAuthBearer {
		add("kafka", "kafka.sasl.token_url", plainURL(s.TokenURL), "the client's secret is sent unencrypted",
			"expected https")
	}
	if r := c.Registry; r.Username != "" || r.Password.IsSet() || r.Token.IsSet() {
		add("registry", "registry.url", plainURL(r.URL), "the password or token is sent unencrypted",
			"expected https")
	}
	add("store", "store.base_url", plainURL(c.Store.BaseURL),
		"the service's key is sent unencrypted, also one that is fetched there", "expected https")
	return all
}

// plainURL is the host of an http URL, unless it is this machine.
func plainURL(text string) []string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || loopback.Is(u.Hostname()) {
		return nil
	}
	return []string{u.Hostname()}
}

// beyond is the hosts among addresses, of the form host:port, that are not this machine.
func beyond(addresses ...string) []string {
	var hosts []string
	for _, address := range addresses {
		if host, _, err := net.SplitHostPort(address); err == nil && !loopback.Is(host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// checkSecurity refuses what would send a credential unencrypted to another machine, unless the user has
// named it as an exception.
func checkSecurity(c *Config, m *mistakes) {
	for _, name := range c.Security.AllowPlaintext {
		m.require(keyAllowPlaintext, slices.Contains(connections, name),
			fmt.Sprintf("%q is none of %s", name, strings.Join(connections, ", ")))
	}
	for _, p := range c.Plaintext() {
		m.require(p.Key, slices.Contains(c.Security.AllowPlaintext, p.Connection), fmt.Sprintf(
			"to %s %s: %s; or %s: [%s] where every machine on the way there may read it",
			strings.Join(p.Hosts, ", "), p.risk, p.out, keyAllowPlaintext, p.Connection))
	}
}
