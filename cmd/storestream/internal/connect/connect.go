// Package connect makes the clients of what a configuration names: the Kafka cluster, the schema registry,
// and the sources of rows. Nothing here waits: what is down shows when it is first used.
package connect

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/poller/rest"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/paging"
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
	return producer.Open(producer.Config{
		Brokers: k.Brokers, TopicPrefix: k.TopicPrefix, Partitions: k.Partitions,
		ReplicationFactor: k.ReplicationFactor, Group: k.Group, Instance: instance, TLS: producer.TLS(k.TLS),
		SASL: producer.SASL{Mechanism: k.SASL.Mechanism, Username: k.SASL.Username,
			Password: string(k.SASL.Password)},
		TransactionTimeout: k.TransactionTimeout, SessionTimeout: k.SessionTimeout,
		Registry: subjects, AutoRegister: cfg.Registry.AutoRegister, Log: log, Metrics: counts,
	})
}

// Registry is the schema registry of a configuration.
func Registry(cfg *config.Config) (*registry.Client, error) {
	return registry.New(cfg.Registry.URL, cfg.Registry.Username, string(cfg.Registry.Password))
}

// Sources makes the sources of rows that a configuration names. All of them share one REST client, with its
// rate limit, and one pool of database connections.
type Sources struct {
	resources map[string]config.Resource
	service   *client.Client
	zone      rest.Zone // in which the service cuts days, as any source found out
	counts    paging.Counts
	db        *postgres.DB // nil: every resource goes over REST
}

// worth is what store.count means.
var worth = map[string]paging.Counts{config.Exact: paging.ExactCounts,
	config.Estimate: paging.EstimatedCounts, config.Ignore: paging.IgnoredCounts}

// OpenSources prepares the clients. Close ends them.
func OpenSources(cfg *config.Config, log *zap.Logger) (*Sources, error) {
	service, err := client.New(client.Config{
		BaseURL: cfg.Store.BaseURL, APIKey: string(cfg.Store.APIKey),
		MaxRequestsPerSecond: cfg.Store.MaxRequestsPerSecond, RequestTimeout: cfg.Store.RequestTimeout,
		Log: log.With(zap.String("source", config.REST)),
	})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Sources{resources: cfg.Resources, service: service, counts: worth[cfg.Store.Count]}
	if dsn := string(cfg.Postgres.DSN); dsn != "" {
		s.db, err = postgres.Open(postgres.Config{DSN: dsn, MaxConnections: cfg.Postgres.MaxConnections})
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

// New is a new source of r. It remembers nothing of what an earlier one read: every takeover, sweep and
// comparison needs one of its own. doing hears what the source is at, in words for people; nil: nobody wants
// to know.
func (s *Sources) New(r *schemas.Resource, m *metrics.Resource, log *zap.Logger, doing func(string),
) poller.Source {
	c := s.resources[r.Name]
	if c.Source == config.Postgres {
		return postgres.NewSource(s.db, postgres.SourceConfig{
			Resource: r, Overlap: c.Overlap, Start: Start(c), Metrics: m, Log: log, Doing: doing})
	}
	return rest.NewSource(rest.SourceConfig{Resource: r, Client: s.service, Zone: &s.zone, Overlap: c.Overlap,
		Start: Start(c), Counts: s.counts, Metrics: m, Log: log, Doing: doing})
}

// Service is how the REST service is reached now: the rate that it allows, its clock.
func (s *Sources) Service() client.State { return s.service.State() }

// Start is the configured start of a resource, MinInstant where there is none.
func Start(c config.Resource) schemas.Instant {
	if c.Start.IsZero() {
		return schemas.MinInstant
	}
	return schemas.InstantOf(c.Start)
}
