package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
)

// tryProducts asks the service for one product, as check does: once.
func tryProducts(t *testing.T, base string) error {
	t.Helper()
	c, err := New(Config{BaseURL: base, Attempts: 1, RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return try(t, c)
}

func try(t *testing.T, c *Client) error {
	t.Helper()
	e := c.Endpoint("/store-products", uncounted, unwaited)
	defer e.Release()
	_, err := e.Page(t.Context(), "page=0&page_size=1", 0)
	return err
}

// service hands out keys and answers all else as products does.
func service(t *testing.T, products http.HandlerFunc) (base string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/v1"+keyPath, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"api_key":"k"}`)
	})
	mux.HandleFunc("/v1/store-products", products)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// Whoever calls check waits for the answer: what would pass by itself is reported after one request.
func TestATrialThatFailsSaysSoAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		status          int
		blocked, passes bool
		says            string
	}{
		"rate":      {429, false, true, "answered 429"},
		"overload":  {503, false, false, "answered 503"},
		"fault":     {500, false, false, "answered 500 internal_error"},
		"forbidden": {403, true, false, "answered 403"},
		"no such":   {404, true, false, "answered 404"},
		"wrong":     {400, true, false, "answered 400"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			base := service(t, func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.WriteHeader(test.status)
				if test.status == 500 {
					fmt.Fprint(w, `{"error":"internal_error","message":"m"}`)
				}
			})
			err := tryProducts(t, base)
			if err == nil || (Refusal(err) != nil) != test.blocked || RefusedForRate(err) != test.passes ||
				!strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			if requests != 1 {
				t.Errorf("%d requests", requests)
			}
		})
	}
}

func TestATrialOfAnotherSiteIsNotTakenForTheService(t *testing.T) {
	hello := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello") }
	site := httptest.NewServer(http.HandlerFunc(hello))
	defer site.Close()
	if err := tryProducts(t, site.URL); err == nil || !strings.Contains(err.Error(), "api_key") {
		t.Errorf("%v", err)
	}
}

// The key endpoint's refusal is not the data endpoint's: a page that could not be asked for is no page past
// the end.
func TestAKeyThatCannotBeFetchedIsNoRefusalOfThePage(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	c, err := New(Config{BaseURL: site.URL, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	e := c.Endpoint("/store-products", uncounted, unwaited)
	_, err = e.Page(t.Context(), "updated_to=2026-11-20&page=3", 0)
	var blocked *poller.BlockedError
	if !errors.As(err, &blocked) || Refusal(err) != nil {
		t.Errorf("%v, refusal %v", err, Refusal(err))
	}
}

// What does not pass by itself ends after a bounded number of requests, and says what was expected.
func TestAnswersThatAreNoneAreBoundedAndTold(t *testing.T) {
	for name, test := range map[string]struct {
		answer   http.HandlerFunc
		blocked  bool
		requests int
		says     string
	}{
		"redirects to itself": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"?again", http.StatusFound)
		}, true, 2 * (maxRedirects + 1), "its own address, again and again"},
		"a web page with status 200": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<!doctype html><p>welcome")
		}, false, 2, "the body is not a JSON object: it is HTML or XML. Perhaps store.base_url is not"},
		"nothing with status 204": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}, true, 1, "answered 204"},
		"what was asked for before, with status 304": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotModified)
		}, true, 1, "answered 304"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			c := ask(t, func(w http.ResponseWriter, r *http.Request) {
				requests++
				test.answer(w, r)
			})
			err := try(t, c)
			blocked := Refusal(err) != nil || errors.As(err, new(*poller.BlockedError))
			if err == nil || blocked != test.blocked || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			if requests != test.requests {
				t.Errorf("%d requests, want %d", requests, test.requests)
			}
		})
	}
}
