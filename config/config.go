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

// Config is a configuration that keeps every rule (rules.go). The key tags are the keys, the default tags
// what they are where nobody sets them, as a user would write it.
type Config struct {
	Store     Store               `key:"store"`
	Postgres  PostgreSQL          `key:"postgres"`
	Kafka     Kafka               `key:"kafka"`
	Registry  Registry            `key:"registry"`
	Schemas   Schemas             `key:"schemas"`
	Resources map[string]Resource `key:"resources"` // every declared resource is in it, disabled ones too
	Sweep     Sweep               `key:"sweep"`
	HTTP      HTTP                `key:"http"`
	Log       Log                 `key:"log"`

	entries []Entry
}

// Store is the REST service.
type Store struct {
	// BaseURL has the service's version segment, and no slash at the end.
	BaseURL string `key:"base_url" default:"http://127.0.0.1:8090/v1"`
	// APIKey is empty where it is fetched from the service.
	APIKey               Secret        `key:"api_key"`
	MaxRequestsPerSecond float64       `key:"max_requests_per_second" default:"10"`
	RequestTimeout       time.Duration `key:"request_timeout" default:"30s"`
}

// PostgreSQL is the database behind the transaction pooler.
type PostgreSQL struct {
	DSN            Secret `key:"dsn"` // empty: there is none
	MaxConnections int    `key:"max_connections" default:"4"`
}

// Kafka is the broker that topics are written to.
type Kafka struct {
	Brokers           []string `key:"brokers" default:"127.0.0.1:9092"` // host:port
	TopicPrefix       string   `key:"topic_prefix" default:"store."`
	Partitions        int32    `key:"partitions" default:"6"`
	ReplicationFactor int16    `key:"replication_factor" default:"-1"` // -1: the broker's default
	Group             string   `key:"group" default:"storestream"`
	TLS               TLS      `key:"tls"`
	SASL              SASL     `key:"sasl"`
}

// TLS of the connections to the brokers. The files are tried when the configuration is loaded.
type TLS struct {
	Enabled            bool   `key:"enabled" default:"false"`
	CAFile             string `key:"ca_file"` // empty: the system's
	CertFile           string `key:"cert_file"`
	KeyFile            string `key:"key_file"`
	InsecureSkipVerify bool   `key:"insecure_skip_verify" default:"false"`
}

// SASL is how storestream logs on to the brokers.
type SASL struct {
	Mechanism string `key:"mechanism"` // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; empty: none
	Username  string `key:"username"`
	Password  Secret `key:"password"`
}

// Registry is the schema registry.
type Registry struct {
	URL          string `key:"url" default:"http://127.0.0.1:8081"`
	Username     string `key:"username"`
	Password     Secret `key:"password"`
	AutoRegister bool   `key:"auto_register" default:"true"`
}

// Schemas says where the Avro schemas are.
type Schemas struct {
	Dir string `key:"dir"` // replaces the built-in ones by name; empty: the built-in ones
}

// Resource is how one resource is polled. Its other defaults are in paces.
type Resource struct {
	Enabled bool `key:"enabled" default:"true"`
	// Source is where the resource is really read from: REST where postgres.dsn is empty, whatever the user
	// asked for.
	Source   string        `key:"source"`
	Interval time.Duration `key:"interval"`
	Overlap  time.Duration `key:"overlap"`
	Start    time.Time     `key:"start"` // a UTC day; zero: the earliest row
}

// Sweep is the scheduled comparison of topic and source.
type Sweep struct {
	Interval time.Duration `key:"interval" default:"24h"` // 0: only on request
	Deletes  string        `key:"deletes" default:"report"`
}

// HTTP is the status server.
type HTTP struct {
	Listen string `key:"listen" default:"127.0.0.1:8080"`
}

// Log is what storestream says while it runs.
type Log struct {
	Level  string `key:"level" default:"info"`  // debug, info, warn, error
	Format string `key:"format" default:"json"` // json, console
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
