//go:build kafka

package producer_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas/registry"
)

// issuer issues JWTs by client credentials, and publishes the key that they are signed with.
type issuer struct {
	*httptest.Server
	t        *testing.T
	key      *rsa.PrivateKey
	audience atomic.Value // of the tokens that it issues
	signedBy atomic.Value // what these call the key that signed them; it is published as "one"
	life     atomic.Int64 // of these, in seconds
	issued   atomic.Int64
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	i.audience.Store("kafka")
	i.signedBy.Store("one")
	i.life.Store(300)
	mux := http.NewServeMux()
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{"keys": []any{map[string]string{"kty": "RSA", "kid": "one", "alg": "RS256",
			"use": "sig", "n": segment(key.N.Bytes()), "e": segment(big.NewInt(int64(key.E)).Bytes())}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if id, password, _ := r.BasicAuth(); id != "stream" || password == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		i.answer(w, map[string]any{"access_token": i.token(), "token_type": "Bearer",
			"expires_in": i.life.Load()})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		i.t.Error(err)
	}
}

func segment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *issuer) token() string {
	i.issued.Add(1)
	now := time.Now().Unix()
	claims := fmt.Sprintf(`{"iss":"https://id.example","aud":%q,"sub":"stream","iat":%d,"exp":%d}`,
		i.audience.Load(), now, now+i.life.Load())
	header := fmt.Sprintf(`{"alg":"RS256","kid":%q,"typ":"JWT"}`, i.signedBy.Load())
	signed := segment([]byte(header)) + "." + segment([]byte(claims))
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		i.t.Error(err)
	}
	return signed + "." + segment(signature)
}

// secured begins the settings of the second listener.
const secured = "listener.name.secured."

// keyStore is a file of a certificate of a's for a broker, and its key, as Apache Kafka reads them.
func keyStore(t *testing.T, a *servers.Authority) string {
	t.Helper()
	own := a.Files(a.Issue(servers.CertificateConfig{Name: "broker"}))
	file := filepath.Join(t.TempDir(), "broker.pem")
	if err := os.WriteFile(file, []byte(own["key"]+own["cert"]), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// validating is an Apache Kafka whose second listener takes tokens of the issuer, up to the second in which
// they expire, and has each connection log in again by then. a signs its certificate; nil: it has no TLS.
func (i *issuer) validating(maxReauth string, a *servers.Authority) *servers.Kafka {
	i.t.Helper()
	protocol, settings := "SASL_PLAINTEXT", map[string]string{}
	if a != nil {
		protocol = "SASL_SSL"
		settings[secured+"ssl.keystore.type"], settings[secured+"ssl.keystore.location"] = "PEM", keyStore(i.t, a)
	}
	maps.Copy(settings, i.settings(maxReauth))
	return servers.KafkaForTest(i.t, servers.KafkaConfig{Secured: protocol, Settings: settings,
		JavaFlags: []string{"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + i.URL + "/keys"}})
}

func (i *issuer) settings(maxReauth string) map[string]string {
	return map[string]string{
		secured + "sasl.enabled.mechanisms": "OAUTHBEARER",
		secured + "oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer." +
			"OAuthBearerLoginModule required;",
		secured + "oauthbearer.sasl.server.callback.handler.class": "org.apache.kafka.common.security." +
			"oauthbearer.OAuthBearerValidatorCallbackHandler",
		secured + "sasl.oauthbearer.jwks.endpoint.url":  i.URL + "/keys",
		secured + "sasl.oauthbearer.expected.audience":  "kafka",
		secured + "sasl.oauthbearer.clock.skew.seconds": "0",
		secured + "connections.max.reauth.ms":           maxReauth,
	}
}

func (i *issuer) login(c *producer.Config) {
	c.SASL = producer.SASL{Mechanism: "OAUTHBEARER", TokenURL: i.URL + "/token", ClientID: "stream",
		ClientSecret: rotation.Literal(secret)}
}

func TestApacheKafkaThatValidatesTokensIsWrittenToAndReadFrom(t *testing.T) {
	i := newIssuer(t)
	kafka := i.validating("2000", nil)
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	s.worksBehind(i.login)
	for name, spoil := range map[string]func(){
		"for another service":          func() { i.audience.Store("another service") },
		"by a key that nobody has yet": func() { i.signedBy.Store("two") },
	} {
		i.audience.Store("kafka")
		spoil()
		err := s.cluster(name, i.login).Ping(s.ctx())
		if wantText(t, err, "the broker refuses the token"); strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v contains the secret", name, err)
		}
		i.signedBy.Store("one")
	}
}

// As it is in production: the token comes over TLS and goes over TLS, and either end's certificate counts.
func TestATokenGoesToApacheKafkaOverTLS(t *testing.T) {
	a, stranger := servers.AuthorityForTest(t, t.TempDir()), servers.AuthorityForTest(t, t.TempDir())
	i := newIssuer(t)
	endpoint := behindTLS(t, a, i.Config.Handler)
	kafka := i.validating("2000", a)
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	login := func(brokers, tokens *servers.Authority) func(*producer.Config) {
		return func(c *producer.Config) {
			i.login(c)
			c.TLS = opened(t, tlsfile.Files{Section: "kafka.tls", CAFile: brokers.File})
			c.SASL.TokenURL = endpoint + "/token"
			c.SASL.TokenTLS = opened(t, tlsfile.Files{Section: "kafka.sasl.token_tls", CAFile: tokens.File})
		}
	}
	s.worksBehind(login(a, a))
	issued := i.issued.Load()
	for says, with := range map[string]func(*producer.Config){
		"set kafka.tls.ca_file":            login(stranger, a),
		"set kafka.sasl.token_tls.ca_file": login(a, stranger),
	} {
		err := s.cluster("b", with).Ping(s.ctx())
		if wantText(t, err, "is not trusted", says); strings.Contains(err.Error(), secret) {
			t.Errorf("%v contains the secret", err)
		}
	}
	if n := i.issued.Load(); n > issued {
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
		client, err := registry.New(registry.Config{URL: front + to.Path, Username: "stream",
			Password: password.Get, TLS: files.Transport, Explain: files.Explain})
		if err != nil {
			t.Fatal(err)
		}
		return func(c *producer.Config) { c.Registry = client }
	}
	s := plainStage(t)
	s.worksBehind(with(a, rotated))
	for says, with := range map[string]func(*producer.Config){
		"is not trusted: set registry.tls.ca_file": with(stranger, rotated),
		"401": with(a, rotation.Literal(secret+"r")),
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
	i.life.Store(life)
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
	if n := i.issued.Load(); n <= lives {
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
	i.life.Store(-1)
	wantText(t, s.cluster("b", i.login).Ping(s.ctx()), "the broker refuses the token")
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
		return map[string]string{secured + "ssl.keystore.location": keyStore(t, a),
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
