package registry

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/httpclient"
)

// pour writes until the client stops reading.
func pour(w io.Writer) {
	block := []byte(strings.Repeat("x", 1<<16))
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// Whatever answers at registry.url, it takes little memory and ends in time.
func TestWhatAHostileRegistryAnswersIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   Fault
		says   string
	}{
		"a schema without end": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"id":1,"schema":"`)
			pour(w)
		}, NotARegistry, ""},
		"an error without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"error_code":50001,"message":"`)
			pour(w)
		}, NotARegistry, ""},
		"a gzip bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, `{"id":1,"schema":"`)
			pour(z)
		}, NotARegistry, ""},
		"a million nested arrays": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"id":`+strings.Repeat("[", 1_000_000)+strings.Repeat("]", 1_000_000)+"}")
		}, NotARegistry, ""},
		"headers of 1 MB": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 16 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1<<16))
			}
		}, Unreachable, "header"},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, Unreachable, "exceeded"},
		"an answer in drips": {func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for http.NewResponseController(w).Flush() == nil {
				select {
				case <-tick.C:
					fmt.Fprint(w, " ")
				case <-r.Context().Done():
					return
				}
			}
		}, Unreachable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client has gone
				c.answer(w, r)
			}))
			defer s.Close()
			g, err := New(Config{URL: s.URL, HTTP: httpclient.New(nil, time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			if c.want != Unreachable { // it is not to be a matter of time
				if g, err = New(Config{URL: s.URL, HTTP: httpclient.New(nil, RequestTimeout)}); err != nil {
					t.Fatal(err)
				}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err = g.Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, false)
			faultIs(t, err, c.want, c.says)
			_, err = g.Schema(t.Context(), 1)
			faultIs(t, err, c.want, c.says)
			runtime.ReadMemStats(&after)
			// Two answers of 4 MiB each, which io.ReadAll copies as it makes room, and what our server takes.
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 80 {
				t.Errorf("two answers took %d MiB", took)
			}
			if len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestAnIDThatTheWireFormatHasNoRoomForIsRefused(t *testing.T) {
	for _, id := range []string{"-1", "99999999999"} {
		for _, unknown := range []string{"", "/subjects/store.orders-key"} { // looked up, or registered
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == unknown {
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprint(w, `{"error_code":40401}`)
					return
				}
				fmt.Fprintf(w, `{"id":%s}`, id)
			}))
			defer s.Close()
			g, err := New(Config{URL: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = g.Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, false)
			faultIs(t, err, NotARegistry, "")
		}
	}
}
