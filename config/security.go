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

const (
	keyAllowPlaintext  = "security.allow_plaintext"
	keyAllowUnverified = "security.allow_unverified"
)

// connections are the names that these two settings take.
var connections = []string{"postgres", "kafka", "registry", "store"}

// Security says what may be less safe than storestream wants it.
type Security struct {
	// AllowPlaintext names the connections over which a credential may travel unencrypted to other machines:
	// postgres, kafka, registry, store.
	AllowPlaintext []string `koanf:"allow_plaintext"`
	// AllowUnverified names the connections over which a credential may go to a server on another machine
	// whose identity is not verified.
	AllowUnverified []string `koanf:"allow_unverified"`
}

// Exposed is a connection to another machine over which others may get rows or a credential.
type Exposed struct {
	Connection   string   // a name of security.allow_plaintext and security.allow_unverified
	Key          string   // the setting that exposes it
	Hosts        []string // the other machines
	Credential   bool     // a credential goes over it, so it has to be an exception
	Risk, Remedy string
}

// exposed collects connections. It leaves out those that lead to no other machine.
type exposed []Exposed

func (all *exposed) add(connection, key string, hosts []string, credential bool, risk, remedy string) {
	if !credential {
		risk = "rows and schemas go there without a proof that nobody else reads or changes them"
	}
	if len(hosts) > 0 {
		*all = append(*all, Exposed{connection, key, hosts, credential, risk, remedy})
	}
}

// verifyFull is the remedy for a DSN.
const verifyFull = "expected sslmode=verify-full, which is the default, with sslrootcert=/path unless a " +
	"public authority signed the server's certificate"

// Plaintext returns the connections of c over which something may travel unencrypted to other machines. In
// a configuration that Load has returned, the user has named those with a credential as exceptions.
func (c *Config) Plaintext() []Exposed {
	var all exposed
	if d, err := dsn.Parse(c.Postgres.DSN.Get()); err == nil {
		all.add("postgres", keyDSN, d.InClear(), true,
			"sslmode="+d.Mode()+" may send the password and the rows unencrypted", verifyFull)
	}
	if s := c.Kafka.SASL; !c.Kafka.TLS.Enabled {
		all.add("kafka", "kafka.tls.enabled", beyond(c.Kafka.Brokers...), s.sendsSecret(),
			s.Mechanism+" sends its secret unencrypted", "expected true, or a kafka.sasl.mechanism of SCRAM")
	}
	if s := c.Kafka.SASL; s.Mechanism == OAuthBearer {
		all.add("kafka", "kafka.sasl.token_url", hostOf(s.TokenURL, "http"), true,
			"the client's secret is sent unencrypted", "expected https")
	}
	all.add("registry", "registry.url", hostOf(c.Registry.URL, "http"), c.Registry.hasLogin(),
		"the password or token is sent unencrypted", "expected https")
	all.add("store", "store.base_url", hostOf(c.Store.BaseURL, "http"), true,
		"the service's key is sent unencrypted, also one that is fetched there", "expected https")
	return all
}

// Unverified returns the encrypted connections of c to servers on other machines whose identity is not
// verified: another server that answers there gets what is sent. In a configuration that Load has returned,
// the user has named those with a credential as exceptions. Verifying an identity takes the authority
// and the host's name, so sslmode=verify-ca does not verify it.
func (c *Config) Unverified() []Exposed {
	var all exposed
	if d, err := dsn.Parse(c.Postgres.DSN.Get()); err == nil {
		all.add("postgres", keyDSN, d.Unverified(), true, "sslmode="+d.Mode()+
			" may send the password to another server, for it does not verify the host's name", verifyFull)
	}
	skips := func(connection, section string, t TLS, hosts []string, credential bool) {
		if t.InsecureSkipVerify {
			all.add(connection, section+".insecure_skip_verify", hosts, credential,
				"the secret goes to any server that answers",
				"expected false, with "+section+".ca_file unless a public authority signed the certificate")
		}
	}
	s, r := c.Kafka.SASL, c.Registry
	skips("kafka", "kafka.tls", c.Kafka.TLS.TLS, beyond(c.Kafka.Brokers...), s.sendsSecret())
	skips("kafka", "kafka.sasl.token_tls", s.TokenTLS, hostOf(s.TokenURL, "https"), true)
	skips("registry", "registry.tls", r.TLS, hostOf(r.URL, "https"), r.hasLogin())
	skips("store", "store.tls", c.Store.TLS, hostOf(c.Store.BaseURL, "https"), true)
	return all
}

// sendsSecret reports whether the login shows the broker its secret. PLAIN and OAUTHBEARER do. SCRAM proves
// that it knows the password, and does not send it.
func (s SASL) sendsSecret() bool {
	return s.Mechanism != "" && !strings.HasPrefix(s.Mechanism, "SCRAM-")
}

func (r Registry) hasLogin() bool { return r.Username != "" || r.Password.IsSet() || r.Token.IsSet() }

// hostOf returns the host of a URL of that scheme, unless it is this machine.
func hostOf(text, scheme string) []string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != scheme || loopback.Is(u.Hostname()) {
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

// checkSecurity refuses connections that would show another machine a credential, unless the user has named
// them as exceptions.
func checkSecurity(c *Config, m *mistakes) {
	for _, rule := range []struct {
		key      string
		allowed  []string
		exposed  []Exposed
		harmless string
	}{
		{keyAllowPlaintext, c.Security.AllowPlaintext, c.Plaintext(), "every machine on the way there may read it"},
		{keyAllowUnverified, c.Security.AllowUnverified, c.Unverified(), "no other server can answer there"},
	} {
		for _, name := range rule.allowed {
			m.require(rule.key, slices.Contains(connections, name),
				fmt.Sprintf("%q is none of %s", name, strings.Join(connections, ", ")))
		}
		for _, e := range rule.exposed {
			m.require(e.Key, !e.Credential || slices.Contains(rule.allowed, e.Connection),
				fmt.Sprintf("to %s %s: %s; or %s: [%s] if %s", strings.Join(e.Hosts, ", "), e.Risk, e.Remedy, rule.key,
					e.Connection, rule.harmless))
		}
	}
}
