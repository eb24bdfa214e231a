package main

import (
	"context"
	"errors"

	"github.com/storestream/storestream/internal/servers"
)

// apache starts an Apache Kafka, one node, and a registry: a new, empty one for each run.
func (s *stage) apache(ctx context.Context) (*broker, error) {
	k, err := servers.StartKafka(ctx, servers.KafkaConfig{})
	if err != nil {
		return nil, err
	}
	r, err := servers.StartRegistry(0)
	if err != nil {
		return nil, errors.Join(err, k.Stop())
	}
	return &broker{addr: k.Brokers()[0], registry: r.URL, pid: k.Pid(), data: k.Data(), stop: func() error { return errors.Join(r.Stop(), k.Stop()) }}, nil
}

// apacheLoads measures the first loads with Apache Kafka as the broker.
func apacheLoads(ctx context.Context, s *stage, t *table) error {
	if !s.kafka {
		return nil
	}
	if err := s.shop(ctx); err != nil {
		return err
	}
	for _, resource := range []string{"orders", "order_items"} {
		if err := s.loadsOf(ctx, t, resource, " (Apache Kafka)", s.apache); err != nil {
			return err
		}
	}
	return nil
}
