package registry

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/schemas"
)

func load(t *testing.T) *schemas.Set {
	t.Helper()
	s, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// registryFor starts a registry and a client of it.
func registryFor(t *testing.T) (*srfake.Registry, *Client) {
	t.Helper()
	fake := srfake.New()
	t.Cleanup(fake.Close)
	return fake, client(t, fake.URL())
}

func client(t *testing.T, url string) *Client {
	t.Helper()
	g, err := New(Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// answers is a server that gives one answer to everything.
func answers(t *testing.T, status int, contentType, body string) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return client(t, s.URL)
}

func asReader(req *http.Request) error {
	req.SetBasicAuth("reader", "hunter2")
	return nil
}

// A dead HTTP/2 connection would take every request: each times out and leaves it to the next one.
func TestADeadConnectionIsNotUsedAgain(t *testing.T) {
	fake := srfake.New()
	defer fake.Close()
	to, err := url.Parse(fake.URL())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(to))
	a := servers.AuthorityForTest(t, t.TempDir())
	pair := a.Issue(servers.CertificateConfig{}).Pair
	server.EnableHTTP2, server.TLS = true, &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()
	way := servers.LineForTest(t, server.Listener.Addr().String())
	files, err := tlsfile.Files{CAFile: a.File}.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{URL: "https://" + way.Addr(), HTTP: httpclient.New(files, 4*time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	ensure := func() error {
		_, _, err := c.Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, false)
		return err
	}
	if err := ensure(); err != nil {
		t.Fatal(err)
	}
	way.Cut()
	_ = ensure() // finds out
	if err := ensure(); err != nil || way.Connections() < 2 {
		t.Errorf("%d connections: %v", way.Connections(), err)
	}
}

func faultIs(t *testing.T, err error, want Fault, texts ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Fault != want {
		t.Errorf("got %v, expected a fault that %s", err, advice[want])
		return
	}
	if Retryable(err) != (want == Unreachable) {
		t.Errorf("retryable: %v: %v", Retryable(err), err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not say %q", err, text)
		}
	}
}

func TestBothSubjectsOfATopicAreRegisteredOnceAndFoundAgain(t *testing.T) {
	fake, g := registryFor(t)
	r := load(t).Get("orders")
	keyID, valueID, err := g.Ensure(t.Context(), "store.orders", r, true, false)
	if err != nil {
		t.Fatal(err)
	}
	_ = fake.SetMode("", sr.ModeReadOnly)
	fake.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if strings.HasSuffix(req.URL.Path, "/versions") {
			t.Error("registered again: " + req.URL.Path)
		}
		return false
	})
	for _, auto := range []bool{true, false} {
		capitals := strings.Replace(fake.URL(), "http:", "HTTP:", 1)
		k, v, err := client(t, capitals).Ensure(t.Context(), "store.orders", r, auto, false)
		if k != keyID || v != valueID || err != nil {
			t.Errorf("%d, %d, %v; registered as %d, %d", k, v, err, keyID, valueID)
		}
	}
	text, err := g.Schema(t.Context(), valueID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schemas.NewValueReader(r, text); err != nil || !strings.Contains(text, `"total_amount"`) {
		t.Errorf("%s: %v", text, err)
	}
}

func TestNothingIsRegisteredWhereThatIsNotWanted(t *testing.T) {
	fake, g := registryFor(t)
	_, _, err := g.Ensure(t.Context(), "store.users", load(t).Get("users"), false, false)
	faultIs(t, err, NotRegistered, "store.users-key", "storestream schema register")
	_, _, err = g.Ensure(t.Context(), "store.users", load(t).Get("users"), false, true)
	faultIs(t, err, NotRegistered, "store.users-key", "store.users-value")
	key, value, err := g.Ensure(t.Context(), "store.users", load(t).Get("users"), true, true)
	if key != 0 || value != 0 || err != nil {
		t.Errorf("%d, %d: %v", key, value, err)
	}
	if fake.SubjectExists("store.users-key") || fake.SubjectExists("store.users-value") {
		t.Error("registered all the same")
	}
}

// refuse lets the registry answer a path with an error of Confluent's form.
func refuse(fake *srfake.Registry, method, pathEnd string, status int, body string) {
	fake.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != method || !strings.HasSuffix(req.URL.Path, pathEnd) {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	})
}

// What a registry refuses stops the resource with a reason that a person can act on; what may pass by itself
// is tried again.
func TestARegistryThatRefusesIsToldApartFromOneThatIsDown(t *testing.T) {
	r := load(t).Get("orders")
	for _, c := range []struct {
		status int
		body   string
		want   Fault
		text   string
	}{
		{409, `{"error_code":409,"message":"Schema is incompatible with an earlier one"}`, Refused,
			`answered 409 (code 409, "Schema is incompatible with an earlier one"): it refuses the schema`},
		{422, `{"error_code":42205,"message":"Subject is in read-only mode"}`, Refused, "42205"},
		{422, `{"error_code":42201,"message":"Invalid schema"}`, Refused, "42201"},
		{403, `{"error_code":40301,"message":"no"}`, Unauthorized, "registry.username"},
		{500, `{"error_code":50003,"message":"Error while forwarding"}`, Unreachable, "50003"},
		{503, `<html>try later</html>`, Unreachable, "503"},
		{429, `slow down`, Unreachable, "429"},
	} {
		fake, g := registryFor(t)
		refuse(fake, http.MethodPost, "/subjects/store.orders-value/versions", c.status, c.body)
		_, _, err := g.Ensure(t.Context(), "store.orders", r, true, false)
		faultIs(t, err, c.want, "store.orders-value", c.text)
	}
}

func TestACompatibilityCheckGivesTheRegistrysReasons(t *testing.T) {
	fake, g := registryFor(t)
	old := strings.Replace(load(t).Get("orders").ValueSchema(), `"string"`, `"long"`, 1)
	fake.SeedSchema("store.orders-value", 1, 7, sr.Schema{Schema: old, Type: sr.TypeAvro})
	refuse(fake, http.MethodPost, "/compatibility/subjects/store.orders-value/versions/latest", 200,
		`{"is_compatible":false,"messages":["status: long is no string"]}`)
	_, _, err := g.Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, true)
	faultIs(t, err, Refused, "store.orders-value", "status: long is no string")
	if strings.Contains(err.Error(), "store.orders-key") {
		t.Error(err)
	}
}

// Registering a second key schema would be compatible to a registry, and would give every row two keys.
func TestAKeySubjectThatHoldsAnotherSchemaIsRefused(t *testing.T) {
	fake, g := registryFor(t)
	other := `{"type":"record","name":"OrderKey","fields":[{"name":"id","type":"int"}]}`
	fake.SeedSchema("store.orders-key", 1, 7, sr.Schema{Schema: other, Type: sr.TypeAvro})
	_, _, err := g.Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, false)
	faultIs(t, err, KeyChanged, "store.orders-key", "two keys", "kafka.topic_prefix")
	if _, ok := fake.GetSchema("store.orders-key", 2); ok {
		t.Error("a second key schema was registered")
	}
	if fake.SubjectExists("store.orders-value") {
		t.Error("a schema of values was registered beside it")
	}
	_, _, err = g.Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, true)
	faultIs(t, err, KeyChanged, "store.orders-key")
}

func TestAnAddressThatIsNoRegistryIsSaidToBeNone(t *testing.T) {
	r := load(t).Get("orders")
	for name, g := range map[string]*Client{
		"a page":         answers(t, 200, "text/html; charset=utf-8", "<html><body>Welcome</body></html>"),
		"a missing page": answers(t, 404, "text/html", "<html>not found</html>"),
		"plain text":     answers(t, 404, "text/plain", "404 page not found"),
		"other JSON":     answers(t, 200, "application/json", `{"status":"ok"}`),
		"other errors":   answers(t, 404, "application/json", `{"error":"not_found"}`),
		"an array":       answers(t, 200, "application/json", `[]`),
	} {
		_, _, err := g.Ensure(t.Context(), "store.orders", r, true, false)
		var e *Error
		if !errors.As(err, &e) || e.Fault != NotARegistry || !strings.Contains(err.Error(), "registry.url") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARegistryThatIsDownIsTriedAgain(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, _, err := client(t, s.URL).Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, false)
	faultIs(t, err, Unreachable, s.URL)
	_, err = answers(t, 502, "text/html", "<html>Bad Gateway</html>").Schema(t.Context(), 1)
	faultIs(t, err, Unreachable, "502")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client(t, s.URL).Schema(ctx, 1); !errors.Is(err, context.Canceled) || Retryable(err) {
		t.Errorf("got %v", err)
	}
	if Retryable(nil) || Retryable(errors.New("other")) {
		t.Error("every error is retryable")
	}
}

func TestCredentialsAreSentAndStandInNoError(t *testing.T) {
	var sent atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		sent.Store(req.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error_code":40101,"message":"Unauthorized"}`)
	}))
	defer s.Close()
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("reader:hunter2"))
	g, err := New(Config{URL: s.URL, LogIn: asReader})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = g.Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, false)
	faultIs(t, err, Unauthorized, "registry.password")
	if sent.Load() != want || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("sent %v; %v", sent.Load(), err)
	}
}

// net/http takes a password along to another port or scheme of the same host name.
func TestARedirectIsNeverFollowedWithThePassword(t *testing.T) {
	r := load(t).Get("orders")
	for name, start := range map[string]func(*httptest.Server){
		"another port": (*httptest.Server).Start, "another scheme": (*httptest.Server).StartTLS,
	} {
		var arrived atomic.Int32
		other := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			arrived.Add(1)
		}))
		start(other)
		defer other.Close()
		for _, status := range []int{301, 302, 303, 307, 308} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				http.Redirect(w, req, other.URL+req.URL.Path+"?token=hunter3", status)
			}))
			g, err := New(Config{URL: s.URL, LogIn: asReader})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = g.Ensure(t.Context(), "store.orders", r, true, false)
			faultIs(t, err, Moved, "registry.url")
			_, err = g.Schema(t.Context(), 1)
			faultIs(t, err, Moved)
			if arrived.Load() != 0 || strings.Contains(err.Error(), "hunter") {
				t.Errorf("%s, %d: %d requests arrived; %v", name, status, arrived.Load(), err)
			}
			s.Close()
		}
	}
}

func TestOnlyPlainAvroSchemasAreRead(t *testing.T) {
	protobuf := answers(t, 200, "application/json", `{"schemaType":"PROTOBUF","schema":"syntax = \"proto3\";"}`)
	_, err := protobuf.Schema(t.Context(), 1)
	faultIs(t, err, NotRegistered, "schema id 1")
	_, g := registryFor(t)
	_, err = g.Schema(t.Context(), 12345)
	faultIs(t, err, NotRegistered, "schema id 12345")
}

// Small registries, and proxies in front of large ones, may know no more than registering and reading.
func TestARegistryThatCannotLookSchemasUpIsRegisteredWith(t *testing.T) {
	for body, status := range map[string]int{"404 page not found": http.StatusNotFound,
		`{"error_code":405,"message":"HTTP 405 Method Not Allowed"}`: http.StatusMethodNotAllowed} {
		fake, g := registryFor(t)
		for _, subject := range []string{"store.orders-key", "store.orders-value"} {
			refuse(fake, http.MethodPost, "/subjects/"+subject, status, body)
		}
		r := load(t).Get("orders")
		key, value, err := g.Ensure(t.Context(), "store.orders", r, true, false)
		if err != nil || key == 0 || value == 0 {
			t.Fatalf("%d: ids %d and %d: %v", status, key, value, err)
		}
		if _, _, err := g.Ensure(t.Context(), "store.orders", r, false, false); err == nil {
			t.Error("without registering, a schema that cannot be looked up was taken for present")
		}
	}
}
