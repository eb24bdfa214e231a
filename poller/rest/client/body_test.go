package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/poller"
)

// ask opens a client of a service that answers like this, for keys too.
func ask(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := New(Config{BaseURL: server.URL, APIKey: rotation.Literal("k"), Attempts: 2,
		RequestTimeout:       20 * time.Second,
		MaxRequestsPerSecond: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// pour writes b again and again until nobody reads.
func pour(w io.Writer, b []byte) {
	for {
		if _, err := w.Write(b); err != nil {
			return
		}
	}
}

// Three resources ask at once, and no answer ends. Each is told so, and the memory is that of one of them.
func TestAnswersWithoutEndAreCutOffAndTakeTurns(t *testing.T) {
	junk := []byte(strings.Repeat("x", 1<<16))
	many := strings.Repeat(",1", 1<<17)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 640 { // 40 MiB
		_, _ = z.Write(junk)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a string": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"id":"`)
			pour(w, junk)
		}, "longer than 32 MiB"},
		"a length": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(1<<30))
			pour(w, junk)
		}, "longer than 32 MiB"},
		"compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		}, "longer than 32 MiB"},
		"rows of one byte": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[1`)
			for range 8 { // 2 MiB
				_, _ = io.WriteString(w, many)
			}
			fmt.Fprint(w, `],"meta":{"has_more":false}}`)
		}, "more than 100000 rows"},
		"an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			pour(w, junk)
		}, "answered 400"},
	} {
		t.Run(name, func(t *testing.T) {
			client := ask(t, c.answer)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var resources sync.WaitGroup
			for i := range 3 {
				path := fmt.Sprintf("/resource-%d", i)
				resources.Go(func() {
					e := client.Endpoint(path, uncounted, unwaited)
					defer e.Release()
					_, err := e.Page(t.Context(), "page=0", 0)
					var blocked *poller.BlockedError
					if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) ||
						errors.As(err, &blocked) == (Refusal(err) != nil) {
						t.Errorf("%v", err)
					}
				})
			}
			resources.Wait()
			runtime.ReadMemStats(&after)
			// All that was taken in turn: 33 MiB for each of the three, and its beginning and some waste.
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 3*60 {
				t.Errorf("it took %d MiB in all", took)
			}
			if len(client.large) != 0 {
				t.Error("the place of a large answer was not given back")
			}
		})
	}
}

// Large pages that do end are read, one after the other, by all who ask. Ordinary ones don't wait for them.
func TestLargePagesWaitForEachOther(t *testing.T) {
	const resources = 5
	row := `{"id":1,"name":"` + strings.Repeat("x", 2*ordinaryBody/1000) + `"}`
	var mu sync.Mutex
	now, most := 0, 0
	c := ask(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ordinary" {
			fmt.Fprint(w, `{"data":[],"meta":{"has_more":false}}`)
			return
		}
		fmt.Fprint(w, `{"data":[`+row+strings.Repeat(","+row, 999)+`],"meta":{"has_more":false}}`)
	})
	var all sync.WaitGroup
	for i := range resources {
		e := c.Endpoint(fmt.Sprintf("/%d", i), uncounted, unwaited)
		all.Go(func() {
			for range 3 {
				p, err := e.Page(t.Context(), "page=0", 0)
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				if err != nil || len(p.Rows) != 1000 || len(p.Rows[999]) != len(row) {
					t.Errorf("%d rows, %v", len(p.Rows), err)
				}
				if _, err := c.Endpoint("/ordinary", uncounted, unwaited).Page(t.Context(), "page=0", 0); err != nil {
					t.Error(err)
				}
				mu.Lock()
				now--
				mu.Unlock()
				e.Release()
			}
		})
	}
	all.Wait()
	if most > largeBodies {
		t.Errorf("%d large pages at once", most)
	}
}

// largePage is a page of 2 MiB.
func largePage(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `{"data":["%s"],"meta":{"has_more":true}}`, strings.Repeat("x", 2*ordinaryBody))
}

// The time for an answer stands still while it waits for its turn.
func TestTheWaitForAnotherLargePageIsNotTheServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		service := answering(func(*http.Request) *http.Response {
			asked++
			answer := httptest.NewRecorder()
			largePage(answer, nil)
			return answer.Result()
		})
		c, err := New(Config{BaseURL: "http://service", APIKey: rotation.Literal("key"),
			RequestTimeout: time.Second, HTTP: &http.Client{Transport: service}})
		if err != nil {
			t.Fatal(err)
		}
		first, second := c.Endpoint("/first", uncounted, unwaited), c.Endpoint("/second", uncounted, unwaited)
		if _, err := first.Page(t.Context(), "", 0); err != nil {
			t.Fatal(err)
		}
		read := make(chan error)
		go func() {
			_, err := second.Page(t.Context(), "", 0)
			read <- err
		}()
		if err := wait.For(t.Context(), time.Minute); err != nil { // by the bubble's clock
			t.Fatal(err)
		}
		first.Release()
		if err := <-read; err != nil || asked != 2 {
			t.Errorf("%v, asked %d times", err, asked)
		}
	})
}

// answering is a way to a service that answers at once, without a network.
type answering func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := a(r)
	answer.Request = r
	return answer, nil
}

// The page before the one that is asked for is not needed any more.
func TestALargePageKeepsItsPlaceNoLongerThanUntilTheNextRequest(t *testing.T) {
	c := ask(t, largePage)
	e := c.Endpoint("/r", uncounted, unwaited)
	if _, err := e.Page(t.Context(), "page=0", 0); err != nil || len(c.large) != 1 {
		t.Fatal(err, len(c.large))
	}
	c.limit.refused("/r", time.Now(), time.Hour, "") // the service refuses requests for their rate
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := e.Page(stopped, "page=1", 0); !errors.Is(err, context.Canceled) || len(c.large) != 0 {
		t.Errorf("%v, %d places taken", err, len(c.large))
	}
}

func TestHeadersOfMoreThanAPageAreRefused(t *testing.T) {
	c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 8 {
			w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 64<<10))
		}
	})
	_, err := c.Endpoint("/orders", uncounted, unwaited).Page(t.Context(), "", 0)
	if err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("%v, expected an error that tells of headers", err)
	}
}
