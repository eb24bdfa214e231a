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
	keyUnverified = "security.allow_unverified"
	keyTokenURL   = "kafka.sasl.token_url"
)

// Security says what may be less safe than storestream wants it.
type Security struct {
	// AllowPlaintext names the connections over which a credential may travel unencrypted to other machines.
	AllowPlaintext []string `koanf:"allow_plaintext" one:"postgres|kafka|registry|store"`
	// AllowUnverified names the connections whose servers are not verified. For postgres the DSN's sslmode
	// says it too, and this allows it to.
	AllowUnverified []string `koanf:"allow_unverified" one:"postgres|kafka|registry|store"`
}

// Exposed is a connection to other machines over which others may get rows or a credential.
type Exposed struct {
	Connection string   // a name of security.allow_plaintext and security.allow_unverified
	Key        string   // the setting that exposes it
	Hosts      []string // the other machines
	Credential bool     // a credential goes over it, so it has to be an exception
	Encrypted  bool     // but the server's identity is not verified: another server that answers there gets it
}

// Risk says what may happen.
func (e Exposed) Risk() string {
	what := "rows and schemas go"
	if e.Credential {
		what = "a password or key would go"
	}
	if e.Encrypted {
		return what + " to any server that answers there"
	}
	return what + " unencrypted"
}

// Remedy says which settings end it.
func (e Exposed) Remedy() string {
	if e.Encrypted {
		return "expected it to be verified with the file of the authority: ca_file, or in a DSN " +
			"sslmode=verify-full and sslrootcert"
	}
	return "expected https, kafka.tls.enabled, or in a DSN sslmode=verify-full"
}

// peers returns the servers of c, exposed or not, but for the database. PLAIN and OAUTHBEARER show the broker
// their secret. SCRAM proves that it knows the password, and does not send it.
func (c *Config) peers() []Exposed {
	web := func(connection, key, address string, credential bool) Exposed {
		u, err := url.Parse(address)
		if err != nil {
			u = &url.URL{} // a mistake of its own
		}
		return Exposed{connection, key, []string{u.Hostname()}, credential, u.Scheme == "https"}
	}
	k, r := c.Kafka, c.Registry
	brokers := Exposed{"kafka", "kafka.tls.enabled", nil,
		k.SASL.Mechanism != "" && !strings.HasPrefix(k.SASL.Mechanism, "SCRAM-"), k.TLS.Enabled}
	for _, broker := range k.Brokers {
		if host, _, err := net.SplitHostPort(broker); err == nil {
			brokers.Hosts = append(brokers.Hosts, host)
		}
	}
	peers := []Exposed{brokers,
		web("registry", "registry.url", r.URL, r.Username != "" || r.Password.IsSet() || r.Token.IsSet()),
		web("store", "store.base_url", c.Store.BaseURL, true)}
	if k.SASL.Mechanism == OAuthBearer {
		peers = append(peers, web("kafka", keyTokenURL, k.SASL.TokenURL, true))
	}
	return peers
}

// Exposed returns the connections of c that are not encrypted, or whose server is not verified. In a
// configuration that Load has returned, the user has named those with a credential as exceptions. Verifying
// an identity takes the authority and the host's name, so sslmode=verify-ca does not verify it.
func (c *Config) Exposed() []Exposed {
	var all []Exposed
	if d, err := dsn.Parse(c.Postgres.DSN.Get()); err == nil {
		inClear, unverified := d.Exposed()
		all = append(all, Exposed{"postgres", keyDSN, inClear, true, false},
			Exposed{"postgres", keyDSN, unverified, true, true})
	}
	for _, p := range c.peers() {
		if p.Encrypted {
			p.Key = keyUnverified
		}
		if !p.Encrypted || slices.Contains(c.Security.AllowUnverified, p.Connection) {
			p.Hosts = slices.DeleteFunc(p.Hosts, loopback.Is)
			all = append(all, p)
		}
	}
	return slices.DeleteFunc(all, func(e Exposed) bool { return len(e.Hosts) == 0 })
}

// checkSecurity refuses connections that would show another machine a credential, unless the user has named
// them as exceptions.
func checkSecurity(c *Config, l *loader) {
	plaintext, unverified := c.Security.AllowPlaintext, c.Security.AllowUnverified
	for _, e := range c.Exposed() {
		key, allowed := "security.allow_plaintext", plaintext
		harmless := "every machine on the way there may read it"
		if e.Encrypted {
			key, allowed = keyUnverified, unverified
			harmless = "no other server can answer there"
		}
		l.require(e.Key, !e.Credential || slices.Contains(allowed, e.Connection), fmt.Sprintf(
			"to %s %s: %s; or %s: [%s] if %s", strings.Join(e.Hosts, ", "), e.Risk(), e.Remedy(), key, e.Connection,
			harmless))
	}
}
