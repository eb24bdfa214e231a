package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/storestream/storestream/internal/standins/servers"
)

// broker is a broker and a registry, new and empty.
type broker struct {
	addr, registry string
	pid            int
	stop           func() error
}

// startEmbedded starts the embedded broker and registry in a process of their own.
func startEmbedded(ctx context.Context, s *stage) (*broker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := spawn(s.dir, s.name("broker"), self, nil, "broker")
	if err != nil {
		return nil, err
	}
	line, err := c.ready(ctx)
	if err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	return &broker{addr: line[0], registry: line[1], pid: c.Pid(), stop: c.Kill}, nil
}

// startApache starts an Apache Kafka of one node, and a registry.
func startApache(ctx context.Context, _ *stage) (*broker, error) {
	k, err := servers.StartKafka(ctx, servers.KafkaConfig{})
	if err != nil {
		return nil, err
	}
	r, err := servers.StartRegistry(0)
	if err != nil {
		return nil, errors.Join(err, k.Stop())
	}
	stop := func() error { return errors.Join(r.Stop(), k.Stop()) }
	return &broker{addr: k.Brokers()[0], registry: r.URL, pid: k.Pid(), stop: stop}, nil
}

// serveBroker runs in a process of its own, with the embedded broker and the registry. It prints their
// addresses and ends with ctx.
func serveBroker(ctx context.Context, stdout io.Writer) error {
	broker, err := servers.StartBroker(servers.BrokerConfig{})
	if err != nil {
		return err
	}
	defer func() { _ = broker.Stop() }()
	registry, err := servers.StartRegistry(0)
	if err != nil {
		return err
	}
	defer func() { _ = registry.Stop() }()
	fmt.Fprintf(stdout, "ready %s %s\n", broker.Brokers()[0], registry.URL)
	<-ctx.Done()
	return nil
}
