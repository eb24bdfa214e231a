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

// connections are the names that the settings of Security take.
var connections = []string{"postgres", "kafka", "registry", "store"}

// Security says what may be less safe than storestream wants it.
type Security struct {
	// AllowPlaintext names the connections over which a credential may travel unencrypted to other machines.
	AllowPlaintext []string `koanf:"allow_plaintext"`
	// AllowUnverified names the connections over which a credential may go to a server on another machine
	// whose identity is not verified.
	AllowUnverified []string `koanf:"allow_unverified"`
}

// Exposed is a connection over which others may get a credential.
type Exposed struct {
	Connection string   // a name of security.allow_plaintext and security.allow_unverified
	Key        string   // the setting that exposes it
	Hosts      []string // other machines that may get the credential

	encrypted bool // the server's identity is not verified
}

// Plaintext returns the connections of c over which a credential may travel unencrypted to other machines. In
// a configuration that Load has returned, the user has named all of them as exceptions.
func (c *Config) Plaintext() []Exposed {
	return slices.DeleteFunc(c.exposed(), func(e Exposed) bool { return e.encrypted })
}

// Unverified returns the encrypted connections of c over which a credential may go to a server on another
// machine whose identity is not verified: another server that answers there gets it. In a configuration that
// Load has returned, the user has named all of them as exceptions. Verifying an identity takes the authority
// and the host's name, so sslmode=verify-ca does not verify it.
func (c *Config) Unverified() []Exposed {
	return slices.DeleteFunc(c.exposed(), func(e Exposed) bool { return !e.encrypted })
}

func (c *Config) exposed() []Exposed {
	var all []Exposed
	add := func(connection, key string, hosts []string, encrypted bool) {
		hosts = slices.DeleteFunc(hosts, loopback.Is)
		if len(hosts) > 0 {
			all = append(all, Exposed{connection, key, hosts, encrypted})
		}
	}
	if d, err := dsn.Parse(c.Postgres.DSN.Get()); err == nil {
		add("postgres", keyDSN, d.InClear(), false)
		add("postgres", keyDSN, d.Unverified(), true)
	}
	// PLAIN and OAUTHBEARER show the broker their secret. SCRAM proves that it knows the password, and does not
	// send it.
	if s := c.Kafka.SASL; s.Mechanism != "" && !strings.HasPrefix(s.Mechanism, "SCRAM-") {
		var hosts []string
		for _, broker := range c.Kafka.Brokers {
			if host, _, err := net.SplitHostPort(broker); err == nil {
				hosts = append(hosts, host)
			}
		}
		switch {
		case !c.Kafka.TLS.Enabled:
			add("kafka", "kafka.tls.enabled", hosts, false)
		case c.Kafka.TLS.InsecureSkipVerify:
			add("kafka", "kafka.tls.insecure_skip_verify", hosts, true)
		}
	}
	addURL := func(connection, key, address, section string, t TLS) {
		u, err := url.Parse(address)
		switch {
		case err != nil:
		case u.Scheme == "http":
			add(connection, key, []string{u.Hostname()}, false)
		case t.InsecureSkipVerify:
			add(connection, section+".insecure_skip_verify", []string{u.Hostname()}, true)
		}
	}
	if s := c.Kafka.SASL; s.Mechanism == OAuthBearer {
		addURL("kafka", "kafka.sasl.token_url", s.TokenURL, "kafka.sasl.token_tls", s.TokenTLS)
	}
	if r := c.Registry; r.Username != "" || r.Password.IsSet() || r.Token.IsSet() {
		addURL("registry", "registry.url", r.URL, "registry.tls", r.TLS)
	}
	addURL("store", "store.base_url", c.Store.BaseURL, "store.tls", c.Store.TLS)
	return all
}

// checkSecurity refuses connections that would show another machine a credential, unless the user has named
// them as exceptions.
func checkSecurity(c *Config, l *loader) {
	plaintext, unverified := c.Security.AllowPlaintext, c.Security.AllowUnverified
	for _, e := range c.exposed() {
		to := "to " + strings.Join(e.Hosts, ", ") + " a password or key would go "
		if e.encrypted {
			l.require(e.Key, slices.Contains(unverified, e.Connection), fmt.Sprintf("%sto any server that answers "+
				"there: expected false, or in a DSN sslmode=verify-full, with the file of the authority; or "+
				"security.allow_unverified: [%s] if no other server can answer there", to, e.Connection))
			continue
		}
		l.require(e.Key, slices.Contains(plaintext, e.Connection), fmt.Sprintf("%sunencrypted: expected https, "+
			"kafka.tls.enabled, or in a DSN sslmode=verify-full; or security.allow_plaintext: [%s] if every machine "+
			"on the way there may read it", to, e.Connection))
	}
	for key, names := range map[string][]string{"security.allow_plaintext": plaintext,
		"security.allow_unverified": unverified} {
		for _, name := range names {
			l.require(key, slices.Contains(connections, name),
				fmt.Sprintf("%q is none of %s", name, strings.Join(connections, ", ")))
		}
	}
}
