package main

import (
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas/registry"
)

// instanceName tells the processes of a deployment apart, for people: host and process id.
var instanceName = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
})

// openCluster prepares the Kafka cluster of a configuration. It does not wait for a broker.
func openCluster(cfg *config.Config, log *zap.Logger) (*producer.Cluster, error) {
	return openMeasured(cfg, log, nil)
}

// openMeasured is openCluster with clients whose work is counted; nil: it is not.
func openMeasured(cfg *config.Config, log *zap.Logger, counts *metrics.Kafka) (*producer.Cluster, error) {
	registry, err := newRegistry(cfg)
	if err != nil {
		return nil, err
	}
	return producer.Open(producer.Config{
		Brokers: cfg.Kafka.Brokers, TopicPrefix: cfg.Kafka.TopicPrefix, Partitions: cfg.Kafka.Partitions, ReplicationFactor: cfg.Kafka.ReplicationFactor,
		Group: cfg.Kafka.Group, Instance: instanceName(), TLS: producer.TLS(cfg.Kafka.TLS),
		SASL:     producer.SASL{Mechanism: cfg.Kafka.SASL.Mechanism, Username: cfg.Kafka.SASL.Username, Password: string(cfg.Kafka.SASL.Password)},
		Registry: registry, AutoRegister: cfg.Registry.AutoRegister, Log: log, Metrics: counts,
	})
}

func newRegistry(cfg *config.Config) (*registry.Client, error) {
	return registry.New(cfg.Registry.URL, cfg.Registry.Username, string(cfg.Registry.Password))
}
