package preflight

import (
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

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/schemas"
)

// secured is what the part "security" finds of settings.
func secured(t *testing.T, settings ...string) []Finding {
	t.Helper()
	cfg, err := config.Load(config.Input{Environ: stage.Environ(settings...)})
	if err != nil {
		t.Fatal(err)
	}
	f := &findings{part: "security"}
	trySecurity(t.Context(), Config{Settings: cfg}, f)
	return f.all
}

func TestWhatIsInClearOrUnverifiedIsNamed(t *testing.T) {
	says(t, secured(t), OK, "security", "", "each connection to another machine is encrypted")
	for setting, wants := range map[string]Finding{
		"kafka.brokers=broker:9092": {About: "kafka", Found: "to broker rows and schemas go unencrypted",
			Do: "kafka.tls.enabled: expected https"},
		"registry.url=http://schemas:8081": {About: "registry",
			Found: "to schemas rows and schemas go unencrypted"},
		"store.base_url=http://shop/v1 security.allow_plaintext=store": {About: "store",
			Found: "to shop a password or key would go unencrypted"},
		"registry.url=https://schemas security.allow_unverified=registry": {About: "registry",
			Found: "to schemas rows and schemas go to any server that answers there"},
		"postgres.dsn=postgres://u:p@db/store?sslmode=require security.allow_unverified=postgres": {
			About: "postgres", Found: "would go to any server", Do: "sslmode=verify-full"},
		"http.listen=:8080":                             {About: "status", Found: "beyond this machine"},
		"http.listen=:8080 http.token=0123456789abcdef": {About: "status", Do: "http.tls"},
	} {
		says(t, secured(t, strings.Fields(setting)...), Warning, "security", wants.About, wants.Found, wants.Do)
	}
}

// Each part warns of the certificates that its clients were shown, a real PostgreSQL's too.
func TestACertificateThatEndsSoonIsNamed(t *testing.T) {
	authority := servers.AuthorityForTest(t, t.TempDir())
	end := time.Now().Add(10 * 24 * time.Hour)
	made := authority.Issue(servers.CertificateConfig{Name: "soon", NotAfter: end})
	demanding := &tls.Config{Certificates: []tls.Certificate{made.Pair}, MinVersion: tls.VersionTLS12}
	pg := servers.PostgresForTest(t, servers.PostgresConfig{Certificate: &made})
	broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: []kfake.Opt{kfake.TLS(demanding)}})
	site := httptest.NewUnstartedServer(http.NotFoundHandler())
	site.TLS, site.Config.ErrorLog = demanding.Clone(), log.New(io.Discard, "", 0)
	site.StartTLS()
	t.Cleanup(site.Close)
	settings := []string{fmt.Sprintf("postgres.dsn=host=localhost port=%d user=postgres password=postgres "+
		"dbname=postgres sslrootcert=%s", pg.Port, authority.File), "kafka.brokers=" + broker.Brokers()[0],
		"kafka.tls.enabled=true", "registry.url=" + site.URL, "store.base_url=" + site.URL + "/v1",
		"store.api_key=k", "http.listen=127.0.0.1:0"}
	for _, section := range []string{"kafka.tls", "registry.tls", "store.tls"} {
		settings = append(settings, section+".ca_file="+authority.File)
	}
	cfg, err := config.Load(config.Input{Environ: stage.Environ(settings...)})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.Collect(Try(t.Context(), opened(t, cfg, stage.New(t).Schemas)))
	for _, part := range []string{"database", "kafka", "registry", "service"} {
		says(t, found, Warning, part, "", `"CN=soon" expires on `+end.UTC().Format(time.DateOnly))
	}
	broker.AskForToken("good")
	cfg, err = config.Load(config.Input{Environ: stage.Environ(append(settings, "kafka.sasl.username=c",
		"kafka.sasl.password=s", "kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.token_url="+site.URL)...)})
	if err != nil {
		t.Fatal(err)
	}
	tokens := &findings{part: "kafka"}
	tryKafka(t.Context(), opened(t, cfg, stage.New(t).Schemas), tokens)
	says(t, tokens.all, Warning, "kafka", "kafka.sasl.token_url", `"CN=soon" expires on `)
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
		"kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.token_url=https://localhost:1", "kafka.sasl.username=c",
		"kafka.sasl.password=s"}
	keys, certificates := []string{"postgres.dsn"}, []string{"postgres.dsn"}
	for _, section := range []string{"kafka.tls", "registry.tls", "store.tls",
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
// A short password is no text that is hidden, see rotation.Hidden.
func TestAPasswordThatReadsLikeAFileIsNone(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("shop", nil, 0o644); err != nil { //nolint:gosec // everybody may read it
		t.Fatal(err)
	}
	for _, f := range secured(t, "postgres.dsn=postgres://u:shop@127.0.0.1/store") {
		if f.Level != OK {
			t.Errorf("%+v", f)
		}
	}
}

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
		f.files(Config{Settings: cfg, File: path})
		if got := len(f.all) == 1 && f.all[0].Level == Warning && f.all[0].About == "file"; got != want {
			t.Errorf("%s: %v, expected a warning: %v", text, f.all, want)
		}
	}
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

// `check` ends, and says of each part what did not answer.
func TestCheckEndsWhereAPeerTakesConnectionsAndSaysNothing(t *testing.T) {
	mute, authority := silent(t), servers.AuthorityForTest(t, t.TempDir())
	_, port, _ := net.SplitHostPort(mute)
	cfg, err := config.Load(config.Input{Environ: stage.Environ("postgres.dsn=host=localhost port="+port+
		" user=u password=p dbname=d sslrootcert="+authority.File, "kafka.brokers="+mute, "kafka.tls.enabled=true",
		"kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.username=c", "kafka.sasl.password=s",
		"kafka.sasl.token_url=https://"+mute, "registry.url=https://"+mute, "store.base_url=https://"+mute+"/v1",
		"http.listen=127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	c := opened(t, cfg, set)
	c.patience = time.Second
	found := slices.Collect(Try(t.Context(), c))
	for _, part := range []string{"database", "kafka", "registry", "service"} {
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Part == part && f.Level == Failure }) {
			t.Errorf("no failure of %s among %v", part, found)
		}
	}
}
