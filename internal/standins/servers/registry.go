package servers

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// Registry is an embedded schema registry on a port, all in memory. It answers on the paths of Confluent's.
// It never finds schemas incompatible, and accepts schemas that are not Avro. A test that needs more uses
// Fake.Intercept or a real registry.
type Registry struct {
	URL  string
	Fake *srfake.Registry

	server *http.Server
	served chan error
}

// StartRegistry starts an embedded registry on a port. Port 0 stands for a free one.
func StartRegistry(port int) (*Registry, error) {
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		return nil, fmt.Errorf("start the embedded schema registry: %w", err)
	}
	fake := srfake.NewRegistry()
	r := &Registry{
		URL:    "http://" + listener.Addr().String(),
		Fake:   fake,
		server: &http.Server{Handler: fake.Handler(), ReadHeaderTimeout: 10 * time.Second},
		served: make(chan error, 1),
	}
	go func() { r.served <- r.server.Serve(listener) }()
	return r, nil
}

// Stop closes the listener and every connection. A second Stop does nothing.
func (r *Registry) Stop() error {
	err := r.server.Close()
	if served, open := <-r.served; open {
		close(r.served)
		if !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}
	return err
}
