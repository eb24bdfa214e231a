package tlsfile

import (
	"crypto/tls"

	"github.com/storestream/storestream/internal/rotation"
)

// Client is the TLS side of a client whose files may change while it runs. A new connection uses their
// present content. Open connections stay as they are.
type Client struct {
	Files
	config *rotation.Value[*tls.Config]
}

// Config is the configuration for a new connection. It is the same pointer until a file changes.
func (c *Client) Config() *tls.Config { return c.config.Get() }
