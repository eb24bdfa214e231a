package tlsfile

import (
	"crypto/tls"
	"net/http"
	"sync"

	"github.com/storestream/storestream/internal/rotation"
)

// Client is the TLS side of a client whose files may change while it runs: a connection that is made uses
// what they hold at that moment. Connections that are open stay as they are.
type Client struct {
	files  Files
	config *rotation.Value[*tls.Config]
}

// Config is what a connection is made with now: the same one for as long as the files hold the same.
func (c *Client) Config() *tls.Config { return c.config.Get() }

// Explain is that of the files.
func (c *Client) Explain(err error) error { return c.files.Explain(err) }

// Transport sends requests over connections that are secured as the files say. one makes what does so with
// one configuration, and is called again when that has changed: net/http keeps the one that it is given.
func (c *Client) Transport(one func(*tls.Config) *http.Transport) http.RoundTripper {
	return &transport{client: c, one: one}
}

// transport is the transport of the configuration in use, and what makes the next.
type transport struct {
	client *Client
	one    func(*tls.Config) *http.Transport

	mu      sync.Mutex
	config  *tls.Config
	current *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.now().RoundTrip(req)
}

// CloseIdleConnections is what http.Client calls.
func (t *transport) CloseIdleConnections() { t.now().CloseIdleConnections() }

// now is the transport for what the files hold now. Requests that the one before has in hand go on there; its
// connections close when they have been idle for a while.
func (t *transport) now() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if config := t.client.Config(); config != t.config {
		if t.current != nil {
			t.current.CloseIdleConnections()
		}
		t.config, t.current = config, t.one(config.Clone())
	}
	return t.current
}
