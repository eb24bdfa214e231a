package preflight

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/schemas"
)

// secured is what the part "security" finds of settings. Without a broker among them there is none: at the
// usual port may be somebody's, and one without TLS answers no handshake.
func secured(t *testing.T, settings ...string) []Finding {
	t.Helper()
	return securedWithin(t, patience, settings...)
}

func securedWithin(t *testing.T, within time.Duration, settings ...string) []Finding {
	t.Helper()
	settings = append([]string{"kafka.brokers=127.0.0.1:1"}, settings...)
	cfg, err := config.Load(config.Input{Environ: stage.Environ(settings...)})
	if err != nil {
		t.Fatal(err)
	}
	f := &findings{part: "security"}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	trySecurity(ctx, Config{Settings: cfg}, f)
	return f.all
}

// A real PostgreSQL behind a real PgBouncer, each with a certificate, and the pooler verifying the server.
func TestSecuritySaysWhatProtectsTheDatabase(t *testing.T) {
	authority := servers.AuthorityForTest(t, t.TempDir())
	good := authority.Issue(servers.CertificateConfig{Name: "database",
		NotAfter: time.Now().Add(90 * 24 * time.Hour)})
	pg := servers.PostgresForTest(t, servers.PostgresConfig{Certificate: &good})
	dsn := func(user, port, mode string) string {
		return fmt.Sprintf("postgres.dsn=host=localhost port=%s user=%s password=postgres dbname=postgres %s "+
			"sslrootcert=%s", port, user, mode, authority.File)
	}
	direct := fmt.Sprint(pg.Port)
	says(t, secured(t, dsn("postgres", direct, "")), OK, "security", "postgres",
		"TLS 1.3 with localhost (localhost", `signed by "CN=authority"`, "role postgres by scram-sha-256")
	for _, mode := range []string{"sslmode=verify-ca", "sslmode=require"} { // libpq and pgx take both for one
		says(t, secured(t, dsn("postgres", direct, mode)), Warning, "security", "postgres",
			"the authority is verified and the host's name is not, by sslmode=verify-ca", "sslmode=verify-full")
	}
	says(t, secured(t, strings.ReplaceAll(dsn("postgres", direct, "sslmode=require"), "sslrootcert="+
		authority.File, "")), Warning, "security", "postgres",
		"identity is not verified because of sslmode=require")
	says(t, secured(t, strings.ReplaceAll(dsn("postgres", direct, ""), "localhost", "127.0.0.3,localhost")), OK,
		"security", "postgres", "TLS 1.3 with 127.0.0.1 (localhost") // nothing listens at the first
	elsewhere := servers.ElsewhereForTest(t)
	says(t, secured(t, strings.NewReplacer("localhost", "localhost,"+elsewhere, "sslrootcert="+authority.File,
		"").Replace(dsn("postgres", direct, "sslmode=disable")), "security.allow_plaintext=postgres"), Warning,
		"security", "postgres", "in clear to "+elsewhere, "the credential too") // whichever answered now
	says(t, secured(t, strings.ReplaceAll(dsn("postgres", direct, ""), authority.File,
		servers.AuthorityForTest(t, t.TempDir()).File)), Failure, "security", "postgres",
		"certificate signed by unknown authority", "check postgres.dsn")
	says(t, secured(t, dsn("postgres", direct, "sslmode=disable")), OK, "security", "postgres",
		"in clear, which does not leave this machine")

	soon := time.Now().Add(10 * 24 * time.Hour)
	pooler := func(c servers.CertificateConfig) string {
		made := authority.Issue(c)
		return fmt.Sprint(servers.PgBouncerForTest(t, servers.PgBouncerConfig{Postgres: pg, Certificate: &made,
			Verifies: authority}).Port)
	}
	found := secured(t, dsn("postgres", pooler(servers.CertificateConfig{Name: "soon", NotAfter: soon}), ""))
	says(t, found, OK, "security", "postgres", "TLS 1.3 with localhost", "scram-sha-256")
	says(t, found, Warning, "security", "postgres", `"CN=soon" expires on `+soon.UTC().Format(time.DateOnly))
	says(t, secured(t, dsn("postgres", pooler(servers.CertificateConfig{Name: "old",
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:  time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)}), "")),
		Failure, "security", "postgres", "certificate has expired")
	says(t, secured(t, dsn("postgres", pooler(servers.CertificateConfig{Name: "other",
		Hosts: []string{"other.example"}}), "")), Failure, "security", "postgres", "other.example", "localhost")
}

// All is encrypted, and every server asks for a client's certificate.
func TestSecuritySaysNothingAgainstWhatIsEncryptedAndVerifiedOnBothSides(t *testing.T) {
	authority := servers.AuthorityForTest(t, t.TempDir())
	issue := func(name string) servers.Certificate {
		return authority.Issue(servers.CertificateConfig{Name: name, NotAfter: time.Now().Add(90 * 24 * time.Hour)})
	}
	shown, own := issue("server"), issue("postgres")
	demanding := &tls.Config{Certificates: []tls.Certificate{shown.Pair}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool}
	pg := servers.PostgresForTest(t, servers.PostgresConfig{Certificate: &shown, Clients: authority})
	broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: []kfake.Opt{kfake.TLS(demanding.Clone()),
		kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "stream", "s3cret")}})
	site := httptest.NewUnstartedServer(http.NotFoundHandler())
	site.TLS, site.Config.ErrorLog = demanding.Clone(), log.New(io.Discard, "", 0) // of handshakes that we end
	site.StartTLS()
	t.Cleanup(site.Close)
	settings := []string{fmt.Sprintf("postgres.dsn=host=localhost port=%d user=postgres dbname=postgres "+
		"sslrootcert=%s sslcert=%s sslkey=%s", pg.Port, authority.File, own.CertFile, own.KeyFile),
		"kafka.brokers=" + broker.Brokers()[0], "kafka.tls.enabled=true", "registry.url=" + site.URL,
		"store.base_url=" + site.URL + "/v1", "store.api_key=k", "http.listen=:0", "http.token=0123456789abcdef",
		"http.tls.cert_file=" + shown.CertFile, "http.tls.key_file=" + shown.KeyFile}
	for _, section := range []string{"kafka.tls", "registry.tls", "store.tls"} {
		settings = append(settings, section+".ca_file="+authority.File, section+".cert_file="+own.CertFile,
			section+".key_file="+own.KeyFile)
	}
	tokens := []string{"kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.token_url=" + site.URL,
		"kafka.sasl.client_id=stream", "kafka.sasl.client_secret=s3cret",
		"kafka.sasl.token_tls.ca_file=" + authority.File, "kafka.sasl.token_tls.cert_file=" + own.CertFile,
		"kafka.sasl.token_tls.key_file=" + own.KeyFile}
	scram := []string{"kafka.sasl.mechanism=SCRAM-SHA-512", "kafka.sasl.username=stream",
		"kafka.sasl.password=s3cret"}
	const verified = `signed by "CN=authority", until `
	for kafka, login := range map[string][]string{"SASL SCRAM-SHA-512": scram, "SASL OAUTHBEARER": tokens} {
		found := secured(t, append(login, settings...)...)
		for _, f := range found {
			if f.Level != OK {
				t.Errorf("%+v", f)
			}
		}
		says(t, found, OK, "security", "postgres", "TLS 1.3 with localhost (", verified,
			"role postgres by nothing that it was asked for (trust, peer or its certificate)")
		says(t, found, OK, "security", "kafka", "TLS 1.3", verified, kafka+" and a client's certificate")
		says(t, found, OK, "security", "registry", "TLS 1.3", verified, "; a client's certificate")
		says(t, found, OK, "security", "store", "TLS 1.3", verified,
			"the key of store.api_key and a client's certificate")
		says(t, found, OK, "security", "status", "listens at :0, by TLS, for who has http.token")
		if kafka == "SASL OAUTHBEARER" {
			says(t, found, OK, "security", "kafka.sasl.token_url", "TLS 1.3", verified,
				"client stream with its secret and a client's certificate")
		}
	}
}

func TestSecuritySaysWhatProtectsTheServiceAndThePage(t *testing.T) {
	authority := servers.AuthorityForTest(t, t.TempDir())
	made := authority.Issue(servers.CertificateConfig{})
	asked := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked = true
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{made.Pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(key, 0o644); err != nil { //nolint:gosec // what the test is about
		t.Fatal(err)
	}
	elsewhere := servers.ElsewhereForTest(t)
	found := secured(t, "store.base_url="+server.URL+"/v1", "store.tls.ca_file="+authority.File,
		"store.api_key=file:"+key, "kafka.brokers="+server.Listener.Addr().String(), "kafka.tls.enabled=true",
		"kafka.tls.insecure_skip_verify=true", "http.listen=:8080", "registry.url=http://"+elsewhere+":1",
		"kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.token_url="+server.URL, "kafka.sasl.client_id=stream",
		"kafka.sasl.client_secret=file:"+key, "kafka.sasl.token_tls.ca_file="+authority.File)
	says(t, found, OK, "security", "store", "TLS 1.3 with 127.0.0.1", `signed by "CN=authority"`,
		"the key of store.api_key")
	says(t, found, Warning, "security", "store", "expires on")
	says(t, found, Warning, "security", "kafka",
		"identity is not verified because of kafka.tls.insecure_skip_verify")
	says(t, found, OK, "security", "kafka.sasl.token_url", "TLS 1.3 with 127.0.0.1",
		"client stream with its secret")
	says(t, found, Warning, "security", "registry", "in clear to "+elsewhere, "use its https address")
	says(t, found, Warning, "security", "status", "beyond this machine, in clear, for whoever reaches it")
	says(t, found, Warning, "security", "store.api_key", "everybody on this machine may read", "chmod 600")
	if asked {
		t.Error("a request was sent")
	}
	says(t, secured(t, "store.base_url="+server.URL+"/v1"), Failure, "security", "store", "unknown authority",
		"check store.tls")
	says(t, secured(t, "store.base_url=http://"+elsewhere+":1/v1", "security.allow_plaintext=store"), Warning,
		"security", "store", "the credential too (security.allow_plaintext)")
	says(t, secured(t), OK, "security", "status", "listens on this machine alone")

	away := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = away.Listener.Close()
	var err error
	if away.Listener, err = net.Listen("tcp", net.JoinHostPort(elsewhere, "0")); err != nil {
		t.Fatal(err)
	}
	away.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that we end
	away.StartTLS()
	t.Cleanup(away.Close)
	says(t, secured(t, "store.base_url="+away.URL+"/v1", "store.tls.insecure_skip_verify=true",
		"security.allow_unverified=store"), Warning, "security", "store",
		"identity is not verified because of store.tls.insecure_skip_verify, the credential too "+
			"(security.allow_unverified)")
}

// A key that others may read is as good as lost, whichever connection it is for. What only its group may read
// is somebody's decision. And each of our own certificates ends one day.
func TestSecurityLooksAtWhoMayReadKeysAndWhenTheirCertificatesEnd(t *testing.T) {
	authority := servers.AuthorityForTest(t, t.TempDir())
	end := time.Now().Add(10 * 24 * time.Hour)
	made := authority.Issue(servers.CertificateConfig{Name: "own", NotAfter: end})
	settings := []string{"postgres.dsn=host=localhost port=1 user=u password=p dbname=d sslrootcert=" +
		authority.File + " sslcert=" + made.CertFile + " sslkey=" + made.KeyFile,
		"kafka.tls.enabled=true", "registry.url=https://localhost:1", "store.base_url=https://localhost:1/v1",
		"kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.token_url=https://localhost:1", "kafka.sasl.client_id=c",
		"kafka.sasl.client_secret=s"}
	keys, certificates := []string{"postgres.dsn"}, []string{"postgres.dsn"}
	for _, section := range []string{"kafka.tls", "kafka.sasl.token_tls", "registry.tls", "store.tls",
		"http.tls"} {
		settings = append(settings, section+".cert_file="+made.CertFile, section+".key_file="+made.KeyFile)
		keys, certificates = append(keys, section+".key_file"), append(certificates, section+".cert_file")
	}
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		if err := os.Chmod(made.KeyFile, mode); err != nil {
			t.Fatal(err)
		}
		found, warned := secured(t, settings...), map[string]bool{}
		for _, f := range found {
			if f.Level == Warning && strings.Contains(f.Found, "everybody on this machine may read "+made.KeyFile) {
				warned[f.About] = true
			}
		}
		for _, key := range keys {
			if warned[key] != want {
				t.Errorf("mode %o: a warning about %s: %v", mode, key, warned[key])
			}
		}
		for _, key := range certificates {
			says(t, found, Warning, "security", key, `"CN=own" expires on `+end.UTC().Format(time.DateOnly))
		}
	}
}

// Whatever the file is called.
func TestSecurityLooksAtWhoMayReadTheConfigurationWhereSecretsStandInIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	for text, want := range map[string]bool{"registry: {token: s3cret}": true, "log: {level: info}": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // what the test is about
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Input{File: path, Environ: stage.Environ("http.token=0123456789abcdef")})
		if err != nil {
			t.Fatal(err)
		}
		f := &findings{part: "security"}
		security{c: Config{Settings: cfg, File: path}, found: f}.files()
		if got := len(f.all) == 1 && f.all[0].Level == Warning && f.all[0].About == "file"; got != want {
			t.Errorf("%s: %v, expected a warning: %v", text, f.all, want)
		}
	}
}

func TestSecurityWarnsOfATokenThatTravelsInClear(t *testing.T) {
	says(t, secured(t, "http.listen=:8080", "http.token=0123456789abcdef"), Warning, "security", "status",
		"beyond this machine, in clear, for who has http.token", "http.tls")
}

// silent takes connections and says nothing, until the test ends.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String()
}

// `check` ends, and names what was silent: each connection in turns beside good ones, of which it tells all
// the same, and then all of them, in every part.
func TestCheckEndsWhereAPeerTakesConnectionsAndSaysNothing(t *testing.T) {
	authority := servers.AuthorityForTest(t, t.TempDir())
	made := authority.Issue(servers.CertificateConfig{NotAfter: time.Now().Add(90 * 24 * time.Hour)})
	good := httptest.NewUnstartedServer(http.NotFoundHandler())
	good.TLS = &tls.Config{Certificates: []tls.Certificate{made.Pair}, MinVersion: tls.VersionTLS12}
	good.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that we end
	good.StartTLS()
	t.Cleanup(good.Close)
	mute := silent(t)
	_, port, _ := net.SplitHostPort(mute)
	peers := []struct{ about, part, setting string }{
		{"postgres", "database", "postgres.dsn=host=localhost port=" + port + " user=u password=p dbname=d " +
			"sslrootcert=" + authority.File},
		{"kafka", "kafka", "kafka.brokers=" + mute},
		{"kafka.sasl.token_url", "kafka", "kafka.sasl.token_url=https://" + mute},
		{"registry", "registry", "registry.url=https://" + mute},
		{"store", "service", "store.base_url=https://" + mute + "/v1"},
	}
	settings := []string{"kafka.brokers=" + good.Listener.Addr().String(), "kafka.tls.enabled=true",
		"kafka.tls.ca_file=" + authority.File, "kafka.sasl.mechanism=OAUTHBEARER",
		"kafka.sasl.client_id=c", "kafka.sasl.client_secret=s", "kafka.sasl.token_url=" + good.URL,
		"kafka.sasl.token_tls.ca_file=" + authority.File, "registry.url=" + good.URL,
		"registry.tls.ca_file=" + authority.File, "store.base_url=" + good.URL + "/v1",
		"store.tls.ca_file=" + authority.File, "store.api_key=k", "http.listen=127.0.0.1:0"}
	const unknown = "cannot tell what protects it: it has not answered in time"
	var all []string
	for i, quiet := range peers {
		all = append(all, quiet.setting)
		t.Run(quiet.about, func(t *testing.T) {
			t.Parallel()
			found := securedWithin(t, 10*time.Second, append(slices.Clone(settings), quiet.setting)...)
			for j, peer := range peers {
				switch {
				case j == i:
					says(t, found, Note, "security", peer.about, unknown, "one that expects no TLS")
				case peer.about != "postgres": // there is none
					says(t, found, OK, "security", peer.about, "TLS 1.3")
				}
			}
		})
	}

	cfg, err := config.Load(config.Input{Environ: stage.Environ(append(settings, all...)...)})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Settings: cfg, patience: time.Second}
	if c.Schemas, err = schemas.Load(""); err != nil {
		t.Fatal(err)
	}
	if c.Registry, err = connect.Registry(cfg); err != nil {
		t.Fatal(err)
	}
	if c.Cluster, err = connect.Kafka(cfg, "checker", zap.NewNop(), nil); err != nil {
		t.Fatal(err)
	}
	defer c.Cluster.Close()
	found := slices.Collect(Try(t.Context(), c))
	for _, peer := range peers {
		says(t, found, Note, "security", peer.about, unknown)
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Part == peer.part && f.Level == Failure }) {
			t.Errorf("no failure of %s among %v", peer.part, found)
		}
	}
}
