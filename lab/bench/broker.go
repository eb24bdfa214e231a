package main

import (
	"context"
	"fmt"
	"io"

	"github.com/storestream/storestream/internal/servers"
)

// serveBroker is the process of the embedded broker and the registry: it says where they listen, and ends with ctx.
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
