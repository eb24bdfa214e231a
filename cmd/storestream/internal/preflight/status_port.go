package preflight

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
)

// tryStatusPort tries the port of the status page. Where a running storestream has it, that is as it should
// be, and what its resources fail with is said.
func tryStatusPort(ctx context.Context, c Config, f *findings) {
	listen := c.Settings.HTTP.Listen
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err == nil {
		_ = l.Close() // it was only tried
		f.ok("", "%s is free for the status page", listen)
		return
	}
	resources, ok := runningAt(ctx, c.Settings.HTTP)
	switch {
	case errors.Is(err, syscall.EACCES):
		f.fail("", err, "a port below 1024 takes root or the capability CAP_NET_BIND_SERVICE: set http.listen to "+
			"another one, such as 127.0.0.1:8080")
		return
	case !ok:
		f.fail("", err, "stop what has the port, or set http.listen to another one")
		return
	}
	f.ok("", "%s is a running storestream's", listen)
	for _, r := range resources {
		switch r.State {
		case health.Failing, health.Blocked, health.Stalled, health.Unowned:
			f.add(Warning, r.Name, r.Remedy, "its page says %s: %s", r.State, r.Why)
		case health.SettlingDelayed:
			f.add(Note, r.Name, r.Remedy, "its page says %s: %s", r.State, r.Why)
		}
	}
}

// runningAt asks the storestream at a port of this machine for its resources. It is false if another program
// is there.
func runningAt(ctx context.Context, c config.HTTP) ([]health.Resource, bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	scheme, transport := "http", &http.Transport{}
	defer transport.CloseIdleConnections()
	if c.TLS.CertFile != "" {
		own, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile)
		if err != nil {
			return nil, false
		}
		scheme, transport.TLSClientConfig = "https", onlyPeer(own)
	}
	host, port, _ := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	url := scheme + "://" + net.JoinHostPort(host, port) + "/status.json"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, false
	}
	if c.Token.IsSet() {
		req.Header.Set("Authorization", "Bearer "+c.Token.Get())
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	var s status.Snapshot
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Security-Policy") == "" ||
		json.NewDecoder(resp.Body).Decode(&s) != nil {
		return nil, false
	}
	return s.Resources, true
}

// onlyPeer accepts own and no other certificate: its names are those that readers use, not that of loopback.
func onlyPeer(own tls.Certificate) *tls.Config {
	verify := func(s tls.ConnectionState) error {
		if !bytes.Equal(s.PeerCertificates[0].Raw, own.Certificate[0]) {
			return errors.New("another certificate than that of http.tls")
		}
		return nil
	}
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: verify} //nolint:gosec // verify does
}
