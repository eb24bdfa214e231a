package connect

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
)

// holds is what the folder of a client holds whose authority is a.
func holds(a *servers.Authority) map[string]string {
	return a.Files(a.Issue(servers.CertificateConfig{Name: "storestream"}))
}

// Server and client get certificates of another authority: neither would take one of the first any more.
func TestCertificatesThatAreReplacedAreUsedByTheNextConnection(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			first, second := servers.AuthorityForTest(t, t.TempDir()), servers.AuthorityForTest(t, t.TempDir())
			var shows atomic.Pointer[tls.Config]
			shows.Store(demanding(first))
			server := demanding(first)
			server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return shows.Load(), nil }
			set, cut := p.start(t, server)
			mount := servers.MountForTest(t, t.TempDir(), holds(first))
			for key, name := range map[string]string{"ca_file": "ca", "cert_file": "cert", "key_file": "key"} {
				set = append(set, p.section+"."+key+"="+mount.Path(name))
			}
			cfg, err := config.Load(config.Input{Set: set})
			if err != nil {
				t.Fatal(err)
			}
			try := p.open(t, cfg)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := try(ctx); err != nil {
				t.Fatal(err)
			}
			shows.Store(demanding(second))
			mount.Swap(map[string]string{"ca": "half written"})
			if err := try(ctx); err != nil {
				t.Errorf("a connection that is open does not outlive a file that cannot be used: %v", err)
			}
			mount.Swap(holds(second))
			cut()
			for err = try(ctx); err != nil && ctx.Err() == nil; { // one may find out that its connection has ended
				err = try(ctx)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// The registry's password, or its token, is another one from one request to the next.
func TestARegistrysPasswordThatIsReplacedGoesWithTheNextRequest(t *testing.T) {
	var sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	mount := servers.MountForTest(t, t.TempDir(), map[string]string{"secret": "first"})
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+password))
	}
	for login, expected := range map[string][2]string{
		"registry.username=u registry.password=file:": {basic("first"), basic("second")},
		"registry.token=file:":                        {"Bearer first", "Bearer second"},
	} {
		mount.Swap(map[string]string{"secret": "first"})
		cfg, err := config.Load(config.Input{Set: append(strings.Fields(login+mount.Path("secret")),
			"registry.url="+s.URL)})
		if err != nil {
			t.Fatal(err)
		}
		try := openRegistry(t, cfg)
		for n, secret := range []string{"first", "second"} {
			mount.Swap(map[string]string{"secret": secret})
			if err := try(t.Context()); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%v", err)
			}
			if sent != expected[n] {
				t.Errorf("%s: sent %q, expected %q", login, sent, expected[n])
			}
		}
	}
}
