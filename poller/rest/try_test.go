package rest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	c, err := NewClient(ClientConfig{BaseURL: base, Attempts: 1, RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	trial, err := c.Try(t.Context(), set.Get("products"))
	return trial, c, err
}

func TestATrialAsksForOneRowAndJudgesIt(t *testing.T) {
	s := newService(t)
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	trial, c, err := tryProducts(t, s.server.URL+"/v1")
	if err != nil || trial.Row || s.requests != 1 || s.keys != 1 {
		t.Errorf("an empty service: %+v, %v, %d requests, %d keys", trial, err, s.requests, s.keys)
	}
	if skew, known := c.State().ClockSkew, c.State().HasClock; !known || skew < 59*time.Minute || skew > 61*time.Minute {
		t.Errorf("the service's clock is an hour ahead, found %s, %v", skew, known)
	}
	s.products = []product{{id: 1, created: at("2020-01-01T00:00:00Z"), updated: at("2020-01-01T00:00:00Z")}}
	if trial, _, err := tryProducts(t, s.server.URL+"/v1"); err != nil || !trial.Row || trial.Reject != nil || len(trial.Unknown) > 0 {
		t.Errorf("a good row: %+v, %v", trial, err)
	}
	s.products[0].cost = `"dear","color":"red"`
	if trial, _, err := tryProducts(t, s.server.URL+"/v1"); err != nil || trial.Reject == nil || trial.Reject.Field != "cost" || !slices.Equal(trial.Unknown, []string{"color"}) {
		t.Errorf("a bad row: %+v, %v", trial, err)
	}
}

// Whoever calls check wants the answer, not patience: what passes is told as such after one request.
func TestATrialThatFailsSaysSoAtOnce(t *testing.T) {
	s := newService(t)
	for name, test := range map[string]struct {
		status       int
		held, passes bool
		says         string
	}{
		"rate":      {429, false, true, "answered 429 (too many requests"},
		"overload":  {503, false, true, "answered 503"},
		"fault":     {500, false, false, "answered 500 internal_error"},
		"forbidden": {403, true, false, "answered 403"},
		"no such":   {404, true, false, "answered 404"},
		"wrong":     {400, true, false, "answered 400"},
	} {
		t.Run(name, func(t *testing.T) {
			s.requests = 0
			s.before = func(w http.ResponseWriter, _ url.Values) bool {
				if test.status == 500 {
					refuse(w, 500, "internal_error")
				} else {
					w.WriteHeader(test.status)
				}
				return true
			}
			_, _, err := tryProducts(t, s.server.URL+"/v1")
			var held *poller.HoldError
			var rate *RateError
			if err == nil || errors.As(err, &held) != test.held || errors.As(err, &rate) != test.passes || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			if s.requests != 1 {
				t.Errorf("%d requests", s.requests)
			}
		})
	}
}

func TestATrialOfAnotherSiteIsNotTakenForTheService(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("<html>hello")) }))
	defer site.Close()
	if _, _, err := tryProducts(t, site.URL); err == nil || !strings.Contains(err.Error(), "api_key") {
		t.Errorf("%v", err)
	}
}
