//go:build !kafka

package producer_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
)

// tokenStage is a stage whose broker asks for the token "good".
func tokenStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.broker.AskForToken("good")
	return s
}

func TestATokenEndpointThatGivesNoTokenIsSaidToDoSoUntilItDoes(t *testing.T) {
	s := tokenStage(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	gives := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "SECRET", secret))
		}
	}
	for _, c := range []struct {
		name    string
		answers http.HandlerFunc
		says    string
	}{
		{"it refuses the client", gives(401, `{"error":"invalid_client","error_description":"SECRET"}`),
			"answered 401 invalid_client: check kafka.sasl.username"},
		{"it refuses without a code", gives(403, `SECRET`), "answered 403: check kafka.sasl.username"},
		{"its code is no code", gives(400, `{"error":"SECRET"}`), "answered 400: check"},
		{"it fails", gives(500, `SECRET`), "answered 500"},
		{"an answer without a token", gives(200, `{"note":"SECRET"}`), "answered without a token"},
		{"a page", gives(200, `<html>SECRET</html>`), "answered without a token"},
		{"it redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "it redirects to " + elsewhere.URL},
		{"it hangs", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client goes
			<-r.Context().Done()
		}, "gave no answer in time"},
		{"a token that the broker refuses", gives(200, `{"access_token":"stale","expires_in":3600}`),
			"the broker refuses the token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mended atomic.Bool
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if mended.Load() {
					gives(200, `{"access_token":"good","token_type":"Bearer","expires_in":3600}`)(w, r)
					return
				}
				c.answers(w, r)
			}))
			defer endpoint.Close()
			cluster := s.cluster(c.name, func(p *producer.Config) {
				p.SASL = producer.SASL{Mechanism: "OAUTHBEARER", TokenURL: endpoint.URL, Username: "stream",
					Password: rotation.Literal(secret), TokenHTTP: httpclient.New(nil, 300*time.Millisecond)}
			})
			err := cluster.Ping(s.ctx())
			if wantText(t, err, c.says); strings.Contains(err.Error(), secret) {
				t.Errorf("%v contains the secret", err)
			}
			mended.Store(true)
			if err := cluster.Ping(s.ctx()); err != nil {
				t.Errorf("the same client, when all is well: %v", err)
			}
		})
	}
}

// Every connection logs in, and there are many. The endpoint is asked once until the token is about to
// expire.
func TestATokenIsFetchedOnceForAllConnections(t *testing.T) {
	s := tokenStage(t)
	var asked atomic.Int32
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, key, _ := r.BasicAuth()
		if id != "stream" || key == "" || r.FormValue("scope") != "read write" ||
			r.FormValue("grant_type") != "client_credentials" {
			t.Errorf("asked for with %v", r.Form)
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"good","expires_in":3600}`)
	}))
	defer endpoint.Close()
	cluster := s.cluster("a", func(p *producer.Config) {
		p.SASL = producer.SASL{Mechanism: "OAUTHBEARER", TokenURL: endpoint.URL, Username: "stream",
			Password: rotation.Literal(secret), Scopes: []string{"read", "write"}}
	})
	session := s.take(cluster)
	s.commit(session, next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	if asked.Load() != 1 {
		t.Errorf("asked for %d tokens", asked.Load())
	}
}

// Whoever logs in next has the secret that the file holds by then.
func TestAClientsSecretThatIsRotatedIsUsedForTheNextToken(t *testing.T) {
	s := tokenStage(t)
	mount := servers.MountForTest(t, t.TempDir(), map[string]string{"secret": "first-word"})
	expected := atomic.Pointer[string]{}
	expect := func(secret string) { expected.Store(&secret) }
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, got, _ := r.BasicAuth(); got != *expected.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		fmt.Fprint(w, `{"access_token":"good","expires_in":1}`) // so each login fetches another
	}))
	defer endpoint.Close()
	word, err := rotation.Follow(nil, "kafka.sasl.password", mount.Path("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster := s.cluster("a", func(p *producer.Config) {
		p.SASL = producer.SASL{Mechanism: "OAUTHBEARER", TokenURL: endpoint.URL, Username: "stream",
			Password: word}
	})
	expect("first-word")
	s.take(cluster)
	expect("second-word")
	_, err = producer.Take(s.ctx(), cluster, s.orders())
	wantText(t, err, "answered 401 invalid_client")
	mount.Swap(map[string]string{"secret": "second-word"})
	s.take(cluster)
}
