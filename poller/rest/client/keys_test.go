package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// keeper is a service that hands out keys. Only the last one is good: others are answered status.
type keeper struct {
	status int
	// keys refuses a request for a key, if it is set.
	keys func(w http.ResponseWriter) bool
	// forbidden is set if it refuses the path whatever the key.
	forbidden string

	mu   sync.Mutex
	good int // the number of the key that is good
	gave int // keys
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.URL.Path == keyPath:
		if k.keys == nil || !k.keys(w) {
			k.gave++
			k.good = k.gave
			fmt.Fprintf(w, "\ufeff"+`{"apiKey":"key-%d"}`, k.gave)
		}
	case r.Header.Get("Authorization") != fmt.Sprintf("Bearer key-%d", k.good):
		refusal(w, k.status)
	case r.URL.Path == k.forbidden:
		w.WriteHeader(http.StatusForbidden)
	default:
		fmt.Fprint(w, emptyPage)
	}
}

// refusal refuses a key, with the document's code also where the status is 200.
func refusal(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	fmt.Fprint(w, `{"error":"unauthorized","message":"key expired"}`)
}

// client opens a client of k. page asks for a page of path.
func (k *keeper) client(t *testing.T, attempts int) (page func(path string) error) {
	t.Helper()
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	c, err := New(Config{BaseURL: server.URL, Attempts: attempts, MaxRequestsPerSecond: 1000,
		RequestTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return func(path string) error {
		_, err := c.Endpoint(path, uncounted, unwaited).Page(t.Context(), "page=0", 0)
		return err
	}
}

// The service's description has 401 for a key that is not good any more. Many services answer 403,
// and some 200 with an error.
func TestAKeyThatIsRefusedIsReplacedWhateverTheStatus(t *testing.T) {
	for _, status := range []int{401, 403, 200} {
		k := &keeper{status: status}
		page := k.client(t, 1)
		if err := page("/store-orders"); err != nil {
			t.Fatal(err)
		}
		k.good = 0 // revoked
		if err := page("/store-orders"); err != nil || k.gave != 2 {
			t.Errorf("%d: %v after %d keys", status, err, k.gave)
		}
	}
}

// A 403 to a new key as well is one to the request. It costs a key once, not with each poll.
func TestA403ToANewKeyIsAnAnswerToTheRequest(t *testing.T) {
	k := &keeper{status: http.StatusUnauthorized, forbidden: "/store-users"}
	page := k.client(t, 1)
	for range 5 {
		if err := page("/store-orders"); err != nil {
			t.Fatal(err)
		}
		if refused := Refusal(page("/store-users")); refused == nil || refused.Status != http.StatusForbidden {
			t.Errorf("%v, want a refusal with 403", refused)
		}
	}
	if k.gave != 2 {
		t.Errorf("%d keys fetched, want 2", k.gave)
	}
}

// The key endpoint's outage costs those nothing who have a key that works.
func TestAnOutageOfTheKeyEndpointLeavesAKeyThatWorks(t *testing.T) {
	asked, answer := make(chan bool, 1), make(chan bool)
	k := &keeper{status: http.StatusUnauthorized, forbidden: "/store-users"}
	page := k.client(t, 1)
	if err := page("/store-orders"); err != nil {
		t.Fatal(err)
	}
	k.keys = func(w http.ResponseWriter) bool {
		k.mu.Unlock()
		asked <- true
		<-answer
		k.mu.Lock()
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	refused := make(chan error, 1)
	go func() { refused <- page("/store-users") }()
	select {
	case <-asked:
	case err := <-refused:
		t.Fatalf("%v, and no other key was asked for", err)
	}
	if err := page("/store-orders"); err != nil {
		t.Error(err)
	}
	close(answer)
	if err := <-refused; Refusal(err) == nil || Refusal(err).Path != "/store-users" {
		t.Errorf("%v, want the refusal of the request", err)
	}
}
