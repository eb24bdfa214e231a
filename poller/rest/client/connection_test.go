package client

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
)

// Without pings a dead HTTP/2 connection takes every request there is, whoever sends it: each times out and
// leaves the connection to the next one. Over HTTP/1 a request that times out closes its own, and the next
// attempt would take another one that is as dead.
func TestADeadConnectionIsNotUsedAgain(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		t.Run(fmt.Sprintf("HTTP/2 %v", http2), func(t *testing.T) {
			t.Parallel()
			const resources = 4
			var together sync.WaitGroup // requests that are answered when all have come
			together.Add(resources)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if (r.ProtoMajor == 2) != http2 {
					t.Errorf("it speaks %s", r.Proto)
				}
				if r.FormValue("page") == "0" {
					together.Done()
					together.Wait()
				}
				fmt.Fprint(w, `{"data":[],"meta":{"has_more":false}}`)
			}))
			a := servers.AuthorityForTest(t, t.TempDir())
			pair := a.Issue(servers.CertificateConfig{}).Pair
			server.EnableHTTP2, server.TLS = http2, &tls.Config{Certificates: []tls.Certificate{pair}}
			server.StartTLS()
			defer server.Close()
			way := servers.LineForTest(t, server.Listener.Addr().String())
			c, err := New(Config{BaseURL: "https://" + way.Addr(), APIKey: rotation.Literal("k"),
				HTTP:           trusting(t, a, 4*time.Second),
				RequestTimeout: 4 * time.Second, Attempts: 2, MaxRequestsPerSecond: 1000})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ask := func(n int, query string) {
				var all sync.WaitGroup
				for i := range n {
					all.Go(func() {
						e := c.Endpoint(fmt.Sprintf("/%d", i), uncounted, unwaited)
						if _, err := e.Page(t.Context(), query, 0); err != nil {
							t.Errorf("resource %d: %v", i, err)
						}
					})
				}
				all.Wait()
			}
			ask(resources, "page=0")
			before := way.Connections()
			way.Cut()
			n := 1 // over HTTP/1 the other connections are idle
			if http2 {
				n = resources
			}
			ask(n, "page=1") // by the second attempt at the latest
			if way.Connections() == before {
				t.Error("there is no other connection")
			}
		})
	}
}

// A body that drips is bounded by the time for the whole answer, not by that from byte to byte.
func TestABodyThatDripsEndsWithTheTimeout(t *testing.T) {
	c := ask(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"data":["`)
		for drip := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-r.Context().Done():
				drip.Stop()
				return
			case <-drip.C:
				fmt.Fprint(w, "x")
				w.(http.Flusher).Flush()
			}
		}
	})
	c.cfg.RequestTimeout = 200 * time.Millisecond
	_, err := c.Endpoint("/r", uncounted, unwaited).Page(t.Context(), "page=0", 0)
	if err == nil || !strings.Contains(err.Error(), "no complete answer within 200ms") {
		t.Errorf("%v", err)
	}
}
