package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// The whole program where nothing is in clear and nobody is let in without a login, under traffic: every
// password is replaced at the servers first, then all certificates have expired, then they are of another
// authority, which storestream learns last. Each time `check` says so of each connection. Nothing is lost.
func TestWithEverythingEncryptedRefusedPasswordsAndCertificatesLoseNothing(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	e := startEncrypted(t)
	e.checksOut()
	e.fake.StartTraffic(40)
	p := e.spawn("run")
	p.isReady()
	e.changes(100)

	e.change()
	p.says("out of the group")
	refused := "does not answer" // the embedded broker ends a connection whose password it does not know
	if e.kafka != nil {
		refused = "takes no login" // the issuer gives no token
	}
	e.check(1, finding{"FAIL", "service", storefake.Products, "answered 401"},
		finding{"FAIL", "kafka", "", refused},
		finding{"FAIL", "database", "", "SASL authentication failed"},
		finding{"FAIL", "registry", "", "refuses the credentials"})
	e.learns(p)

	e.shows(time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC))
	e.refuses(p, "certificate has expired")
	e.shows(later)
	e.changes(100)
	p.isReady()

	e.signs = e.second
	e.shows(later)
	e.refuses(p, "certificate signed by unknown authority")
	e.learns(p)
	e.readers = e.second.Pool

	e.quiet()
	p.isReady()
	e.verify(0)
	e.checksOut()
	e.sql("DO $$ BEGIN IF (SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) " +
		"WHERE usename = '" + storefake.ReaderRole + "') IS NOT TRUE THEN RAISE 'the pooler reads in clear'; " +
		"END IF; END $$")
	p.silent("password-0", "password-1", "eyJ") // which each token begins with
	p.stop()
}

// encrypted is that program's surroundings: PostgreSQL behind a pooler that verifies it, brokers that ask for
// SCRAM (Apache Kafka for tokens of an endpoint), and proxies that end TLS before the service and the
// registry. All that storestream trusts and logs in with is in a folder as Kubernetes mounts it.
type encrypted struct {
	credentials
	first, second *servers.Authority
	signs         *servers.Authority  // one of them: what the servers show
	readers       *x509.CertPool      // whom those trust who read the page and the topics
	inForce       atomic.Value        // the password, for the servers of this process
	shown         map[string]*showing // what these show, by the names that check has for them
	fronts        []*httptest.Server
	pooler        servers.Certificate // what PgBouncer shows from its next start on
}

// showing is the certificate that a server shows to new connections.
type showing struct {
	atomic.Pointer[tls.Certificate]
}

func (s *showing) config() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*s.Load()}}, nil
	}
	return c
}

func startEncrypted(t *testing.T) *encrypted {
	t.Helper()
	e := &encrypted{first: servers.AuthorityForTest(t, t.TempDir()),
		second: servers.AuthorityForTest(t, t.TempDir()), shown: map[string]*showing{"kafka": {}, "registry": {},
			"store": {}, "kafka.sasl.token_url": {}}}
	e.signs, e.readers = e.first, e.first.Pool.Clone()
	e.readers.AddCert(e.second.Cert)
	e.issue(later)
	database := e.issued("database", later)
	broker := e.issued("kafka", later)
	tokens := servers.TokenIssuerForTest(t)
	tokens.Life.Store(5)
	keys := httptest.NewServer(tokens) // the broker's own way there
	t.Cleanup(keys.Close)
	s := setup{yaml: quick, fake: smallShop(62), database: servers.PostgresConfig{Certificate: &database},
		pooler: servers.PgBouncerConfig{Certificate: &e.pooler, Verifies: e.first},
		kafka:  tokens.Kafka(keys.URL, "2000", &broker),
		broker: servers.BrokerConfig{Options: []kfake.Opt{kfake.TLS(e.shown["kafka"].config()), kfake.EnableSASL(),
			kfake.Superuser("PLAIN", "judge", "judge"), kfake.Superuser("SCRAM-SHA-512", poller, "password-0"),
			kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "2000"})}}}
	if os.Getenv("E2E_BROKER") != "kafka" { // there the test has a listener of its own
		s.login = []kgo.Opt{kgo.DialTLSConfig(trusting(e.readers)),
			kgo.SASL(plain.Auth{User: "judge", Pass: "judge"}.AsMechanism())}
	}
	e.credentials = credentials{stack: start(t, s), n: -1}
	e.change()
	e.mount = servers.MountForTest(t, t.TempDir(), e.files())
	e.stack.ask = e.ask
	e.describe(tokens)
	return e
}

// describe writes the configuration file.
func (e *encrypted) describe(tokens http.Handler) {
	e.t.Helper()
	password, ca := "file:"+e.mount.Path("sasl"), e.mount.Path("ca")
	brokers, login := e.brokers, fmt.Sprintf("mechanism: SCRAM-SHA-512, username: %s, password: %q", poller,
		password)
	if e.kafka != nil {
		brokers, login = e.kafka.SecuredBrokers(), fmt.Sprintf("mechanism: OAUTHBEARER, token_url: %q, "+
			"username: %s, password: %q", e.front("kafka.sasl.token_url", e.locked(tokens))+"/token", poller,
			password)
	}
	e.config = e.write("encrypted.yaml", fmt.Sprintf(`
store: {base_url: %q, api_key: %q, max_requests_per_second: 1000, tls: {ca_file: %q}}
postgres: {dsn: "host=localhost port=%d user=%s password=%s dbname=postgres sslrootcert=%s"}
kafka: {brokers: [%s], tls: {enabled: true, ca_file: %q}, sasl: {%s}}
registry: {url: %q, username: %q, password: %q, tls: {ca_file: %q}}
http: {listen: 127.0.0.1:0, token: %q, tls: {cert_file: %q, key_file: %q}}
%s`, e.front("store", e.proxy(e.fake.BaseURL()))+"/v1", "file:"+e.mount.Path("key"), ca,
		e.pgbouncer.Port, storefake.ReaderRole, password, ca, strings.Join(brokers, ","), ca, login,
		e.front("registry", e.locked(e.proxy(e.registry))), poller, password, ca,
		"file:"+e.mount.Path("page"), e.mount.Path("page.crt"), e.mount.Path("page.key"), e.yaml))
}

// front is the address of a server with TLS.
func (e *encrypted) front(name string, handler http.Handler) string {
	server := httptest.NewUnstartedServer(handler)
	server.TLS = e.shown[name].config()
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // of handshakes that are meant to fail
	server.StartTLS()
	e.t.Cleanup(server.Close)
	e.fronts = append(e.fronts, server)
	return server.URL
}

// proxy hands requests on to a server.
func (e *encrypted) proxy(to string) http.Handler {
	e.t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		e.t.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: u.Scheme, Host: u.Host})
}

// locked is for who has the password in force.
func (e *encrypted) locked(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != poller || password != e.inForce.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// later is an end of certificates that check does not warn of.
var later = time.Now().AddDate(0, 3, 0)

// issued is a certificate of a server, which ends then.
func (e *encrypted) issued(name string, until time.Time) servers.Certificate {
	return e.signs.Issue(servers.CertificateConfig{Name: name, Hosts: []string{"127.0.0.1", "localhost",
		name + ".example"}, NotBefore: until.AddDate(-1, 0, 0), NotAfter: until})
}

func (e *encrypted) issue(until time.Time) {
	for name, showing := range e.shown {
		pair := e.issued(name, until).Pair
		showing.Store(&pair)
	}
	e.pooler = e.issued("postgres", until)
}

// shows has every server show certificates that end then to new connections, and ends those that there are.
// The brokers' alone stay, until they have to log in again.
func (e *encrypted) shows(until time.Time) {
	e.t.Helper()
	e.issue(until)
	for _, front := range e.fronts {
		front.CloseClientConnections()
	}
	if err := e.pgbouncer.Restart(context.Background()); err != nil {
		e.t.Fatal(err)
	}
	if e.kafka == nil {
		return
	}
	// What stands in the same file would not be looked at.
	store := e.issued("kafka", until).KeyStore
	file := fmt.Sprintf("%s.%d", store, time.Now().UnixNano())
	if err := os.Rename(store, file); err != nil {
		e.t.Fatal(err)
	}
	altered, err := e.admin().AlterBrokerConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig,
		Name: servers.SecuredSettings + "ssl.keystore.location", Value: &file}}, 1)
	for _, a := range altered {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// change is that of all passwords, at the servers.
func (e *encrypted) change() {
	e.t.Helper()
	e.credentials.change()
	e.inForce.Store(e.password())
}

// refuses waits until storestream says of a server why it takes no certificate, and has check say so of
// each. NAME in that is the server's. Which it meets first depends on the broker: once a connection to that
// has ended there are no owners, and nobody else is asked.
func (e *encrypted) refuses(p *process, why string) {
	e.t.Helper()
	var wanted []finding
	for name, f := range e.parts() {
		f.Level, f.Found = "FAIL", strings.ReplaceAll(why, "NAME", name)
		wanted = append(wanted, f)
	}
	eventually(e.t, "/status.json says "+why, func() (bool, string) {
		_, status := p.get("/status.json")
		return slices.ContainsFunc(wanted, func(f finding) bool {
			return strings.Contains(status, strings.ReplaceAll(f.Found, `"`, `\"`))
		}), status
	})
	e.check(1, wanted...)
}

// learns has storestream find what is good now, as its operator would, and go on.
func (e *encrypted) learns(p *process) {
	e.t.Helper()
	e.mount.Swap(e.files())
	p.signal(syscall.SIGHUP)
	e.changes(100)
	p.isReady()
}

// files are what stands in the folder for the passwords in force and the authority that signs.
func (e *encrypted) files() map[string]string {
	files := e.credentials.files()
	own := e.signs.Files(e.issued("page", later))
	files["ca"], files["page.crt"], files["page.key"] = own["ca"], own["cert"], own["key"]
	files["page"] = "read-with-" + e.password()
	return files
}

// ask asks a status server as who has the files of the folder.
func (e *encrypted) ask(addr, path string) (*http.Response, error) {
	token, err := os.ReadFile(e.mount.Path("page"))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodGet, "https://"+addr+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+string(token))
	transport := &http.Transport{TLSClientConfig: trusting(e.readers), DisableKeepAlives: true}
	return (&http.Client{Transport: transport}).Do(req)
}

func trusting(authorities *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
}

// finding is one of check's.
type finding struct{ Level, Part, About, Found string }

// check waits until the command exits with this status and finds all that is wanted, where Found is a part of
// the text; with status 0 nothing against any connection. On a busy machine it may not be answered in time.
func (e *encrypted) check(code int, wanted ...finding) {
	e.t.Helper()
	eventually(e.t, "check finds what there is", func() (bool, string) {
		out, errs, got := e.do("check", "-o", "json")
		var found []finding
		if err := json.Unmarshal([]byte(out), &found); err != nil || got != code {
			return false, fmt.Sprintf("exit status %d, expected %d, %v:\n%s\n%s", got, code, err, out, errs)
		}
		for _, w := range wanted {
			if !slices.ContainsFunc(found, func(f finding) bool {
				text := f.Found
				f.Found = w.Found
				return f == w && strings.Contains(text, w.Found)
			}) {
				return false, fmt.Sprintf("no %+v in\n%s", w, out)
			}
		}
		against := func(f finding) bool { return f.Part == "security" && f.Level != "ok" }
		return code != 0 || !slices.ContainsFunc(found, against), out
	})
}

// parts are where check reports a connection that it cannot make, by the connection's name. The part kafka
// reports the endpoint of tokens too, if the brokers can be reached.
func (e *encrypted) parts() map[string]finding {
	return map[string]finding{"postgres": {Part: "database"}, "kafka": {Part: "kafka"},
		"registry": {Part: "registry"}, "store": {Part: "service", About: storefake.Products}}
}

// checksOut has check say that nothing is wrong with any connection.
func (e *encrypted) checksOut() {
	e.t.Helper()
	e.check(0, finding{"ok", "security", "", "each connection to another machine is encrypted"})
}
