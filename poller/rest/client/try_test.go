package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// tryProducts asks the service for one product, as check does.
func tryProducts(t *testing.T, base string) (Trial, *Client, error) {
	t.Helper()
	c, err := New(Config{BaseURL: base, Attempts: 1, RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	trial, err := c.Try(t.Context(), products(t))
	return trial, c, err
}

func products(t *testing.T) *schemas.Resource {
	t.Helper()
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return set.Get("products")
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

func product(cost string) string {
	return `{"id":1,"cost":` + cost + `,"category":"Jeans","name":"n","brand":"b","retail_price":49,` +
		`"department":"Men","sku":"s","created_at":"2020-01-01T00:00:00Z","updated_at":"2020-01-01T00:00:00Z"}`
}

func TestATrialAsksForOneRowAndLooksAtIt(t *testing.T) {
	data, requests := "", 0
	base := service(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		if until := r.FormValue("updated_to"); until <= time.Now().UTC().Format(time.DateOnly) {
			t.Errorf("it asked for what was updated until %s: a row of today in another zone is not in that", until)
		}
		fmt.Fprintf(w, `{"data":[%s],"meta":{"page":0,"page_size":1,"count":1,"has_more":false}}`, data)
	})
	trial, c, err := tryProducts(t, base)
	if err != nil || trial.Row || requests != 1 {
		t.Errorf("an empty service: %+v, %v, %d requests", trial, err, requests)
	}
	state := c.State()
	if !state.HasClock || state.ClockSkew < 59*time.Minute || state.ClockSkew > 61*time.Minute {
		t.Errorf("the service's clock is an hour ahead, found %s, %v", state.ClockSkew, state.HasClock)
	}
	data = product("1.5")
	trial, _, err = tryProducts(t, base)
	if err != nil || !trial.Row || trial.Reject != nil || len(trial.Unknown) > 0 {
		t.Errorf("a good row: %+v, %v", trial, err)
	}
	data = product(`"dear","color":"red"`)
	trial, _, err = tryProducts(t, base)
	if err != nil || trial.Reject == nil || trial.Reject.Field != "cost" ||
		!slices.Equal(trial.Unknown, []string{"color"}) {
		t.Errorf("a bad row: %+v, %v", trial, err)
	}
}

// Whoever calls check waits for the answer: what would pass by itself is reported after one request.
func TestATrialThatFailsSaysSoAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		status          int
		blocked, passes bool
		says            string
	}{
		"rate":      {429, false, true, "answered 429"},
		"overload":  {503, false, true, "answered 503"},
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
			_, _, err := tryProducts(t, base)
			var blocked *poller.BlockedError
			if err == nil || errors.As(err, &blocked) != test.blocked || RefusedForRate(err) != test.passes ||
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
	if _, _, err := tryProducts(t, site.URL); err == nil || !strings.Contains(err.Error(), "api_key") {
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
	_, err = c.Endpoint("/store-products", uncounted).Page(t.Context(), "updated_to=2026-11-20&page=3")
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
		}, true, 2, "not followed"},
		"a web page with status 200": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<!doctype html><p>welcome")
		}, false, 2, "(tried 2 times). store.base_url may not be the service"},
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
			_, err := c.Try(t.Context(), products(t))
			var blocked *poller.BlockedError
			if err == nil || errors.As(err, &blocked) != test.blocked || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			if requests != test.requests {
				t.Errorf("%d requests, want %d", requests, test.requests)
			}
		})
	}
}
