// Package connect makes the clients of what a configuration names: the Kafka cluster, the schema registry,
// and the sources of rows. Nothing here waits: what is down shows when it is first used.
package connect

import (
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/producer"
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
		Registry: subjects, AutoRegister: cfg.Registry.AutoRegister, Log: log, Metrics: counts,
	})
}

// Registry is the schema registry of a configuration.
func Registry(cfg *config.Config) (*registry.Client, error) {
	return registry.New(cfg.Registry.URL, cfg.Registry.Username, string(cfg.Registry.Password))
}
