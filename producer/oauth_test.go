//go:build !kafka

package producer_test

import (
	"context"
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
		{"it refuses the client", gives(401, `{"error":"invalid_client",
			"error_description":"No client has\n the secret SECRET, AADSTS7000215."}`),
			`answered 401 "invalid_client No client has the secret ******, AADSTS7000215.": perhaps that address, ` +
				"kafka.sasl.username"},
		{"it refuses at length", gives(400, `{"error":"invalid_scope","error_description":"`+
			strings.Repeat("long ", 1000)+`"}`), `answered 400 "invalid_scope long long`},
		{"it refuses without a code", gives(403, `SECRET`), `answered 403 "": perhaps`},
		{"its code is no code", gives(400, `{"error":"SECRET"}`), `answered 400 "******": perhaps`},
		{"it is overloaded", gives(429, `{"error":"slow_down"}`), `answered 429 "slow_down"`},
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
			`refuses the token with {"status":"invalid_token"}: perhaps`},
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
				hidden := rotation.NewHidden("", "stream")
				hidden.Add("kafka.sasl.password", secret)
				p.SASL = producer.SASL{Mechanism: "OAUTHBEARER", TokenURL: endpoint.URL, Username: "stream",
					Hidden: hidden, Password: rotation.Literal(secret), TokenHTTP: httpclient.New(nil, 300*time.Millisecond)}
			})
			err := cluster.Ping(s.ctx())
			if wantText(t, err, c.says); strings.Contains(err.Error(), secret) || len(err.Error()) > 1000 {
				t.Errorf("%v contains the secret, or is too long", err)
			}
			mended.Store(true)
			awaitPing(t, s.ctx(), cluster)
		})
	}
}

// awaitPing waits until the brokers let this client in.
func awaitPing(t *testing.T, ctx context.Context, c *producer.Cluster) {
	t.Helper()
	for err := c.Ping(ctx); err != nil; err = c.Ping(ctx) {
		if ctx.Err() != nil {
			t.Fatalf("the same client, when all is well: %v", err)
		}
	}
}

// issuer starts an endpoint of tokens. It counts what it refuses and what it gives.
func issuer(t *testing.T, allows func(*http.Request) bool, token string) (
	url string, refused, given *atomic.Int32) {
	t.Helper()
	refused, given = &atomic.Int32{}, &atomic.Int32{}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !allows(r) {
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		given.Add(1)
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":1}`, token) // so each login fetches another
	}))
	t.Cleanup(endpoint.Close)
	return endpoint.URL, refused, given
}

// oauth is a login at an issuer.
func oauth(url string, parameters map[string]string) func(*producer.Config) {
	return func(p *producer.Config) {
		p.SASL = producer.SASL{Mechanism: "OAUTHBEARER", TokenURL: url, Username: "stream",
			Password: rotation.Literal(secret), Parameters: parameters}
	}
}

// Some endpoints take the client's secret in the body only. After the first token each takes one request.
func TestTheWayInWhichAnEndpointTakesTheSecretIsRemembered(t *testing.T) {
	s := tokenStage(t)
	url, refused, given := issuer(t, func(r *http.Request) bool {
		_, _, inHeader := r.BasicAuth()
		return !inHeader && r.PostFormValue("client_id") == "stream" && r.PostFormValue("client_secret") == secret
	}, "good")
	session := s.take(s.cluster("a", oauth(url, nil)))
	s.commit(session, next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	if perClient := refused.Load(); perClient == 0 || given.Load() <= perClient || perClient > 1 {
		t.Errorf("%d requests refused, %d tokens given: expected one refusal", perClient, given.Load())
	}
}

// An endpoint that refuses a client a thousand times locks it out.
func TestASecretThatIsRefusedIsNotSentWithEveryLogin(t *testing.T) {
	s := tokenStage(t)
	url, refused, _ := issuer(t, func(*http.Request) bool { return false }, "")
	cluster := s.cluster("a", oauth(url, nil))
	const logins = 200
	for range logins {
		if err := cluster.Ping(s.ctx()); err == nil {
			t.Fatal("the broker let it in")
		}
	}
	if refused.Load() >= logins {
		t.Errorf("%d requests to the endpoint for %d logins", refused.Load(), logins)
	}
}

// The same of a token that a broker refuses.
func TestATokenThatIsRefusedIsNotFetchedWithEveryLogin(t *testing.T) {
	s := tokenStage(t)
	url, _, given := issuer(t, func(*http.Request) bool { return true }, "bad")
	cluster := s.cluster("a", oauth(url, nil))
	const logins = 200
	for range logins {
		if err := cluster.Ping(s.ctx()); err == nil {
			t.Fatal("the broker let it in")
		}
	}
	if given.Load() >= logins/2 {
		t.Errorf("%d tokens for %d logins", given.Load(), logins)
	}
}

// The clients of a process share their tokens. One that is closed while it fetches a token is no refusal.
func TestAClientThatIsClosedKeepsNoOtherFromAToken(t *testing.T) {
	asked := make(chan struct{}, 1)
	var hangs atomic.Bool
	hangs.Store(true)
	url, _, _ := issuer(t, func(r *http.Request) bool {
		_ = r.ParseForm() // or the server does not see that the client goes
		if hangs.Load() {
			asked <- struct{}{}
			<-r.Context().Done()
		}
		return true
	}, "good")
	tokens := producer.Login(producer.SASL{TokenURL: url, Username: "stream",
		Password: rotation.Literal(secret)})
	closed, closes := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, _, err := tokens.Authenticate(closed, "broker")
		ended <- err
	}()
	<-asked
	hangs.Store(false)
	closes()
	if err := <-ended; err == nil {
		t.Error("a client that was closed got a token")
	}
	if _, _, err := tokens.Authenticate(t.Context(), "broker"); err != nil {
		t.Errorf("the other client: %v", err)
	}
}

// Auth0 wants an audience, others a resource, and Confluent Cloud extensions.
func TestParametersGoToTheEndpointAndExtensionsToTheBroker(t *testing.T) {
	s := newStage(t)
	s.broker.AskForToken("good\x01identityPoolId=pool-1\x01logicalCluster=lkc-1")
	url, refused, _ := issuer(t, func(r *http.Request) bool {
		_ = r.ParseForm()
		return r.PostForm.Encode() ==
			"audience=kafka&grant_type=client_credentials&resource=urn%3Ak&scope=read+write"
	}, "good")
	awaitPing(t, s.ctx(), s.cluster("a", oauth(url, map[string]string{"audience": "kafka", "resource": "urn:k",
		"scope": "read write", "extension_logicalCluster": "lkc-1", "extension_identityPoolId": "pool-1"})))
	if refused.Load() > 0 {
		t.Errorf("%d requests had other parameters", refused.Load())
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
			Password: rotation.Literal(secret), Parameters: map[string]string{"scope": "read write"}}
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
	wantText(t, err, `answered 401 "invalid_client"`)
	mount.Swap(map[string]string{"secret": "second-word"})
	s.take(cluster)
}
