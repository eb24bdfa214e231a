package producer

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/storestream/storestream/internal/tlsfile"
)

const dialTimeout = 5 * time.Second

// dialing is how a client opens connections. Over TLS every error of a handshake says which certificate is
// wrong, in the log as well. Where a broker asks for a certificate, that comes with the first answer (TLS
// 1.3). Certificates
// are those that the files hold now. A secret goes to another machine only over TLS, unless the configuration
// allows plaintext. Each broker is checked, because the configuration names only the first ones.
func dialing(secured *tlsfile.Client, login SASL) func(ctx context.Context, network, host string) (
	net.Conn, error) {
	if secured == nil {
		plain := &net.Dialer{Timeout: dialTimeout}
		return func(ctx context.Context, network, host string) (net.Conn, error) {
			if name, _, err := net.SplitHostPort(host); err == nil && login.exposes(name) {
				return nil, fmt.Errorf("broker %s is another machine, and %s sends its secret unencrypted: set "+
					"kafka.tls.enabled, or security.allow_plaintext: [kafka]", host, login.Mechanism)
			}
			return plain.DialContext(ctx, network, host)
		}
	}
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: secured.Config()}
		conn, err := dialer.DialContext(ctx, network, host)
		if err != nil {
			return nil, secured.Explain(err)
		}
		return explainedConn{conn, secured}, nil
	}
}

// Reach connects to one of Config.Brokers as every client does, and does not log in.
func Reach(ctx context.Context, c *Cluster, broker string) error {
	conn, err := c.dial(ctx, "tcp", broker)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// explainedConn is a connection whose first errors may still be of the handshake.
type explainedConn struct {
	net.Conn
	secured *tlsfile.Client
}

// Read implements net.Conn.
func (c explainedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.secured.Explain(err)
}
