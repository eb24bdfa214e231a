package tlsfile

import (
	"crypto/tls"

	"github.com/storestream/storestream/internal/rotation"
)

// Client is the TLS side of a client whose files may change while it runs. A connection uses what they hold
// when it is made. Connections that are open stay as they are.
type Client struct {
	files  Files
	config *rotation.Value[*tls.Config]
}

// Config is the configuration for a connection that is made now. It is the same pointer for as long as the
// files hold the same.
func (c *Client) Config() *tls.Config { return c.config.Get() }

// Explain is Files.Explain.
func (c *Client) Explain(err error) error { return c.files.Explain(err) }
