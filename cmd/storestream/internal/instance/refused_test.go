package instance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/schemas"
)

// A service asks for a pause of 31 years. While storestream waits, the page, /readyz and the watermark say
// so, and until when: a watermark that nobody writes would be taken for one of a dead owner.
func TestWhatTheServiceAskedToWaitForIsSaidWhileItLasts(t *testing.T) {
	s := stage.New(t)
	fake := s.Serve(nil)
	address, err := url.Parse(fake.BaseURL())
	if err != nil {
		t.Fatal(err)
	}
	var refuses atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: address.Scheme, Host: address.Host})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			w.Header().Set("Retry-After", "1000000000")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	s.Settings = append(s.Settings, "store.base_url="+front.URL+address.Path, "resources.products.interval=1s")
	for _, name := range schemas.Names() {
		if name != "products" {
			s.Settings = append(s.Settings, "resources."+name+".enabled=false")
		}
	}
	c := configOf(t, s, "a")
	begin(t, c)
	stage.Eventually(t, "it is ready", func() bool {
		snapshot := c.Board.Snapshot()
		ready, _ := snapshot.Ready()
		return ready && len(snapshot.Resources) == 1 && snapshot.Resources[0].Passes > 0
	})
	refuses.Store(true)
	var said string
	stage.Eventually(t, "the watermark says what it waits for", func() bool {
		resources, err := overview.Read(t.Context(), c.Settings, c.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		said = resources[0].Text()
		return strings.Contains(said, "waiting for the service")
	})
	snapshot := c.Board.Snapshot()
	until := snapshot.Service.RefusedUntil
	for _, part := range []string{"429", until.Format("2006-01-02T15:04:05")} {
		if !strings.Contains(said, part) {
			t.Errorf("the watermark says %q, without %q", said, part)
		}
	}
	if r := snapshot.Resources[0]; r.State != health.Failing || !strings.Contains(said, r.Why) {
		t.Errorf("the page says %s: %q, the watermark %q", r.State, r.Why, said)
	}
	if _, lines := snapshot.Ready(); !strings.Contains(fmt.Sprint(lines), until.Format("2006-01-02T15:04:05Z")) {
		t.Errorf("/readyz says %q", lines)
	}
}
