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

// The sources of a resource.
const (
	Postgres = "postgres"
	REST     = "rest"
)

// OAuthBearer is the SASL mechanism that takes a token. TokenEndpoint issues the tokens.
const (
	OAuthBearer   = "OAUTHBEARER"
	TokenEndpoint = "tokens"
)

// The ways in which a sweep treats rows that the service no longer has.
const (
	Report    = "report"
	Tombstone = "tombstone"
)

// Config is a configuration that keeps every rule (rules.go). The koanf tags are the keys. The default tags
// are the default values as a user would write them.
type Config struct {
	Store       Store               `koanf:"store"`
	Postgres    PostgreSQL          `koanf:"postgres"`
	Kafka       Kafka               `koanf:"kafka"`
	Registry    Registry            `koanf:"registry"`
	Security    Security            `koanf:"security"`
	Schemas     Schemas             `koanf:"schemas"`
	Resources   map[string]Resource `koanf:"resources"` // every declared resource, also disabled ones
	Poll        Poll                `koanf:"poll"`
	Sweep       Sweep               `koanf:"sweep"`
	Privacy     Privacy             `koanf:"privacy"`
	DeadLetters DeadLetters         `koanf:"dead_letters"`
	HTTP        HTTP                `koanf:"http"`
	Log         Log                 `koanf:"log"`

	entries  []Entry
	schemas  *schemas.Set      // with the policies of Privacy
	proxies  map[string]string // by the variable
	rotation *rotation.Set
	tls      map[string]*tlsfile.Client // by the connection
}

// Store is the REST service.
type Store struct {
	// BaseURL has the service's version segment, and no slash at the end.
	BaseURL string `koanf:"base_url" default:"http://127.0.0.1:8090/v1"`
	// APIKey is empty if storestream fetches one from the service.
	APIKey               rotation.Secret `koanf:"api_key"`
	MaxRequestsPerSecond float64         `koanf:"max_requests_per_second" default:"10" least:"0.01"`
	RequestTimeout       time.Duration   `koanf:"request_timeout" default:"30s" least:"100ms"`
	Dialect              Dialect         `koanf:"dialect"`
	TLS                  TLS             `koanf:"tls"`
}

// Dialect answers the questions that the service's document leaves open. With auto, storestream learns the
// answer from the service.
type Dialect struct {
	Days      string `koanf:"days" default:"auto" one:"auto|utc|other"`
	UpdatedTo string `koanf:"updated_to" default:"auto" one:"auto|whole|midnight"`
	CreatedTo string `koanf:"created_to" default:"auto" one:"auto|whole|midnight"`
	Count     string `koanf:"count" default:"auto" one:"auto|estimate"`
}

// PostgreSQL is the database behind the transaction pooler.
type PostgreSQL struct {
	DSN rotation.Secret `koanf:"dsn"` // empty means that there is no database
}

// Kafka is the broker that topics are written to.
type Kafka struct {
	Brokers     []string `koanf:"brokers" default:"127.0.0.1:9092"` // host:port
	TopicPrefix string   `koanf:"topic_prefix" default:"store."`
	Partitions  int32    `koanf:"partitions" default:"6" least:"1"`
	// ReplicationFactor is -1 for the broker's default.
	ReplicationFactor int16 `koanf:"replication_factor" default:"-1" least:"1" or:"-1"`
	// SessionTimeout is how long the group waits for an instance that does not respond.
	SessionTimeout time.Duration `koanf:"session_timeout" default:"6s" least:"1s" most:"5m"`
	// EraseWithin limits how long the topics that we create keep deleted and replaced records. Zero means the
	// broker's default, which has no limit.
	EraseWithin time.Duration `koanf:"erase_within" default:"168h" least:"1h" or:"0s"`
	// TopicSettings are settings of the topics that we create. They replace our own.
	TopicSettings map[string]string `koanf:"topic_settings"`
	Compression   string            `koanf:"compression" default:"snappy" one:"none|gzip|snappy|lz4|zstd"`
	TLS           KafkaTLS          `koanf:"tls"`
	SASL          SASL              `koanf:"sasl"`
}

// Group is the consumer group through which instances share the resources: those of the same topics do.
func (k Kafka) Group() string { return "storestream-" + k.TopicPrefix }

// KafkaTLS is TLS for the connections to the brokers and to the endpoint of tokens. The brokers' addresses do
// not show whether they use TLS. The endpoint may also have a certificate of an authority that the system
// trusts.
type KafkaTLS struct {
	Enabled bool `koanf:"enabled" default:"false"`
	TLS     `koanf:",squash"`
}

// TLS is TLS for the connections of one client. Load tries the files.
type TLS struct {
	CAFile   string `koanf:"ca_file"` // empty means the system's
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
}

// SASL is how storestream logs on to the brokers.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. Empty means no SASL.
	Mechanism string          `koanf:"mechanism" one:"|PLAIN|SCRAM-SHA-256|SCRAM-SHA-512|OAUTHBEARER"`
	Username  string          `koanf:"username"` // of OAUTHBEARER the client's id
	Password  rotation.Secret `koanf:"password"` // of OAUTHBEARER the client's secret
	// TokenURL is the endpoint of OAUTHBEARER. It issues tokens for client credentials.
	TokenURL string `koanf:"token_url"`
	// Parameters go into the request for a token, and those that begin with extension_ to the brokers.
	Parameters map[string]string `koanf:"parameters"`
}

// Registry is the schema registry.
type Registry struct {
	URL          string          `koanf:"url" default:"http://127.0.0.1:8081"`
	Username     string          `koanf:"username"`
	Password     rotation.Secret `koanf:"password"`
	Token        rotation.Secret `koanf:"token"` // replaces name and password
	TLS          TLS             `koanf:"tls"`
	AutoRegister bool            `koanf:"auto_register" default:"true"`
}

// Schemas names the Avro schemas.
type Schemas struct {
	Dir string `koanf:"dir"` // its schemas replace built-in ones of the same name
}

// Resource configures the polls of one resource. See complete for its other defaults.
type Resource struct {
	Enabled bool `koanf:"enabled" default:"true"`
	// Source is the source in use. It is always REST if postgres.dsn is empty.
	Source   string        `koanf:"source"`
	Interval time.Duration `koanf:"interval" least:"100ms"`
	Overlap  time.Duration `koanf:"overlap" least:"0s"`
	// Start is the beginning of a UTC day, or MinInstant for the earliest row.
	Start schemas.Instant `koanf:"start"`
}

// Poll has the settings that the polls of all resources share.
type Poll struct {
	// Memory limits the record of lately published rows of one resource. A row takes 24 bytes.
	Memory Size `koanf:"memory" default:"128MiB" least:"1MiB" most:"1024GiB"`
}

// Sweep is the scheduled comparison of topic and source.
type Sweep struct {
	Interval time.Duration `koanf:"interval" default:"24h" least:"1m" or:"0s"` // 0 means only on request
	Deletes  string        `koanf:"deletes" default:"tombstone" one:"report|tombstone"`
	// Memory limits one comparison by a sweep or by `verify`. One runs at a time.
	Memory Size `koanf:"memory" default:"128MiB" least:"16MiB" most:"1024GiB"`
	// Scratch limits the file of one comparison. Zero means that there is none.
	Scratch Size `koanf:"scratch" default:"4GiB" least:"0B" most:"1024GiB"`
}

// Privacy lists the fields to change before any other part of storestream sees them.
type Privacy struct {
	Fields map[string]schemas.Policy `koanf:"fields"` // by "resource.field"
	Key    rotation.Secret           `koanf:"key"`    // of hashes
}

// DeadLetters configures the content of the dead-letter topic.
type DeadLetters struct {
	// Rows selects how a letter shows personal fields whose policy is clear.
	Rows string `koanf:"rows" default:"masked" one:"masked|full"`
}

// HTTP is the status server.
type HTTP struct {
	Listen string `koanf:"listen" default:"127.0.0.1:8080"`
	// Hosts lists further names that a request's Host may have. The names of loopback, the host in Listen and
	// the address of the connection are always allowed. "*" allows every name.
	Hosts []string `koanf:"hosts"`
	// Token is required for all paths but /healthz and /readyz. Empty means that no token is required.
	Token rotation.Secret `koanf:"token"`
	TLS   ServerTLS       `koanf:"tls"`
	// ShowRows makes the page show the values of the newest rows. Personal fields are masked.
	ShowRows bool `koanf:"show_rows" default:"false"`
}

// ServerTLS is the certificate of the status server. Both files are empty if it speaks plain HTTP.
type ServerTLS struct {
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
}

// InClear reports whether the status server listens beyond loopback without TLS. Without a token every
// machine that reaches it can read it, and a token travels unencrypted.
func (h HTTP) InClear() bool {
	host, _, _ := net.SplitHostPort(h.Listen)
	return !loopback.Is(host) && h.TLS == ServerTLS{}
}

// Log configures the log.
type Log struct {
	Level  string `koanf:"level" default:"info" one:"debug|info|warn|error"`
	Format string `koanf:"format" default:"json" one:"json|console"`
}

// Enabled returns the names of the resources to poll, in the order of their declaration.
func (c *Config) Enabled() []string {
	var names []string
	for _, name := range schemas.Names() {
		if c.Resources[name].Enabled {
			names = append(names, name)
		}
	}
	return names
}

// Entries returns every key in force, in the order of the documentation, and behind them the variables that
// name a proxy for requests to the service, the registry and the token endpoint.
func (c *Config) Entries() []Entry { return slices.Clone(c.entries) }

// SchemaSet returns the schemas. The policies of privacy.fields are applied to them.
func (c *Config) SchemaSet() *schemas.Set { return c.schemas }

// Rotation returns the secrets and certificates in files. They are read again while storestream runs.
func (c *Config) Rotation() *rotation.Set { return c.rotation }

// Hidden returns the secrets in use. No output may repeat them. Code that fetches another secret adds it.
func (c *Config) Hidden() *rotation.Hidden { return c.rotation.Hidden }

// TLS returns the TLS of the connections to "store", "registry", "kafka" or TokenEndpoint. It is nil if they
// have none.
func (c *Config) TLS(to string) *tlsfile.Client { return c.tls[to] }
