package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/storestream/storestream/internal/servers"
)

// apacheLoads measures the first loads with Apache Kafka as the broker, and counts the segments that record times make.
func apacheLoads(ctx context.Context, s *stage, t *table) error {
	if !s.kafka {
		return nil
	}
	if err := s.shop(ctx); err != nil {
		return err
	}
	var segments series
	for _, resource := range []string{"orders", "order_items"} {
		err := s.loadsOf(ctx, t, resource, " (Apache Kafka)", func(ctx context.Context) (*broker, error) {
			k, err := servers.StartKafka(ctx, servers.KafkaConfig{})
			if err != nil {
				return nil, err
			}
			r, err := servers.StartRegistry(0)
			if err != nil {
				return nil, errors.Join(err, k.Stop())
			}
			return &broker{addr: k.Brokers()[0], registry: r.URL, pid: k.Pid(), stop: func() error {
				if files, err := filepath.Glob(filepath.Join(k.Data(), "store."+resource+"-0", "*.log")); err == nil && resource == "orders" {
					segments.add(float64(len(files)))
				}
				return errors.Join(r.Stop(), k.Stop())
			}}, nil
		})
		if err != nil {
			return err
		}
	}
	t.add("segments of a partition after a first load of three years (Apache Kafka)", "", segments, "%.0f")
	return nil
}
