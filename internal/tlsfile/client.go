package tlsfile

import (
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"

	"github.com/storestream/storestream/internal/rotation"
)

// Client is the TLS side of a client whose files may change while it runs. A new connection uses their
// present content. Open connections stay as they are.
type Client struct {
	Files
	config *rotation.Value[*tls.Config]
	shown  atomic.Pointer[[]*x509.Certificate]
}

// Config is the configuration for a new connection. It is the same pointer until a file changes.
func (c *Client) Config() *tls.Config { return c.config.Get() }

// Shown returns the certificates that a server showed last and that were accepted. c may be nil.
func (c *Client) Shown() []*x509.Certificate {
	if c == nil || c.shown.Load() == nil {
		return nil
	}
	return *c.shown.Load()
}
