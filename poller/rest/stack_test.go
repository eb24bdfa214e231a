package rest

import (
	"crypto/tls"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// deepest is a connection that keeps the longest stack of a request for a page: this package and its client.
type deepest struct{ functions []string }

func (d *deepest) RoundTrip(r *http.Request) (*http.Response, error) {
	var pcs [200]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	var ours []string
	for f, more := frames.Next(); more; f, more = frames.Next() {
		if strings.Contains(f.Function, "poller/rest") && !strings.HasSuffix(f.File, "_test.go") {
			ours = append(ours, f.Function[strings.LastIndex(f.Function, "/")+1:])
		}
	}
	if slices.Index(ours, "rest.(*read).pages") == 3 && len(ours) > len(d.functions) {
		d.functions = ours
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A newcomer sees the whole way of a read in one stack.
func TestAPassAsksThroughFewFunctions(t *testing.T) {
	s := newService(t)
	s.now, s.maxPage = clockAt("2026-11-20T12:00:00Z"), 100
	s.products = append(history(500), oneDay(10_000, 1000, "2026-11-19")...)
	var seen deepest
	src := s.source(s.client(client.Config{Now: s.now,
		TLS: func(func(*tls.Config) *http.Transport) http.RoundTripper { return &seen }}))
	got, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	got.completely(t)
	if n := len(seen.functions); n == 0 || n > 7 {
		t.Errorf("%d functions above a request for a page, expected 7 at most: %q", n, seen.functions)
	}
}
