package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// Each kind of refusal is waited out, and the read goes on.
func TestRefusedRequestsAreSentAgain(t *testing.T) {
	for name, refusal := range map[string]func(w http.ResponseWriter){
		"429 absent": func(w http.ResponseWriter) { refuse(w, 429, "rate_limited") },
		"429 zero": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			refuse(w, 429, "rate_limited")
		},
		"503 garbage": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "soon")
			refuse(w, 503, "busy")
		},
		"429 html": func(w http.ResponseWriter) { w.WriteHeader(429); fmt.Fprint(w, "<html>slow down</html>") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.products = someProducts(3)
			refused := false
			s.before = func(w http.ResponseWriter, _ url.Values) bool {
				if refused {
					return false
				}
				refused = true
				refusal(w)
				return true
			}
			c := s.client(client.Config{})
			got, err := readAll(t.Context(), s.source(c), pass(schemas.MinInstant))
			if err != nil {
				t.Fatal(err)
			}
			got.has(t, s.products)
			if rate := c.State().RequestsPerSecond; rate > 0.6e6 {
				t.Errorf("still sends %v a second", rate)
			}
		})
	}
}

func someProducts(n int) []product {
	var rows []product
	for i := range n {
		created := at("2026-11-01T00:00:00Z").Add(time.Duration(i) * time.Minute)
		rows = append(rows, product{id: int64(i + 1), created: created, updated: created})
	}
	return rows
}

// The key expires in the middle of a pass; several workers meet it at once and one new key is fetched.
func TestARevokedKeyIsReplacedOnceForAllWorkers(t *testing.T) {
	s := newService(t)
	s.products = someProducts(10)
	c := s.client(client.Config{})
	if _, err := readAll(t.Context(), s.source(c), pass(schemas.MinInstant)); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.key, s.keys = "key-1", 0
	s.mu.Unlock()
	var workers sync.WaitGroup
	for range 5 {
		workers.Go(func() {
			if _, err := readAll(t.Context(), s.source(c), pass(schemas.MinInstant)); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if s.keys != 1 {
		t.Errorf("%d keys fetched, want 1", s.keys)
	}
}

func TestAConfiguredKeyThatIsRefusedHoldsAndNamesTheSetting(t *testing.T) {
	s := newService(t)
	src := s.source(s.client(client.Config{APIKey: rotation.Literal("mine-1234")}))
	_, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	var blocked *poller.BlockedError
	if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "store.api_key") ||
		strings.Contains(err.Error(), "mine-1234") {
		t.Errorf("error %v", err)
	}
	if s.keys != 0 {
		t.Error("a key was fetched in place of the configured one")
	}
}

// Faults in the middle are tried again, within the request.
func TestServerErrorsAndBrokenConnectionsAreTriedAgain(t *testing.T) {
	for name, fault := range map[string]func(w http.ResponseWriter){
		"500":           func(w http.ResponseWriter) { refuse(w, 500, "internal_error") },
		"502 html":      func(w http.ResponseWriter) { w.WriteHeader(502); fmt.Fprint(w, "<html>") },
		"reset":         func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"html with 200": func(w http.ResponseWriter) { fmt.Fprint(w, "<!doctype html><p>maintenance") },
		"cut body":      func(w http.ResponseWriter) { fmt.Fprint(w, `{"data":[{"id":1},{"id"`) },
		"empty body":    func(http.ResponseWriter) {},
		"short of length": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"data":[]`)
		},
		"another object": func(w http.ResponseWriter) { fmt.Fprint(w, `{"hello":"world"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.products = someProducts(2500)
			s.order = byUpdated
			n := 0
			s.before = func(w http.ResponseWriter, q url.Values) bool {
				if n++; n != 3 && n != 20 {
					return false
				}
				fault(w)
				return true
			}
			got, err := readAll(t.Context(), s.source(s.client(client.Config{})), pass(schemas.MinInstant))
			if err != nil {
				t.Fatal(err)
			}
			got.has(t, s.products)
		})
	}
}

// The read keeps what it has: the days settled before a fault that does not go away stay settled, and later
// days are read.
func TestWhatWasReadBeforeALastingFaultStaysSettled(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	for d := range 19 {
		for i := range 1500 {
			created := at("2026-11-01T00:00:00Z").Add(time.Duration(d)*24*time.Hour + time.Duration(i)*time.Second)
			s.products = append(s.products, product{id: int64(d*1500 + i + 1), created: created, updated: created})
		}
	}
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		if q.Get("updated_from") > "2026-11-12" || q.Get("updated_to") < "2026-11-12" || q.Get("page") == "0" {
			return false
		}
		refuse(w, 403, "forbidden")
		return true
	}
	source := s.source(s.client(client.Config{Now: s.now, Attempts: 1}))
	got, err := readAll(t.Context(), source, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	if delayed := got.done.Delayed; !strings.Contains(delayed, "2026-11-12 cannot be closed") ||
		!strings.Contains(delayed, "answered 403 forbidden") || len(got.rows) != 18*1500+1000 {
		t.Errorf("%d rows, delayed: %s", len(got.rows), delayed)
	}
	if got.settled == schemas.MinInstant || got.settled > schemas.InstantOf(at("2026-11-12T00:00:00Z")) {
		t.Errorf("settled %s", got.settled)
	}
}

// The other requests look whether the service answers in another form, or for pages of another size, and
// whether it answers at all.
func TestABadRequestIsNotRepeatedAndNamesTheCode(t *testing.T) {
	s := newService(t)
	s.before = func(w http.ResponseWriter, _ url.Values) bool { refuse(w, 400, "invalid_param"); return true }
	_, err := readAll(t.Context(), s.source(s.client(client.Config{})), pass(schemas.MinInstant))
	var blocked *poller.BlockedError
	if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "invalid_param") || s.requests > 6 {
		t.Errorf("%d requests, error %v", s.requests, err)
	}
}

func TestAnotherSiteAtTheBaseAddressIsSaid(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	c, err := client.New(client.Config{BaseURL: site.URL, APIKey: rotation.Literal("k"),
		MaxRequestsPerSecond: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t}
	_, err = readAll(t.Context(), s.source(c), pass(schemas.MinInstant))
	if err == nil || !strings.Contains(err.Error(), "store.base_url") {
		t.Errorf("error %v", err)
	}
}

func TestAnEndlessBodyIsBounded(t *testing.T) {
	s := newService(t)
	s.before = func(w http.ResponseWriter, _ url.Values) bool {
		row := []byte(strings.Repeat(`{"id":1},`, 1<<16))
		fmt.Fprint(w, `{"data":[`)
		for {
			if _, err := w.Write(row); err != nil {
				return true
			}
		}
	}
	_, err := readAll(t.Context(), s.source(s.client(client.Config{})), pass(schemas.MinInstant))
	var blocked *poller.BlockedError
	if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "longer than 32 MiB") {
		t.Errorf("error %v", err)
	}
}

func TestASlowBodyEndsWithTheTimeoutAndIsTriedAgain(t *testing.T) {
	s := newService(t)
	s.products = someProducts(2)
	slow := true
	s.before = func(w http.ResponseWriter, _ url.Values) bool {
		if !slow {
			return false
		}
		slow = false
		fmt.Fprint(w, `{"data":[`)
		w.(http.Flusher).Flush()
		s.mu.Unlock() // the client gives up, and asks again
		defer s.mu.Lock()
		select {
		case <-s.closed:
		case <-time.After(time.Second):
		}
		return true
	}
	src := s.source(s.client(client.Config{RequestTimeout: 200 * time.Millisecond}))
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.has(t, s.products)
}

func TestAReadThatIsCancelledWhileRefusedEndsAtOnce(t *testing.T) {
	s := newService(t)
	stop := errors.New("stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	s.before = func(w http.ResponseWriter, _ url.Values) bool {
		w.Header().Set("Retry-After", "300")
		refuse(w, 429, "rate_limited")
		cancel(stop)
		return true
	}
	_, err := readAll(ctx, s.source(s.client(client.Config{})), pass(schemas.MinInstant))
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}
