package preflight

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
)

// trySecurity says by the settings which connections are in clear or go to servers that are not verified, and
// who may read the status page and the files with secrets. The parts that connect warn of certificates that
// end soon, and trySecurity of our own.
func trySecurity(ctx context.Context, c Config, f *findings) {
	s := c.Settings
	for _, e := range s.Exposed() {
		f.add(Warning, e.Connection, e.Key+": "+e.Remedy(), "to %s %s", strings.Join(e.Hosts, ", "), e.Risk())
	}
	if len(f.soFar()) == 0 {
		f.ok("", "each connection to another machine is encrypted, and its server verified")
	}
	if s.HTTP.InClear() {
		f.add(Warning, "status", "listen on 127.0.0.1, or set http.tls and http.token",
			"the status page at %s can be read from other machines, without a token or in clear", s.HTTP.Listen)
	}
	if login := s.Kafka.SASL; login.Mechanism == config.OAuthBearer {
		f.peer(ctx, "kafka.sasl.token_url", connect.Tokens(s), login.TokenURL)
	}
	f.files(c)
}

// handshakes returns a context for HTTP requests. It warns of the certificates that their servers show.
func (f *findings) handshakes(ctx context.Context, about string) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(state tls.ConnectionState, _ error) { f.expiry(about, state.PeerCertificates) }})
}

// peer warns of the certificate of an https address. The request carries no credential.
func (f *findings) peer(ctx context.Context, about string, client *http.Client, address string) {
	req, err := http.NewRequestWithContext(f.handshakes(ctx, about), http.MethodHead, address, nil)
	if err != nil {
		return
	}
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if handshake, ok := errors.AsType[*tlsfile.HandshakeError](err); ok { // others the part "kafka" reports
		f.fail(about, handshake)
	}
}

// files warns of files with secrets that everybody may read, and of our own certificates that end soon.
func (f *findings) files(c Config) {
	for _, e := range c.Settings.Entries() {
		path, isFile := strings.CutPrefix(e.Value, "file:")
		d, err := dsn.Parse(e.Value)
		if passwords, ok := d.PasswordFile(); err == nil && ok {
			path, isFile = passwords, true
		}
		switch {
		case isFile, strings.HasSuffix(e.Key, ".key_file"):
			f.mode(e.Key, path)
		case strings.HasSuffix(e.Key, ".cert_file"):
			f.ownCertificate(e.Key, path)
		case strings.Contains(e.Value, rotation.Mask) && strings.HasPrefix(e.From, filepath.Base(c.File)+":"):
			f.mode("file", c.File)
		}
	}
	if d, err := dsn.Parse(c.Settings.Postgres.DSN.Get()); err == nil {
		f.mode("postgres.dsn", d["sslkey"])
		f.ownCertificate("postgres.dsn", d["sslcert"])
	}
}

func (f *findings) mode(about, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		f.add(Warning, about, "chmod 600 "+path+" (Kubernetes: defaultMode: 0400)",
			"everybody on this machine may read %s, which holds a secret", path)
	}
}

func (f *findings) ownCertificate(about, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return // there is none, or loading the configuration said so
	}
	if chain, err := tlsfile.Certificates(text); err == nil {
		f.expiry(about, chain)
	}
}

// tryStatusPort tries to listen where the status page is to be. A running instance may have the port.
func tryStatusPort(ctx context.Context, c Config, f *findings) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Settings.HTTP.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		f.add(Note, "", "if no instance of yours runs on this machine, stop the program that has it, or set "+
			"http.listen to another one", "%s is in use", c.Settings.HTTP.Listen)
	case err != nil:
		f.fail("", err)
	default:
		_ = l.Close() // it was only tried
		f.ok("", "%s is free for the status page", c.Settings.HTTP.Listen)
	}
}
