//go:build kafka

package producer_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas/registry"
)

const secured = servers.SecuredSettings

// issuer is a token endpoint in clear.
type issuer struct {
	*servers.TokenIssuer
	url string
	t   *testing.T
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := servers.TokenIssuerForTest(t)
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	return &issuer{TokenIssuer: i, url: server.URL, t: t}
}

// validating is an Apache Kafka that takes its tokens. a signs the certificate; nil: it has no TLS.
func (i *issuer) validating(maxReauth string, a *servers.Authority) *servers.Kafka {
	i.t.Helper()
	var shown *servers.Certificate
	if a != nil {
		made := a.Issue(servers.CertificateConfig{Name: "broker"})
		shown = &made
	}
	return servers.KafkaForTest(i.t, i.Kafka(i.url, maxReauth, shown))
}

func (i *issuer) login(c *producer.Config) {
	c.SASL = producer.SASL{Mechanism: "OAUTHBEARER", TokenURL: i.url + "/token", Username: "stream",
		Password: rotation.Literal(secret)}
}

func TestApacheKafkaThatValidatesTokensIsWrittenToAndReadFrom(t *testing.T) {
	i := newIssuer(t)
	kafka := i.validating("2000", nil)
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	s.worksBehind(i.login)
	for name, spoil := range map[string]func(){
		"for another service":          func() { i.Audience.Store("another service") },
		"by a key that nobody has yet": func() { i.SignedBy.Store("two") },
	} {
		i.Audience.Store("kafka")
		spoil()
		err := s.cluster(name, i.login).Ping(s.ctx())
		if wantText(t, err, "refuses the token with"); strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v contains the secret", name, err)
		}
		i.SignedBy.Store("one")
	}
}

// As it is in production: the token comes over TLS and goes over TLS, and either end's certificate counts.
func TestATokenGoesToApacheKafkaOverTLS(t *testing.T) {
	a, stranger := servers.AuthorityForTest(t, t.TempDir()), servers.AuthorityForTest(t, t.TempDir())
	i := newIssuer(t)
	endpoint := behindTLS(t, a, i)
	kafka := i.validating("2000", a)
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	login := func(brokers, tokens *servers.Authority) func(*producer.Config) {
		return func(c *producer.Config) {
			i.login(c)
			c.TLS = opened(t, tlsfile.Files{Section: "kafka.tls", CAFile: brokers.File})
			c.SASL.TokenURL = endpoint + "/token"
			c.SASL.TokenHTTP = httpclient.New(opened(t, tlsfile.Files{Section: "kafka.tls",
				CAFile: tokens.File}), producer.TokenTimeout)
		}
	}
	s.worksBehind(login(a, a))
	issued := i.Issued.Load()
	for _, with := range []func(*producer.Config){login(stranger, a), login(a, stranger)} {
		err := s.cluster("b", with).Ping(s.ctx())
		wantText(t, err, "certificate signed by unknown authority", "check kafka.tls,")
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v contains the secret", err)
		}
	}
	if n := i.Issued.Load(); n > issued {
		t.Errorf("%d tokens were fetched for a broker or from an endpoint that nobody trusts", n-issued)
	}
}

// behindTLS is the address of a server with a certificate of a's.
func behindTLS(t *testing.T, a *servers.Authority, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{a.Issue(servers.CertificateConfig{}).Pair}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it are meant to fail
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// Apicurio 2 has no passwords of its own: it leaves logins to an OpenID server, or to what stands before it.
// So a proxy asks for the password and ends TLS here, as one does in production.
func TestAnApicurioBehindTLSAndAPasswordIsUsedLikeAnyOther(t *testing.T) {
	a, stranger := servers.AuthorityForTest(t, t.TempDir()), servers.AuthorityForTest(t, t.TempDir())
	apicurio := servers.ApicurioForTest(t, servers.ApicurioConfig{})
	to, err := url.Parse(apicurio.URL())
	if err != nil {
		t.Fatal(err)
	}
	var password atomic.Value
	password.Store(secret)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	front := behindTLS(t, a, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, given, _ := r.BasicAuth(); user != "stream" || given != password.Load() {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	mount := servers.MountForTest(t, t.TempDir(), map[string]string{"password": secret + "\n"})
	rotated, err := rotation.Follow(nil, "registry.password", mount.Path("password"), nil)
	if err != nil {
		t.Fatal(err)
	}
	with := func(trusted *servers.Authority, password rotation.Secret) func(*producer.Config) {
		files := opened(t, tlsfile.Files{Section: "registry.tls", CAFile: trusted.File})
		client, err := registry.New(registry.Config{URL: front + to.Path,
			HTTP: httpclient.New(files, registry.RequestTimeout),
			LogIn: func(req *http.Request) error {
				req.SetBasicAuth("stream", password.Get())
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		return func(c *producer.Config) { c.Registry = client }
	}
	s := plainStage(t)
	s.worksBehind(with(a, rotated))
	for says, with := range map[string]func(*producer.Config){
		"check registry.tls,": with(stranger, rotated),
		"401":                 with(a, rotation.Literal(secret+"r")),
	} {
		_, err := producer.Take(s.ctx(), s.cluster("c", with), s.orders())
		if wantText(t, err, says); strings.Contains(err.Error(), secret) {
			t.Errorf("%v contains the password", err)
		}
	}
	const other = "another horse battery staple"
	cluster := s.cluster("d", with(a, rotated))
	password.Store(other)
	mount.Swap(map[string]string{"password": other + "\n"})
	if err := s.everything(s.ctx(), cluster); err != nil {
		t.Errorf("with the new password in the file: %v", err)
	}
}

// A session outlives its tokens: connections log in again with the next one, and nothing that is open ends.
func TestASessionOnApacheKafkaOutlivesManyTokens(t *testing.T) {
	const life, lives = 4, 3
	i := newIssuer(t)
	i.Life.Store(life)
	kafka := i.validating("3600000", nil) // so the token's end counts
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	core, seen := observer.New(zap.InfoLevel)
	session := s.take(s.cluster("a", func(c *producer.Config) {
		i.login(c)
		c.Log = zap.New(core)
	}))
	first := time.Now()
	var rows []int64
	for id := int64(1); time.Since(first) < lives*life*time.Second; id++ { // as long as tokens are good
		s.commit(session, next(session, s.order(id, "2026-11-20T10:00:00Z", "Shipped")))
		rows = append(rows, id)
	}
	if n := i.Issued.Load(); n <= lives {
		t.Errorf("%d tokens were issued, expected more than %d", n, lives)
	}
	for _, entry := range seen.All() {
		if text := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(text, "token") ||
			strings.Contains(strings.ToLower(text), "sasl") {
			t.Errorf("a login failed on the way: %s", text)
		}
	}
	s.brokers = kafka.Brokers()
	s.wantIDs(rows...)

	s.brokers = kafka.SecuredBrokers()
	i.Life.Store(-1)
	wantText(t, s.cluster("b", i.login).Ping(s.ctx()), "refuses the token with")
}

// Connections that are open stay; each session logs in anew.
func TestApacheKafkasPasswordThatIsRotatedIsUsedByTheNextLogin(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	kafka := guardedKafka(t, a)
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	s.allow("stream", "all.", "")
	mount := servers.MountForTest(t, t.TempDir(), map[string]string{"password": secret + "\n"})
	password, err := rotation.Follow(nil, "kafka.sasl.password", mount.Path("password"), nil)
	if err != nil {
		t.Fatal(err)
	}
	with := func(password rotation.Secret) func(*producer.Config) {
		return func(c *producer.Config) {
			c.TopicPrefix, c.Group = "all.", "all.group"
			c.TLS = opened(t, tlsfile.Files{Section: "kafka.tls", CAFile: a.File})
			c.SASL = producer.SASL{Mechanism: "SCRAM-SHA-512", Username: "stream", Password: password}
		}
	}
	cluster := s.cluster("a", with(password))
	if err := s.everything(s.ctx(), cluster); err != nil {
		t.Fatal(err)
	}
	const other = "another horse battery staple"
	made, err := s.admin.AlterUserSCRAMs(s.ctx(), nil, []kadm.UpsertSCRAM{{User: "stream",
		Mechanism: kadm.ScramSha512, Iterations: 4096, Password: other}})
	if err = errors.Join(err, made.Error()); err != nil {
		t.Fatal(err)
	}
	mount.Swap(map[string]string{"password": other + "\n"})
	if err := s.everything(s.ctx(), cluster); err != nil {
		t.Errorf("with the new password in the file: %v", err)
	}
	if err := s.cluster("b", with(rotation.Literal(secret))).Ping(s.ctx()); err == nil {
		t.Error("the old password is taken: this test shows nothing")
	}
}

// Broker and client get certificates of another authority, and neither takes one of the first any more.
// Apache Kafka needs no restart for its own either.
func TestApacheKafkaTakesACertificateThatIsReplacedOnTheNextConnection(t *testing.T) {
	first, second := servers.AuthorityForTest(t, t.TempDir()), servers.AuthorityForTest(t, t.TempDir())
	stores := func(a *servers.Authority) map[string]string {
		made := a.Issue(servers.CertificateConfig{Name: "broker"})
		return map[string]string{secured + "ssl.keystore.location": made.KeyStore,
			secured + "ssl.truststore.location": a.File}
	}
	settings := map[string]string{secured + "ssl.client.auth": "required", secured + "ssl.keystore.type": "PEM",
		secured + "ssl.truststore.type": "PEM"}
	maps.Copy(settings, stores(first))
	kafka := servers.KafkaForTest(t, servers.KafkaConfig{Secured: "SSL", Settings: settings})
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	files := func(a *servers.Authority) map[string]string {
		return a.Files(a.Issue(servers.CertificateConfig{Name: "storestream"}))
	}
	mount := servers.MountForTest(t, t.TempDir(), files(first))
	old := servers.MountForTest(t, t.TempDir(), files(first))
	with := func(m *servers.Mount) func(*producer.Config) {
		return func(c *producer.Config) {
			c.TLS = opened(t, tlsfile.Files{Section: "kafka.tls", CAFile: m.Path("ca"), CertFile: m.Path("cert"),
				KeyFile: m.Path("key")})
		}
	}
	cluster := s.cluster("a", with(mount))
	if err := s.everything(s.ctx(), cluster); err != nil {
		t.Fatal(err)
	}
	var changes []kadm.AlterConfig
	for name, value := range stores(second) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	altered, err := s.admin.AlterBrokerConfigs(s.ctx(), changes, 1)
	for _, a := range altered {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for ctx := s.ctx(); s.cluster("b", with(old)).Ping(ctx) == nil; { // until the broker uses them
		if ctx.Err() != nil {
			t.Fatal("the broker still takes the old certificate: this test shows nothing")
		}
	}
	mount.Swap(files(second))
	if err := s.everything(s.ctx(), cluster); err != nil {
		t.Errorf("with certificates of the second authority in the files: %v", err)
	}
}
