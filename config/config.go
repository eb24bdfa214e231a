package config

import (
	"net"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/loopback"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/schemas"
)

// Where a resource is read from.
const (
	Postgres = "postgres"
	REST     = "rest"
)

// OAuthBearer is the SASL mechanism that takes a token.
const OAuthBearer = "OAUTHBEARER"

// What a sweep does with rows that the service no longer has.
const (
	Report    = "report"
	Tombstone = "tombstone"
)

// What a dead letter shows of personal fields.
const (
	Masked = "masked"
	Full   = "full"
)

// Auto is the setting of what storestream finds out by itself.
const Auto = "auto"

// Config is a configuration that keeps every rule (rules.go). The koanf tags are the keys, the default tags
// what they are where nobody sets them, as a user would write it.
type Config struct {
	Store       Store               `koanf:"store"`
	Postgres    PostgreSQL          `koanf:"postgres"`
	Kafka       Kafka               `koanf:"kafka"`
	Registry    Registry            `koanf:"registry"`
	Security    Security            `koanf:"security"`
	Schemas     Schemas             `koanf:"schemas"`
	Resources   map[string]Resource `koanf:"resources"` // every declared resource is in it, disabled ones too
	Poll        Poll                `koanf:"poll"`
	Sweep       Sweep               `koanf:"sweep"`
	Privacy     Privacy             `koanf:"privacy"`
	DeadLetters DeadLetters         `koanf:"dead_letters"`
	HTTP        HTTP                `koanf:"http"`
	Log         Log                 `koanf:"log"`

	entries  []Entry
	proxies  []proxyVariable
	rotation *rotation.Set
}

// Store is the REST service.
type Store struct {
	// BaseURL has the service's version segment, and no slash at the end.
	BaseURL string `koanf:"base_url" default:"http://127.0.0.1:8090/v1"`
	// APIKey is empty where it is fetched from the service.
	APIKey               rotation.Secret `koanf:"api_key"`
	MaxRequestsPerSecond float64         `koanf:"max_requests_per_second" default:"10"`
	RequestTimeout       time.Duration   `koanf:"request_timeout" default:"30s"`
	Dialect              Dialect         `koanf:"dialect"`
	TLS                  TLS             `koanf:"tls"`
}

// Dialect answers what the service's document leaves open. Auto leaves it to the service's answers.
type Dialect struct {
	Days      string `koanf:"days" default:"auto"`
	UpdatedTo string `koanf:"updated_to" default:"auto"`
	CreatedTo string `koanf:"created_to" default:"auto"`
	Count     string `koanf:"count" default:"auto"`
}

// PostgreSQL is the database behind the transaction pooler.
type PostgreSQL struct {
	DSN            rotation.Secret `koanf:"dsn"` // empty: there is none
	MaxConnections int             `koanf:"max_connections" default:"4"`
}

// Kafka is the broker that topics are written to.
type Kafka struct {
	Brokers           []string `koanf:"brokers" default:"127.0.0.1:9092"` // host:port
	TopicPrefix       string   `koanf:"topic_prefix" default:"store."`
	Partitions        int32    `koanf:"partitions" default:"6"`
	ReplicationFactor int16    `koanf:"replication_factor" default:"-1"` // -1: the broker's default
	Group             string   `koanf:"group" default:"storestream"`
	// TransactionTimeout is how long the brokers let a transaction stay open, SessionTimeout how long the group
	// waits for an instance that gives no sign of life.
	TransactionTimeout time.Duration `koanf:"transaction_timeout" default:"1m"`
	SessionTimeout     time.Duration `koanf:"session_timeout" default:"6s"`
	// EraseWithin bounds how long the topics that we create keep what was deleted or replaced; 0: the broker's
	// default, which bounds nothing.
	EraseWithin time.Duration `koanf:"erase_within" default:"168h"`
	// TopicSettings are name=value, over those of the topics that we create.
	TopicSettings []string `koanf:"topic_settings"`
	Compression   string   `koanf:"compression" default:"snappy"`
	TLS           KafkaTLS `koanf:"tls"`
	SASL          SASL     `koanf:"sasl"`
}

// KafkaTLS is TLS of the connections to the brokers, whose addresses do not say whether there is any.
type KafkaTLS struct {
	Enabled bool `koanf:"enabled" default:"false"`
	TLS     `koanf:",squash"`
}

// TLS of the connections of one client. The files are tried when the configuration is loaded.
type TLS struct {
	CAFile             string `koanf:"ca_file"` // empty: the system's
	CertFile           string `koanf:"cert_file"`
	KeyFile            string `koanf:"key_file"`
	InsecureSkipVerify bool   `koanf:"insecure_skip_verify" default:"false"`
}

// Files are the files of t, where a user sets them in section.
func (t TLS) Files(section string) tlsfile.Files {
	return tlsfile.Files{Section: section, CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile,
		InsecureSkipVerify: t.InsecureSkipVerify}
}

// SASL is how storestream logs on to the brokers.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; empty: none.
	Mechanism string          `koanf:"mechanism"`
	Username  string          `koanf:"username"`
	Password  rotation.Secret `koanf:"password"`
	// Of OAUTHBEARER, which takes no name and password: where a token is fetched by client credentials.
	TokenURL     string          `koanf:"token_url"`
	ClientID     string          `koanf:"client_id"`
	ClientSecret rotation.Secret `koanf:"client_secret"`
	Scopes       []string        `koanf:"scopes"`
	TokenTLS     TLS             `koanf:"token_tls"` // of the endpoint
}

// Registry is the schema registry.
type Registry struct {
	URL          string          `koanf:"url" default:"http://127.0.0.1:8081"`
	Username     string          `koanf:"username"`
	Password     rotation.Secret `koanf:"password"`
	Token        rotation.Secret `koanf:"token"` // in place of name and password
	TLS          TLS             `koanf:"tls"`
	AutoRegister bool            `koanf:"auto_register" default:"true"`
}

// Schemas says where the Avro schemas are.
type Schemas struct {
	Dir string `koanf:"dir"` // replaces the built-in ones by name; empty: the built-in ones
}

// Resource is how one resource is polled. Its other defaults are in paces.
type Resource struct {
	Enabled bool `koanf:"enabled" default:"true"`
	// Source is where the resource is really read from: REST where postgres.dsn is empty, whatever the user
	// asked for.
	Source   string        `koanf:"source"`
	Interval time.Duration `koanf:"interval"`
	Overlap  time.Duration `koanf:"overlap"`
	Start    time.Time     `koanf:"start"` // a UTC day; zero: the earliest row
}

// Poll is what the polls of every resource have in common.
type Poll struct {
	// Memory is what one resource may take to remember which rows it published lately: 24 bytes a row.
	Memory Size `koanf:"memory" default:"128MiB"`
}

// Sweep is the scheduled comparison of topic and source.
type Sweep struct {
	Interval time.Duration `koanf:"interval" default:"24h"` // 0: only on request
	Deletes  string        `koanf:"deletes" default:"tombstone"`
	// Memory bounds one comparison, a sweep's or `verify`'s. One runs at a time.
	Memory Size `koanf:"memory" default:"128MiB"`
}

// Privacy is what is done with fields before anything else sees them.
type Privacy struct {
	Fields Policies        `koanf:"fields"`
	Key    rotation.Secret `koanf:"key"` // of hashes
}

// DeadLetters is what stands in the dead-letter topic.
type DeadLetters struct {
	// Rows is what a letter shows of personal fields whose policy is clear.
	Rows string `koanf:"rows" default:"masked"`
}

// FieldPrivacy is what schemas.Set.Protect takes.
func (c *Config) FieldPrivacy() schemas.Privacy {
	return schemas.Privacy{Fields: c.Privacy.Fields, Key: []byte(c.Privacy.Key.Get()),
		FullRejects: c.DeadLetters.Rows == Full}
}

// HTTP is the status server.
type HTTP struct {
	Listen string `koanf:"listen" default:"127.0.0.1:8080"`
	// Hosts are names that a request's Host may have, beside those of loopback, Listen's own, and the address
	// that a connection leads to. "*": any.
	Hosts []string `koanf:"hosts"`
	// Token is what a reader has to have for all but /healthz and /readyz; empty: nothing.
	Token rotation.Secret `koanf:"token"`
	TLS   ServerTLS       `koanf:"tls"`
	// ShowRows: the page shows the newest rows with their values, personal fields masked.
	ShowRows bool `koanf:"show_rows" default:"false"`
}

// ServerTLS is what the status server shows of itself. Both files are empty where it speaks plain HTTP.
type ServerTLS struct {
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
}

// Open says that whoever reaches the status server can read it, from other machines too: it listens beyond
// loopback, and nothing protects what it says.
func (h HTTP) Open() bool { return h.inClear() && !h.Token.IsSet() }

// TokenInClear says that the token travels to other machines unencrypted.
func (h HTTP) TokenInClear() bool { return h.inClear() && h.Token.IsSet() }

func (h HTTP) inClear() bool {
	host, _, _ := net.SplitHostPort(h.Listen)
	return !loopback.Is(host) && h.TLS == ServerTLS{}
}

// Log is what storestream says while it runs.
type Log struct {
	Level  string `koanf:"level" default:"info"`  // debug, info, warn, error
	Format string `koanf:"format" default:"json"` // json, console
}

// Enabled is the names of the resources that this configuration polls, in the order in which they are
// declared.
func (c *Config) Enabled() []string {
	var names []string
	for _, name := range schemas.Names() {
		if c.Resources[name].Enabled {
			names = append(names, name)
		}
	}
	return names
}

// Entries is every key in force, in the order in which they are documented.
func (c *Config) Entries() []Entry { return slices.Clone(c.entries) }

// Proxies are the variables in force by which requests to the service, the registry and the token endpoint
// find a proxy.
func (c *Config) Proxies() []Entry {
	var entries []Entry
	for _, p := range c.proxies {
		entries = append(entries, Entry{Key: p.name, Value: p.shown(), From: "environment " + p.name})
	}
	return entries
}

// Rotation is the secrets that stand in files, which are read again while storestream runs. Whoever uses the
// files of certificates adds them.
func (c *Config) Rotation() *rotation.Set { return c.rotation }

// Hidden is the secrets in use, which nothing that is shown or written may repeat. Whoever fetches another
// one adds it.
func (c *Config) Hidden() *rotation.Hidden {
	if c.rotation == nil {
		return nil
	}
	return c.rotation.Hidden
}
