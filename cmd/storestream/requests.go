package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// ask asks the running instance for the same of each resource, and returns the ids of the requests.
func ask(ctx context.Context, cluster *producer.Cluster, resources []string, r watermark.Request) (
	[]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	r.By, r.At = whoAmI(), schemas.InstantOf(time.Now())
	var ids []int64
	for i, name := range resources {
		r.Resource = name
		id, err := cluster.Requests().Ask(ctx, r)
		if err != nil {
			asked := "none was asked for"
			if i > 0 {
				asked = "asked for already: " + strings.Join(resources[:i], ", ")
			}
			return nil, fmt.Errorf("asking for a %s of %s (%s): %w", r.Kind, name, asked, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// whoAmI goes into a request, so that others know whom to ask: user@host.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
