package preflight

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/loopback"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/poller/postgres"
)

// expiresSoon is how long before a certificate's end it is worth a warning.
const expiresSoon = 30 * 24 * time.Hour

// security says what each connection is protected by. The clients do not tell, so it connects for itself, and
// sends no credential but PostgreSQL's, which the client sends too.
type security struct {
	c     Config
	found *findings
}

// trySecurity tries all connections side by side: one that is taken and not answered uses up the part's time.
func trySecurity(ctx context.Context, c Config, f *findings) {
	looks := []func(security, context.Context){security.postgres}
	for _, broker := range c.Settings.Kafka.Brokers {
		looks = append(looks, func(s security, ctx context.Context) { s.broker(ctx, broker) })
	}
	looks = append(looks, security.tokens, security.registry, security.store)
	found := make([]findings, len(looks))
	var trials sync.WaitGroup
	for i, look := range looks {
		found[i].part = f.part
		trials.Go(func() { look(security{c: c, found: &found[i]}, ctx) })
	}
	trials.Wait()
	for i := range found {
		for _, one := range found[i].all {
			if !slices.Contains(f.all, one) { // of two brokers the same may be to be said
				f.all = append(f.all, one)
			}
		}
	}
	s := security{c: c, found: f}
	s.status()
	s.files()
}

func (s security) registry(ctx context.Context) {
	r, login := s.c.Settings.Registry, noLogin
	switch {
	case r.Token.IsSet():
		login = "bearer token"
	case r.Username != "":
		login = "user " + r.Username + " with a password (basic)"
	}
	s.site(ctx, "registry", r.URL, login, r.TLS.Files("registry.tls"))
}

func (s security) store(ctx context.Context) {
	store, login := s.c.Settings.Store, "a key that it fetches there"
	if store.APIKey.IsSet() {
		login = "the key of store.api_key"
	}
	s.site(ctx, "store", store.BaseURL, login, store.TLS.Files("store.tls"))
}

// link is one connection as it was found.
type link struct {
	about, host, login string
	tls                *tls.ConnectionState // nil: in clear
	unverified         string               // the setting by which any certificate will do; "": none
	anyName            string               // the setting by which one for any host will do; "": none
	do                 string               // how it gets TLS, and a name that is verified
}

// say adds the finding about a connection.
func (s security) say(l link) {
	if l.tls == nil {
		if l.host == "" || strings.HasPrefix(l.host, "/") || loopback.Is(l.host) {
			s.found.ok(l.about, "in clear, which does not leave this machine; %s", l.login)
			return
		}
		s.found.add(Warning, l.about, l.do, "in clear to %s: who is on the way there reads it%s; %s",
			l.host, exception("security.allow_plaintext", s.c.Settings.Plaintext(), l.about), l.login)
		return
	}
	peer := l.tls.PeerCertificates[0]
	excepted := exception("security.allow_unverified", s.c.Settings.Unverified(), l.about, l.unverified)
	about := fmt.Sprintf("%s with %s (%s), signed by %q, until %s; %s", tls.VersionName(l.tls.Version), l.host,
		strings.Join(peerNames(peer), ", "), peer.Issuer.String(), peer.NotAfter.UTC().Format(time.DateOnly),
		l.login)
	switch {
	case l.unverified != "":
		s.found.add(Warning, l.about, "have it verified, by the authority that signs it",
			"%s: the server's identity is not verified because of %s%s", about, l.unverified, excepted)
	case l.anyName != "":
		s.found.add(Warning, l.about, l.do, "%s: the authority is verified and the host's name is not, by %s: "+
			"any server with a certificate of that authority may answer%s", about, l.anyName, excepted)
	default:
		s.found.ok(l.about, "%s", about)
	}
	for _, c := range l.tls.PeerCertificates {
		s.expiry(l.about, c)
	}
}

// exception names the exception that permits a connection. names are the connection's name and the setting
// that makes it an exception.
func exception(setting string, excepted []config.Exposed, names ...string) string {
	for _, e := range excepted {
		if slices.Contains(names, e.Connection) || slices.Contains(names, e.Key) {
			return ", the credential too (" + setting + ")"
		}
	}
	return ""
}

func peerNames(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		names = []string{fmt.Sprintf("%q", c.Subject.CommonName)}
	}
	return names[:min(len(names), 5)]
}

func (s security) expiry(about string, c *x509.Certificate) {
	until, day := time.Until(c.NotAfter), c.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case until < 0:
		s.found.add(Warning, about, "have it renewed", "the certificate of %q expired on %s", c.Subject.String(),
			day)
	case until < expiresSoon:
		s.found.add(Warning, about, "have it renewed", "the certificate of %q expires on %s", c.Subject.String(),
			day)
	}
}

// failed reports a connection that was not made if its certificate is the reason. For other reasons the
// connection's own part reports it.
func (s security) failed(about string, files tlsfile.Files, err error) {
	if handshake, ok := errors.AsType[*tlsfile.HandshakeError](files.Explain(err)); ok {
		s.found.fail(about, handshake, "")
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		s.found.add(Note, about, "look at what listens there: one that expects no TLS may wait as it does",
			"cannot tell what protects it: it has not answered in time")
		return
	}
	s.found.add(Note, about, "", "cannot tell what protects it: there is no connection")
}

// postgres connects as the client does, and notes which credentials the server asks for.
func (s security) postgres(ctx context.Context) {
	d, err := dsn.Parse(s.c.Settings.Postgres.DSN.Get())
	if err != nil {
		return // there is none
	}
	var heard bytes.Buffer
	conn, c, err := postgres.Connect(ctx, d, &heard)
	switch {
	case c == nil:
		s.found.fail("postgres", err, "")
		return
	case err != nil:
		s.failed("postgres", tlsfile.Files{Section: "postgres.dsn"}, err)
		return
	}
	defer conn.Close(ctx)
	l := link{about: "postgres", host: c.Host, do: "set sslmode=verify-full in postgres.dsn",
		login: fmt.Sprintf("role %s by %s", c.User, asked(heard.Bytes()))}
	if strings.Contains(d.Value("host"), ",") { // it may be another than the first
		l.host = remote(conn.Conn())
	}
	inClear := d.InClear()
	switch mode := d.Mode(); mode {
	case dsn.VerifyFull:
	case dsn.VerifyCA:
		l.anyName = "sslmode=" + mode + " (which require means too, where a sslrootcert is named)"
	case dsn.Prefer:
		if len(inClear) > 0 { // else the settings do not ask for more
			l.unverified = "sslmode=" + mode
		}
	default:
		l.unverified = "sslmode=" + mode
	}
	if conn, ok := conn.Conn().(*tls.Conn); ok {
		state := conn.ConnectionState()
		l.tls = &state
	} else if len(inClear) > 0 { // any of the hosts may have answered this time
		l.host = strings.Join(inClear, ", ")
	}
	s.say(l)
}

// remote is the host that a connection leads to: its address, or a socket's path.
func remote(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

// asked is how a PostgreSQL server wanted to know who logs in, from the messages that it sent.
func asked(heard []byte) string {
	const head = 5 // the type and the length
	for len(heard) >= head {
		size := int(binary.BigEndian.Uint32(heard[1:head])) + 1
		if heard[0] == 'R' && size >= head+4 && len(heard) >= size {
			switch binary.BigEndian.Uint32(heard[head:]) {
			case pgproto3.AuthTypeCleartextPassword:
				return "cleartext password"
			case pgproto3.AuthTypeMD5Password:
				return "md5 password"
			case pgproto3.AuthTypeSASL:
				return strings.ToLower(string(bytes.SplitN(heard[head+4:size], []byte{0}, 2)[0]))
			case pgproto3.AuthTypeOk:
				return "nothing that it was asked for (trust, peer or its certificate)"
			}
		}
		heard = heard[min(max(size, head), len(heard)):]
	}
	return "what it does not say"
}

// broker tries one that the settings name.
func (s security) broker(ctx context.Context, broker string) {
	k := s.c.Settings.Kafka
	login, files := noLogin, k.TLS.Files("kafka.tls")
	if k.SASL.Mechanism != "" {
		login = "SASL " + k.SASL.Mechanism
	}
	host, _, _ := net.SplitHostPort(broker)
	l := link{about: "kafka", host: host, login: certified(login, files), do: "set kafka.tls.enabled"}
	if k.TLS.Enabled {
		conf, err := files.Config()
		if err == nil {
			l.tls, err = shake(ctx, conf, broker)
		}
		if err != nil {
			s.failed("kafka", files, err)
			return
		}
		if k.TLS.InsecureSkipVerify {
			l.unverified = "kafka.tls.insecure_skip_verify"
		}
	}
	s.say(l)
}

// noLogin is a connection on which storestream does not say who it is.
const noLogin = "no login"

// certified adds the client's certificate to what storestream logs in by.
func certified(login string, files tlsfile.Files) string {
	switch {
	case files.CertFile == "":
		return login
	case login == noLogin:
		return "a client's certificate"
	}
	return login + " and a client's certificate"
}

// tokens tries the endpoint of OAUTHBEARER.
func (s security) tokens(ctx context.Context) {
	if login := s.c.Settings.Kafka.SASL; login.Mechanism == config.OAuthBearer {
		s.site(ctx, "kafka.sasl.token_url", login.TokenURL, "client "+login.ClientID+" with its secret",
			login.TokenTLS.Files("kafka.sasl.token_tls"))
	}
}

// shake connects to an address by TLS, and sends nothing.
func shake(ctx context.Context, conf *tls.Config, address string) (*tls.ConnectionState, error) {
	conn, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	return &state, nil
}

// errSeen ends a handshake once the certificate was seen. No request is sent.
var errSeen = errors.New("seen")

// site tries an http or https address, by the proxy that its requests go by.
func (s security) site(ctx context.Context, about, address, login string, files tlsfile.Files) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return
	}
	if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy != nil {
		s.found.add(Note, about, "", "requests go by the proxy %s (HTTP_PROXY, HTTPS_PROXY)", proxy.Host)
	}
	l := link{about: about, host: u.Hostname(), login: certified(login, files), do: "use its https address"}
	if u.Scheme != "https" {
		s.say(l)
		return
	}
	conf, err := files.Config()
	if err != nil {
		s.failed(about, files, err)
		return
	}
	conf.VerifyConnection = func(state tls.ConnectionState) error {
		l.tls = &state
		return errSeen
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close() // never: the handshake was ended
	}
	if l.tls == nil {
		s.failed(about, files, err)
		return
	}
	if files.InsecureSkipVerify {
		l.unverified = files.Section + ".insecure_skip_verify"
	}
	s.say(l)
}

// status says who may read the page.
func (s security) status() {
	h := s.c.Settings.HTTP
	host, _, _ := net.SplitHostPort(h.Listen)
	what, login := "in clear", "whoever reaches it"
	if h.TLS.CertFile != "" {
		what = "by TLS"
	}
	if h.Token.IsSet() {
		login = "who has http.token"
	}
	if loopback.Is(host) {
		s.found.ok("status", "listens on this machine alone, %s, for %s", what, login)
		return
	}
	if h.TLS.CertFile != "" && h.Token.IsSet() {
		s.found.ok("status", "listens at %s, %s, for %s", h.Listen, what, login)
		return
	}
	s.found.add(Warning, "status", "listen on 127.0.0.1, or set http.tls and http.token",
		"listens at %s, beyond this machine, %s, for %s", h.Listen, what, login)
}

// files looks at who may read the files that secrets stand in, and at the ends of our own certificates.
func (s security) files() {
	inline := false
	for _, e := range s.c.Settings.Entries() {
		path, isSecret := strings.CutPrefix(e.Value, "file:")
		if d, err := dsn.Parse(e.Value); !isSecret && e.Key == "postgres.dsn" && err == nil {
			path, isSecret = d.PasswordFile()
		}
		switch {
		case isSecret, strings.HasSuffix(e.Key, ".key_file") && e.Value != "":
			s.mode(e.Key, path, e.Key)
		case strings.HasSuffix(e.Key, ".cert_file") && e.Value != "":
			s.ownCertificate(e.Key, e.Value)
		case strings.Contains(e.Value, rotation.Mask) && strings.HasPrefix(e.From, filepath.Base(s.c.File)+":"):
			inline = true
		}
	}
	if d, err := dsn.Parse(s.c.Settings.Postgres.DSN.Get()); err == nil && d.Value("sslkey") != "" {
		s.mode("postgres.dsn", d.Value("sslkey"), "the key of its sslkey")
		s.ownCertificate("postgres.dsn", d.Value("sslcert"))
	}
	if inline && s.c.File != "" {
		s.mode("file", s.c.File, "secrets")
	}
}

func (s security) mode(about, path, what string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		s.found.add(Warning, about, "chmod 600 "+path+" (Kubernetes: defaultMode: 0400)",
			"everybody on this machine may read %s, in which %s stands", path, what)
	}
}

func (s security) ownCertificate(about, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return // loading the configuration said so
	}
	if chain, err := tlsfile.Certificates(text); err == nil {
		s.expiry(about, chain[0])
	}
}
