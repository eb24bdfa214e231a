// Package connect makes the clients that a configuration describes: of the Kafka cluster, of the schema
// registry, and of the sources of rows. It does not wait for a server: the first use of a client shows
// whether its server is down.
package connect

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/poller/rest"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// BrokerPatience is how long a command that answers a person waits for the broker.
const BrokerPatience = 15 * time.Second

// Kafka is the cluster of a configuration. instance is the name of this process in its group. counts may be
// nil.
func Kafka(cfg *config.Config, instance string, log *zap.Logger, counts *metrics.Kafka) (
	*producer.Cluster, error) {
	subjects, err := Registry(cfg)
	if err != nil {
		return nil, err
	}
	k := cfg.Kafka
	var encryption *tlsfile.Client
	if k.TLS.Enabled {
		encryption = cfg.TLS("kafka")
	}
	return producer.Open(producer.Config{
		Brokers: k.Brokers, TopicPrefix: k.TopicPrefix, Partitions: k.Partitions,
		ReplicationFactor: k.ReplicationFactor, Group: k.Group(), Instance: instance, TLS: encryption,
		TopicSettings: k.TopicSettings, Compression: k.Compression,
		SASL: producer.SASL{Mechanism: k.SASL.Mechanism, Username: k.SASL.Username,
			Password: k.SASL.Password, TokenURL: k.SASL.TokenURL, Parameters: k.SASL.Parameters,
			Hidden: cfg.Hidden(), TokenHTTP: httpclient.New(cfg.TLS(config.TokenEndpoint), producer.TokenTimeout),
			AllowPlaintext: slices.Contains(cfg.Security.AllowPlaintext, "kafka")},
		SessionTimeout: k.SessionTimeout, EraseWithin: k.EraseWithin,
		Registry: subjects, AutoRegister: cfg.Registry.AutoRegister, Log: log, Metrics: counts,
	})
}

// Registry is the schema registry of a configuration.
func Registry(cfg *config.Config) (*registry.Client, error) {
	r := cfg.Registry
	return registry.New(registry.Config{URL: r.URL,
		HTTP: httpclient.New(cfg.TLS("registry"), registry.RequestTimeout),
		LogIn: func(req *http.Request) error {
			if r.Token.IsSet() {
				req.Header.Set("Authorization", "Bearer "+r.Token.Get())
			} else if r.Username != "" {
				req.SetBasicAuth(r.Username, r.Password.Get())
			}
			return nil
		}})
}

// Sources makes the sources of rows that a configuration names. All of them share one REST client, with its
// rate limit, and one pool of database connections.
type Sources struct {
	resources map[string]config.Resource
	service   *client.Client
	dialect   *dialect.Dialect // of the service
	db        *postgres.DB     // nil: every resource goes over REST
}

// OpenSources prepares the clients. change changes the settings of the service's. Close ends the clients.
func OpenSources(cfg *config.Config, log *zap.Logger, change ...func(*client.Config)) (*Sources, error) {
	store, log := cfg.Store, log.With(zap.String("source", config.REST))
	how := client.Config{BaseURL: store.BaseURL, APIKey: store.APIKey, Hidden: cfg.Hidden(), Log: log,
		MaxRequestsPerSecond: store.MaxRequestsPerSecond, RequestTimeout: store.RequestTimeout,
		HTTP: httpclient.New(cfg.TLS("store"), store.RequestTimeout)}
	for _, change := range change {
		change(&how)
	}
	service, err := client.New(how)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	said := map[string]string{dialect.Days.Name: store.Dialect.Days, dialect.Count.Name: store.Dialect.Count,
		dialect.UpdatedTo.Name: store.Dialect.UpdatedTo, dialect.CreatedTo.Name: store.Dialect.CreatedTo}
	s := &Sources{resources: cfg.Resources, service: service, dialect: dialect.New(said, log)}
	if dsn := cfg.Postgres.DSN; dsn.IsSet() {
		s.db, err = postgres.Open(dsn, cfg.Rotation())
		if err != nil {
			service.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close ends the clients.
func (s *Sources) Close() {
	if s.db != nil {
		s.db.Close()
	}
	s.service.Close()
}

// Audience receives the progress of a source, for people. Its zero value ignores it.
type Audience struct {
	Doing func(string)        // its activity, in words
	Days  func([]health.Days) // over REST, the days that are not settled
	// MaxRows is rest.SourceConfig.MaxRows.
	MaxRows int
}

// New returns a new source of r, without the memory of earlier ones. Every takeover, sweep and comparison
// needs one of its own.
func (s *Sources) New(r *schemas.Resource, m *metrics.Resource, log *zap.Logger, to Audience) poller.Source {
	c := s.resources[r.Name]
	if c.Source == config.Postgres {
		return postgres.NewSource(s.db, postgres.SourceConfig{
			Resource: r, Overlap: c.Overlap, Start: c.Start, Metrics: m, Log: log, Doing: to.Doing})
	}
	return rest.NewSource(rest.SourceConfig{Resource: r, Client: s.service, Dialect: s.dialect,
		Overlap: c.Overlap, Start: c.Start, MaxRows: to.MaxRows, Metrics: m, Log: log, Doing: to.Doing,
		Days: to.Days})
}

// Beside returns a new source of r for comparisons with what polls, a source of New, has read. It believes no
// database server that shows less.
func (s *Sources) Beside(polls poller.Source, r *schemas.Resource, m *metrics.Resource,
	log *zap.Logger) poller.Source {
	if database, ok := polls.(*postgres.Source); ok {
		return database.Beside()
	}
	return s.New(r, m, log, Audience{})
}

// Database returns the connections to PostgreSQL, or nil if every resource goes over REST.
func (s *Sources) Database() *postgres.DB { return s.db }

// Dialect returns the dialect of the REST service. All sources share it.
func (s *Sources) Dialect() *dialect.Dialect { return s.dialect }

// Waits returns a function that returns the pause that the service has asked for (poller.Config.Waits). It
// is nil unless r is read over REST.
func (s *Sources) Waits(r *schemas.Resource) func() (why string, since, until time.Time) {
	if s.resources[r.Name].Source != config.REST {
		return nil
	}
	return func() (why string, since, until time.Time) { return s.service.Waits(r.Path) }
}

// Service is how the REST service is reached now: the rate that it allows, its clock.
func (s *Sources) Service() client.State { return s.service.State() }
