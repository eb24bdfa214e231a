package config

import (
	"slices"
	"time"

	"github.com/storestream/storestream/schemas"
)

// Where a resource is read from.
const (
	Postgres = "postgres"
	REST     = "rest"
)

// What a sweep does with rows that the service no longer has.
const (
	Report    = "report"
	Tombstone = "tombstone"
)

// What the service's count of rows is worth.
const (
	Exact    = "exact"
	Estimate = "estimate"
	Ignore   = "ignore"
)

// Config is a configuration that keeps every rule (rules.go). The koanf tags are the keys, the default tags
// what they are where nobody sets them, as a user would write it.
type Config struct {
	Store     Store               `koanf:"store"`
	Postgres  PostgreSQL          `koanf:"postgres"`
	Kafka     Kafka               `koanf:"kafka"`
	Registry  Registry            `koanf:"registry"`
	Schemas   Schemas             `koanf:"schemas"`
	Resources map[string]Resource `koanf:"resources"` // every declared resource is in it, disabled ones too
	Poll      Poll                `koanf:"poll"`
	Sweep     Sweep               `koanf:"sweep"`
	HTTP      HTTP                `koanf:"http"`
	Log       Log                 `koanf:"log"`

	entries []Entry
}

// Store is the REST service.
type Store struct {
	// BaseURL has the service's version segment, and no slash at the end.
	BaseURL string `koanf:"base_url" default:"http://127.0.0.1:8090/v1"`
	// APIKey is empty where it is fetched from the service.
	APIKey               Secret        `koanf:"api_key"`
	MaxRequestsPerSecond float64       `koanf:"max_requests_per_second" default:"10"`
	RequestTimeout       time.Duration `koanf:"request_timeout" default:"30s"`
	// Count is what meta.count of its answers is worth.
	Count string `koanf:"count" default:"exact"`
}

// PostgreSQL is the database behind the transaction pooler.
type PostgreSQL struct {
	DSN            Secret `koanf:"dsn"` // empty: there is none
	MaxConnections int    `koanf:"max_connections" default:"4"`
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
	TLS                TLS           `koanf:"tls"`
	SASL               SASL          `koanf:"sasl"`
}

// TLS of the connections to the brokers. The files are tried when the configuration is loaded.
type TLS struct {
	Enabled            bool   `koanf:"enabled" default:"false"`
	CAFile             string `koanf:"ca_file"` // empty: the system's
	CertFile           string `koanf:"cert_file"`
	KeyFile            string `koanf:"key_file"`
	InsecureSkipVerify bool   `koanf:"insecure_skip_verify" default:"false"`
}

// SASL is how storestream logs on to the brokers.
type SASL struct {
	Mechanism string `koanf:"mechanism"` // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; empty: none
	Username  string `koanf:"username"`
	Password  Secret `koanf:"password"`
}

// Registry is the schema registry.
type Registry struct {
	URL          string `koanf:"url" default:"http://127.0.0.1:8081"`
	Username     string `koanf:"username"`
	Password     Secret `koanf:"password"`
	AutoRegister bool   `koanf:"auto_register" default:"true"`
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
	Deletes  string        `koanf:"deletes" default:"report"`
	// Memory bounds one comparison, a sweep's or `verify`'s. One runs at a time.
	Memory Size `koanf:"memory" default:"128MiB"`
}

// HTTP is the status server.
type HTTP struct {
	Listen string `koanf:"listen" default:"127.0.0.1:8080"`
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

// Default is the configuration where nothing is set. In it every resource that the database offers is read
// from PostgreSQL, which needs a DSN: Load turns them to REST where there is none.
func Default() Config {
	v := newValues()
	return *decode(v, &mistakes{values: v, broken: map[string]bool{}})
}
