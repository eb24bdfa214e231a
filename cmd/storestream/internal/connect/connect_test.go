package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/schemas"
)

// dialectOf is the dialect of the sources that the settings describe.
func dialectOf(t *testing.T, settings ...string) *dialect.Dialect {
	t.Helper()
	cfg, err := config.Load(config.Input{Set: settings})
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenSources(cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Dialect()
}

// The configuration spells out the values that package dialect knows.
func TestEachValueOfADialectCanBeSetAndNoOther(t *testing.T) {
	for _, p := range dialect.Properties() {
		for value := range p.Means {
			if got := dialectOf(t, "store.dialect."+p.Name+"="+value).Value(p); got != value {
				t.Errorf("%s is set to %s, not to %s", p.Name, got, value)
			}
		}
		if got := dialectOf(t).Value(p); got != "" {
			t.Errorf("%s is known from the start: %s", p.Name, got)
		}
		_, err := config.Load(config.Input{Set: []string{"store.dialect." + p.Name + "=lunar"}})
		if err == nil || !strings.Contains(err.Error(), "store.dialect."+p.Name) {
			t.Errorf("%s is set to lunar: %v", p.Name, err)
		}
	}
}

// peer is a real server behind TLS, and how a configuration that names it is tried.
type peer struct {
	name    string
	section string // of its keys
	// start returns the settings that name it, and what ends the connections that it has.
	start func(*testing.T, *tls.Config) (settings []string, cut func())
	open  func(*testing.T, *config.Config) (try func(context.Context) error)
}

var peers = []peer{
	{"store", "store.tls", func(t *testing.T, c *tls.Config) ([]string, func()) {
		t.Helper()
		fake, err := storefake.Start(t.Context(), storefake.Config{Seed: 1,
			Size: storefake.Size{Users: 3, Orders: 3, Products: 3}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fake.Close)
		address, cut := encrypted(t, fake.BaseURL(), c)
		return []string{"store.base_url=" + address, "store.request_timeout=4s"}, cut
	}, openService},
	{"registry", "registry.tls", func(t *testing.T, c *tls.Config) ([]string, func()) {
		t.Helper()
		address, cut := encrypted(t, servers.RegistryForTest(t).URL, c)
		return []string{"registry.url=" + address}, cut
	}, openRegistry},
	{"kafka", "kafka.tls", func(t *testing.T, c *tls.Config) ([]string, func()) {
		t.Helper()
		_, settings, cut := brokerThatCuts(t, kfake.TLS(c))
		return append(settings, "kafka.tls.enabled=true"), cut
	}, openKafka},
	{"tokens", "kafka.tls", func(t *testing.T, c *tls.Config) ([]string, func()) {
		t.Helper()
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token":"good","expires_in":1}`) // so each login fetches another
		}))
		t.Cleanup(endpoint.Close)
		address, cutEndpoint := encrypted(t, endpoint.URL, c)
		broker, settings, cutBroker := brokerThatCuts(t)
		broker.AskForToken("good")
		secret := servers.MountForTest(t, t.TempDir(), map[string]string{"secret": "s3cret"}).Path("secret")
		settings = append(settings, "kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.token_url="+address,
			"kafka.sasl.username=stream", "kafka.sasl.password=file:"+secret)
		return settings, func() { cutEndpoint(); cutBroker() }
	}, openKafka},
}

// encrypted puts TLS before a server, over HTTP/2 too.
func encrypted(t *testing.T, address string, c *tls.Config) (secured string, cut func()) {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	path := to.Path
	to.Path = ""
	s := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(to))
	s.EnableHTTP2, s.TLS = true, c
	s.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	s.StartTLS()
	t.Cleanup(s.Close)
	line := servers.LineForTest(t, s.Listener.Addr().String())
	return "https://" + line.Addr() + path, line.Cut
}

// brokerThatCuts is a broker that can end its connections, and the setting that names it.
func brokerThatCuts(t *testing.T, options ...kfake.Opt) (*servers.Broker, []string, func()) {
	t.Helper()
	line := &cutter{}
	broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: options,
		Listen: func(network, address string) (net.Listener, error) {
			var err error
			line.Listener, err = net.Listen(network, address)
			return line, err
		}})
	return broker, []string{"kafka.brokers=" + broker.Brokers()[0]}, line.cut
}

// cutter is a listener that can end the connections that were made through it.
type cutter struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

func openService(t *testing.T, cfg *config.Config) func(context.Context) error {
	t.Helper()
	s, err := OpenSources(cfg, zap.NewNop(), func(c *client.Config) { c.Attempts = 1 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	products := s.service.Endpoint(declared(t, "products").Path, func(string) {}, func(float64) {})
	return func(ctx context.Context) error {
		defer products.Release()
		_, err := products.Page(ctx, "updated_to=2026-11-20&page=0&page_size=1", 0)
		return err
	}
}

func openRegistry(t *testing.T, cfg *config.Config) func(context.Context) error {
	t.Helper()
	c, err := Registry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	orders := declared(t, "orders")
	return func(ctx context.Context) error {
		_, _, err := c.Ensure(ctx, "store.orders", orders, true, false)
		return err
	}
}

func openKafka(t *testing.T, cfg *config.Config) func(context.Context) error {
	t.Helper()
	c, err := Kafka(cfg, "test", zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.Ping
}

func declared(t *testing.T, resource string) *schemas.Resource {
	t.Helper()
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return set.Get(resource)
}

// tlsCase is a server's certificate, what the client is given, and what it must say ("": it connects).
type tlsCase struct {
	name   string
	server func(*servers.Authority) *tls.Config
	client func(a *servers.Authority) (settings []string) // without the section: ca_file=..., or "unverified"
	says   []string
}

func plainly(a *servers.Authority, c servers.CertificateConfig) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.Issue(c).Pair}, MinVersion: tls.VersionTLS12}
}

func demanding(a *servers.Authority) *tls.Config {
	c := plainly(a, servers.CertificateConfig{})
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, a.Pool
	return c
}

func trusting(a *servers.Authority) []string { return []string{"ca_file=" + a.File} }

func own(a *servers.Authority, c servers.CertificateConfig) []string {
	c.Name = "storestream"
	made := a.Issue(c)
	return append(trusting(a), "cert_file="+made.CertFile, "key_file="+made.KeyFile)
}

var long = time.Date(2024, 2, 3, 4, 5, 0, 0, time.UTC)

var tlsCases = []tlsCase{
	{"a good certificate", func(a *servers.Authority) *tls.Config {
		return plainly(a, servers.CertificateConfig{})
	}, trusting, nil},
	{"an expired one", func(a *servers.Authority) *tls.Config {
		return plainly(a, servers.CertificateConfig{Name: "shop", NotBefore: long.AddDate(-1, 0, 0),
			NotAfter: long})
	}, trusting, []string{"certificate has expired or is not yet valid", "check SECTION"}},
	{"one that is not valid yet", func(a *servers.Authority) *tls.Config {
		return plainly(a, servers.CertificateConfig{NotBefore: time.Date(2100, 1, 2, 0, 0, 0, 0, time.UTC),
			NotAfter: time.Date(2101, 1, 2, 0, 0, 0, 0, time.UTC)})
	}, trusting, []string{"certificate has expired or is not yet valid"}},
	{"one of another name", func(a *servers.Authority) *tls.Config {
		return plainly(a, servers.CertificateConfig{Hosts: []string{"shop.example", "10.1.2.3"}})
	}, trusting, []string{"certificate is valid for 10.1.2.3, not 127.0.0.1"}},
	{"an authority that is not trusted", func(a *servers.Authority) *tls.Config {
		return plainly(a, servers.CertificateConfig{})
	}, func(*servers.Authority) []string { return nil },
		[]string{"certificate signed by unknown authority", "check SECTION"}},
	{"any is good", func(a *servers.Authority) *tls.Config {
		return plainly(a, servers.CertificateConfig{Hosts: []string{"shop.example"}})
	}, func(*servers.Authority) []string { return []string{"unverified"} }, nil},
	{"a client's certificate is asked for", demanding, trusting,
		[]string{"certificate required", "check SECTION"}},
	{"a client's certificate is given", demanding, func(a *servers.Authority) []string {
		return own(a, servers.CertificateConfig{})
	}, nil},
	{"a client's certificate has expired", demanding, func(a *servers.Authority) []string {
		return own(a, servers.CertificateConfig{NotBefore: long.AddDate(-1, 0, 0), NotAfter: long})
	}, []string{"expired certificate"}},
}

func TestACertificateThatIsNotAcceptedIsSaidToBeSoWithWhatToDo(t *testing.T) {
	for _, p := range peers {
		for _, c := range tlsCases {
			t.Run(p.name+"/"+c.name, func(t *testing.T) {
				a := servers.AuthorityForTest(t, t.TempDir())
				set, _ := p.start(t, c.server(a))
				for _, s := range c.client(a) {
					if s == "unverified" {
						connection, _, _ := strings.Cut(p.section, ".")
						set = append(set, "security.allow_unverified="+connection)
						continue
					}
					set = append(set, p.section+"."+s)
				}
				cfg, err := config.Load(config.Input{Set: set})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				try := p.open(t, cfg)
				err = try(ctx)
				// Where the server's word comes after the handshake, net/http may find the connection ended before it
				// reads why. `run` tries again, and so does this.
				for err != nil && c.says != nil && !errors.As(err, new(*tlsfile.HandshakeError)) && ctx.Err() == nil {
					err = try(ctx)
				}
				if (err == nil) != (c.says == nil) {
					t.Fatalf("got %v, expected %q", err, c.says)
				}
				for _, text := range c.says {
					text = strings.ReplaceAll(text, "SECTION", p.section)
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%v\ndoes not say %q", err, text)
					}
				}
			})
		}
	}
}

// The log is where somebody looks first when a broker cannot be reached.
func TestTheLogSaysWhichCertificateOfABrokerIsWrong(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: []kfake.Opt{
		kfake.TLS(plainly(a, servers.CertificateConfig{NotBefore: long.AddDate(-1, 0, 0), NotAfter: long}))}})
	cfg, err := config.Load(config.Input{Set: []string{"kafka.brokers=" + broker.Brokers()[0],
		"kafka.tls.enabled=true", "kafka.tls.ca_file=" + a.File}})
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.WarnLevel)
	c, err := Kafka(cfg, "test", zap.New(core), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.Ping(t.Context())
	for _, line := range logged.All() {
		if strings.Contains(fmt.Sprint(line.ContextMap()), "has expired") {
			return
		}
	}
	t.Errorf("no line of the log says so: %v", logged.All())
}

func TestTheRegistryIsGivenTheTokenAndNoErrorShowsIt(t *testing.T) {
	const token = "correct-horse-battery-staple"
	a := servers.AuthorityForTest(t, t.TempDir())
	var sent string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	s.TLS = plainly(a, servers.CertificateConfig{})
	s.StartTLS()
	defer s.Close()
	cfg, err := config.Load(config.Input{
		Set:     []string{"registry.url=" + s.URL, "registry.tls.ca_file=" + a.File},
		Environ: []string{"STORESTREAM_REGISTRY__TOKEN=" + token}})
	if err != nil {
		t.Fatal(err)
	}
	err = openRegistry(t, cfg)(t.Context())
	if sent != "Bearer "+token || err == nil || strings.Contains(err.Error(), token) ||
		!strings.Contains(err.Error(), "registry.token") {
		t.Errorf("sent %q, got %v", sent, err)
	}
}
