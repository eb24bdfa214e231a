package httpclient

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/tlsfile"
)

const (
	// maxConnections is the most connections to one host: one for a request of each resource.
	maxConnections = 8
	// maxHeader limits the headers of an answer, in bytes. Go's own limit is 10 MiB, for each connection.
	maxHeader = 256 << 10
	// shortestPing is longer than a round trip to any server takes. A shorter wait would close connections that
	// work.
	shortestPing = time.Second
)

// New returns a client. It goes through the proxy that the environment names. timeout limits a request and
// its answer.
//
// A connection uses the present content of files; without files it trusts the authorities of the system. If
// a server's or the client's certificate is refused, the error holds a *tlsfile.HandshakeError.
//
// The client follows no redirect, because net/http would send credentials along to any port and scheme of
// the same host. The error then is a *RedirectError.
func New(files *tlsfile.Client, timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout,
		Transport: &transport{files: files, ping: max(timeout/4, shortestPing)},
		CheckRedirect: func(req *http.Request, _ []*http.Request) error {
			return &RedirectError{To: req.URL.Scheme + "://" + req.URL.Host}
		}}
}

// RedirectError is a redirect that was not followed. To does not show the path, which may hold anything.
// Often is set if redirects within the same address were followed before it.
type RedirectError struct {
	To    string
	Often bool
}

func (e *RedirectError) Error() string {
	if e.Often {
		return fmt.Sprintf("it redirects to %s, its own address, again and again: perhaps a loop", e.To)
	}
	return fmt.Sprintf("it redirects to %s, which is not followed: the credentials would go with the request",
		e.To)
}

// transport sends requests over connections of the TLS configuration that is in force. net/http keeps the
// configuration that it is given, so there is one http.Transport after the other.
type transport struct {
	files *tlsfile.Client // may be nil
	ping  time.Duration

	mu      sync.Mutex
	config  *tls.Config // that current was made with
	current *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.now().RoundTrip(req)
	if err != nil && t.files != nil {
		err = t.files.Explain(err)
	}
	return resp, err
}

// CloseIdleConnections is called by http.Client.
func (t *transport) CloseIdleConnections() { t.now().CloseIdleConnections() }

// now returns the transport for the present content of the files. Requests that an earlier transport has in
// hand go on there. Its connections close when they have been idle for a while.
//
// A transport finds out within half of the timeout that a connection is dead. Over HTTP/2 all requests share
// one connection, and a request that times out leaves it open, because the others may be well. Without pings
// every request would go into the dead connection until the kernel gives it up, a quarter of an hour later.
func (t *transport) now() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	var config *tls.Config
	if t.files != nil {
		config = t.files.Config()
	}
	if t.current == nil || config != t.config {
		if t.current != nil {
			t.current.CloseIdleConnections()
		}
		made := http.DefaultTransport.(*http.Transport).Clone()
		made.TLSClientConfig = config.Clone()
		made.MaxConnsPerHost, made.MaxIdleConnsPerHost = maxConnections, maxConnections
		made.MaxResponseHeaderBytes = maxHeader
		made.HTTP2 = &http.HTTP2Config{SendPingTimeout: t.ping, PingTimeout: t.ping}
		t.config, t.current = config, made
	}
	return t.current
}
