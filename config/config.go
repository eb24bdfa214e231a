// Package config is what a user may set: the keys of CONTRACT.md, where their values may come from (defaults, then a YAML file, then the
// environment, then flags; later wins), and the rules they keep. A configuration is taken whole or not at all: an unknown key is an
// error, and all mistakes are reported at once. Only cmd reads it.
package config

import (
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

// Config is a configuration that keeps every rule (see check.go). The koanf tags are the keys; the table of known keys, the names of the
// environment's variables and `config show` are derived from them.
type Config struct {
	Store     Store               `koanf:"store"`
	Postgres  PostgreSQL          `koanf:"postgres"`
	Kafka     Kafka               `koanf:"kafka"`
	Registry  Registry            `koanf:"registry"`
	Schemas   Schemas             `koanf:"schemas"`
	Resources map[string]Resource `koanf:"resources"` // every declared resource is in it, disabled ones too
	Sweep     Sweep               `koanf:"sweep"`
	HTTP      HTTP                `koanf:"http"`
	Log       Log                 `koanf:"log"`

	entries []Entry
}

// Store is the REST service.
type Store struct {
	BaseURL              string        `koanf:"base_url"` // with its version segment, without a slash at the end
	APIKey               Secret        `koanf:"api_key"`  // empty: fetched from the service
	MaxRequestsPerSecond float64       `koanf:"max_requests_per_second"`
	RequestTimeout       time.Duration `koanf:"request_timeout"`
}

// PostgreSQL is the database behind the transaction pooler.
type PostgreSQL struct {
	DSN            Secret `koanf:"dsn"` // empty: there is none
	MaxConnections int    `koanf:"max_connections"`
}

// Kafka is the broker that topics are written to.
type Kafka struct {
	Brokers           []string `koanf:"brokers"` // host:port
	TopicPrefix       string   `koanf:"topic_prefix"`
	Partitions        int32    `koanf:"partitions"`
	ReplicationFactor int16    `koanf:"replication_factor"` // -1: the broker's default
	Group             string   `koanf:"group"`
	TLS               TLS      `koanf:"tls"`
	SASL              SASL     `koanf:"sasl"`
}

// TLS of the connections to the brokers. The files are tried when the configuration is loaded.
type TLS struct {
	Enabled            bool   `koanf:"enabled"`
	CAFile             string `koanf:"ca_file"` // empty: the system's
	CertFile           string `koanf:"cert_file"`
	KeyFile            string `koanf:"key_file"`
	InsecureSkipVerify bool   `koanf:"insecure_skip_verify"`
}

// SASL is how storestream logs on to the brokers.
type SASL struct {
	Mechanism string `koanf:"mechanism"` // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; empty: none
	Username  string `koanf:"username"`
	Password  Secret `koanf:"password"`
}

// Registry is the schema registry.
type Registry struct {
	URL          string `koanf:"url"`
	Username     string `koanf:"username"`
	Password     Secret `koanf:"password"`
	AutoRegister bool   `koanf:"auto_register"`
}

// Schemas says where the Avro schemas are.
type Schemas struct {
	Dir string `koanf:"dir"` // replaces the built-in ones by name; empty: the built-in ones
}

// Resource is how one resource is polled.
type Resource struct {
	Enabled bool `koanf:"enabled"`
	// Source is where it is really read from: REST where postgres.dsn is empty, whatever was asked for.
	Source   string        `koanf:"source"`
	Interval time.Duration `koanf:"interval"`
	Overlap  time.Duration `koanf:"overlap"`
	Start    time.Time     `koanf:"start"` // a UTC day; zero: the earliest row
}

// Sweep is the scheduled comparison of topic and source.
type Sweep struct {
	Interval time.Duration `koanf:"interval"` // 0: only on request
	Deletes  string        `koanf:"deletes"`
}

// HTTP is the status server.
type HTTP struct {
	Listen string `koanf:"listen"`
}

// Log is what storestream says while it runs.
type Log struct {
	Level  string `koanf:"level"`  // debug, info, warn, error
	Format string `koanf:"format"` // json, console
}

// Enabled is the names of the resources that this configuration polls, in the order in which they are declared.
func (c *Config) Enabled() []string {
	var names []string
	for _, name := range schemas.Names() {
		if c.Resources[name].Enabled {
			names = append(names, name)
		}
	}
	return names
}

// Default is the configuration where nothing is set. Its orders and order_items ask for Postgres, which needs a DSN: Load turns them to
// REST where there is none.
func Default() Config {
	c := Config{
		Store:    Store{BaseURL: "http://127.0.0.1:8090/v1", MaxRequestsPerSecond: 10, RequestTimeout: 30 * time.Second},
		Postgres: PostgreSQL{MaxConnections: 4},
		Kafka: Kafka{Brokers: []string{"127.0.0.1:9092"}, TopicPrefix: "store.", Partitions: 6, ReplicationFactor: -1,
			Group: "storestream"},
		Registry:  Registry{URL: "http://127.0.0.1:8081", AutoRegister: true},
		Resources: map[string]Resource{},
		Sweep:     Sweep{Interval: 24 * time.Hour, Deletes: Report},
		HTTP:      HTTP{Listen: "127.0.0.1:8080"},
		Log:       Log{Level: "info", Format: "json"},
	}
	for _, d := range schemas.Declared() {
		source := REST
		if d.Table != "" {
			source = Postgres
		}
		interval, overlap := pace(source)
		c.Resources[d.Name] = Resource{Enabled: true, Source: source, Interval: interval, Overlap: overlap}
	}
	return c
}

// pace is how often a source is polled, and how far back, unless the user says otherwise: a database answers "what is new" from an
// index, the service only with whole days.
func pace(source string) (interval, overlap time.Duration) {
	if source == Postgres {
		return time.Second, 2 * time.Minute
	}
	return 30 * time.Second, 5 * time.Minute
}
