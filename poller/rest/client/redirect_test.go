package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/poller"
)

// trusting is a client that accepts the servers' certificates that a has signed.
func trusting(t *testing.T, a *servers.Authority, timeout time.Duration) *http.Client {
	t.Helper()
	files, err := tlsfile.Files{CAFile: a.File}.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return httpclient.New(files, timeout)
}

// A redirect is followed within the service's own address alone: whatever a request holds goes nowhere else,
// nor in clear if it went encrypted.
func TestARedirectTakesTheKeyNowhereElse(t *testing.T) {
	const key = "planted-key"
	var status int
	leads, asked := map[string]string{}, []string(nil) // path to Location; server, path and key of each request
	site := func(name string, pair *tls.Certificate) string {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, name+r.URL.Path+" "+r.Header.Get("Authorization"))
			if to, ok := leads[r.URL.Path]; ok {
				w.Header().Set("Location", to)
				w.WriteHeader(status)
				return
			}
			fmt.Fprint(w, `{"data":[],"meta":{"has_more":false}}`)
		}))
		t.Cleanup(server.Close)
		if pair == nil {
			server.Start()
			return server.URL
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*pair}}
		server.StartTLS()
		return server.URL
	}
	a := servers.AuthorityForTest(t, t.TempDir())
	pair := a.Issue(servers.CertificateConfig{}).Pair
	plain, other := site("plain", nil), site("other", nil)
	secure, otherSecure := site("secure", &pair), site("other secure", &pair)
	named := func(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
	hostOf := func(url string) string { return url[strings.Index(url, "//"):] }

	for name, test := range map[string]struct{ from, to string }{
		"https on the same host":         {plain, secure + "/end"},
		"another port":                   {plain, other + "/end"},
		"another port, without a scheme": {plain, hostOf(other) + "/end"},
		"another port, encrypted":        {secure, otherSecure + "/end"},
		"another host":                   {plain, named(plain) + "/end"},
		"another host, encrypted":        {secure, named(secure) + "/end"},
		"the host as a user's name":      {plain, plain + "@localhost/end"},
		"http from https":                {secure, plain + "/end"},
		"neither http nor https":         {plain, "ftp:" + hostOf(plain) + "/end"},
	} {
		for _, status = range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprintf("%s, %d", name, status), func(t *testing.T) {
				leads, asked = map[string]string{"/start": test.to}, nil
				c, err := New(Config{BaseURL: test.from, APIKey: rotation.Literal(key), Attempts: 1,
					HTTP: trusting(t, a, time.Minute)})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, err = c.Endpoint("/start", uncounted, unwaited).Page(t.Context(), "page=0", 0)
				if !errors.As(err, new(*poller.BlockedError)) || !strings.Contains(err.Error(), "not followed") ||
					strings.Contains(err.Error(), key) {
					t.Errorf("%v", err)
				}
				want := map[string]string{plain: "plain", secure: "secure"}[test.from] + "/start Bearer " + key
				if !slices.Equal(asked, []string{want}) {
					t.Errorf("asked were %q, expected %q", asked, want)
				}
			})
		}
	}
}

func TestARedirectWithinTheServiceIsFollowed(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, slash := strings.CutSuffix(r.URL.Path, "/"); !slash {
			http.Redirect(w, r, path+"/?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
			return
		}
		whole := r.Header.Get("Authorization") == "Bearer planted-key" && r.URL.RawQuery == "page=0"
		fmt.Fprintf(w, `{"data":[],"meta":{"has_more":%t}}`, whole)
	}))
	defer service.Close()
	c, err := New(Config{BaseURL: service.URL, APIKey: rotation.Literal("planted-key"), Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	page, err := c.Endpoint("/store-orders", uncounted, unwaited).Page(t.Context(), "page=0", 0)
	if err != nil || !page.More {
		t.Errorf("%+v, %v", page, err)
	}
}
