package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A reader that counts nothing.
func uncounted(string) {}
func unwaited(float64) {}

const emptyPage = `{"data":[],"meta":{"page":0,"page_size":1000,"count":0,"has_more":false}}`

// The document does not say with which status the service refuses for the rate.
func TestARateRefusedWithAnyStatusIsWaitedFor(t *testing.T) {
	for _, status := range []int{403, 406, 418, 420, 429, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			left, filled, refused := 5.0, time.Now(), 0
			c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				left, filled = min(5, left+time.Since(filled).Seconds()*20), time.Now()
				if left < 1 {
					refused++
					w.WriteHeader(status)
					return
				}
				left--
				fmt.Fprint(w, emptyPage)
			})
			c.cfg.Attempts = maxTries
			e := c.Endpoint("/store-products", uncounted, unwaited)
			for range 20 {
				if _, err := e.Page(t.Context(), "updated_from=2026-11-20", 0); err != nil {
					t.Fatal(err)
				}
			}
			forRate := status == http.StatusTooManyRequests
			if refused == 0 || forRate != (c.State().RequestsPerSecond < 1000) {
				t.Errorf("%d refused, %v requests a second", refused, c.State().RequestsPerSecond)
			}
		})
	}
}

// A refusal that says when to come again is one for the rate, whatever its status: nothing is sent until
// then.
func TestARefusalThatSaysWhenToComeAgainStopsAll(t *testing.T) {
	for _, status := range []int{420, 403, 429} {
		stopped, stop := context.WithCancel(t.Context())
		defer stop()
		c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
		})
		e := c.Endpoint("/store-products", uncounted, func(float64) { stop() })
		_, err := e.Page(stopped, "updated_from=2026-11-20", 0)
		if !errors.Is(err, context.Canceled) || time.Until(c.State().RefusedUntil) < 4*time.Minute {
			t.Errorf("%d: %v, %+v", status, err, c.State())
		}
	}
}

// Only what says that it is about the rate slows requests down.
func TestOnlyAnAnswerAboutTheRateCutsIt(t *testing.T) {
	for _, test := range []struct {
		status       int
		header, body string
		want         bool
	}{
		{429, "", "", true},
		{503, "", "", false},
		{503, "Retry-After: 0", "", true},
		{500, "", `{"error":"internal_error"}`, false},
		{500, "Retry-After: 1", `{"error":"internal_error"}`, false},
		{500, "", `{"error":"rate_limited"}`, true},
		{502, "", "", false},
		{504, "", "", false},
		{403, "", `{"error":"forbidden"}`, false},
		{403, "", `{"error":{"status":403,"code":"RATE_LIMIT_EXCEEDED"}}`, true},
		{403, "X-RateLimit-Remaining: 0", "", true},
		{403, "X-RateLimit-Remaining: 7", "", false},
		{420, "RateLimit-Remaining: 0", "", true},
		{420, "Retry-After: Thu, 26 Nov 2026 10:00:00 GMT", "", true},
		{422, "", `{"error":"page_out_of_range"}`, false},
		{422, "", `{"detail":[{"type":"less_than_equal","msg":"should be less than or equal to 10"}]}`, false},
		{400, "Retry-After: 1", `{"error":"invalid_param"}`, false},
		{404, "X-RateLimit-Remaining: 0", "", false},
		{400, "", `{"code":"Throttled"}`, true},
		{200, "", `{"error":"too_many_requests"}`, true},
		{200, "", `{"error":"internal_error"}`, false},
	} {
		c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
			if name, value, ok := strings.Cut(test.header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		})
		c.cfg.Attempts = 1
		_, err := c.Endpoint("/store-orders", uncounted, unwaited).Page(t.Context(), "updated_from=2026-11-20", 0)
		if cut := c.State().RequestsPerSecond < 1000; cut != test.want || RefusedForRate(err) != test.want {
			t.Errorf("%d %q %q: the rate is cut: %v; %v", test.status, test.header, test.body, cut, err)
		}
		if why, _, until := c.Waits("/store-orders"); (why != "") != test.want || until.IsZero() == test.want {
			t.Errorf("%d %q: it waits for %q until %s", test.status, test.header, why, until)
		}
		if why, _, _ := c.Waits("/store-users"); why != "" {
			t.Errorf("%d %q: another resource waits for %q", test.status, test.header, why)
		}
	}
}

// A key without the right to one resource: the others are not slowed down.
func TestARefusalThatStaysIsWhatItSaysAndSlowsNobodyDown(t *testing.T) {
	requests := 0
	c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusForbidden)
	})
	c.cfg.Attempts = maxTries
	_, err := c.Endpoint("/store-orders", uncounted, unwaited).Page(t.Context(), "updated_from=2026-11-20", 0)
	if refused := Refusal(err); refused == nil || refused.Status != 403 || requests != unclearTries {
		t.Errorf("%v after %d requests, want a refusal after %d", err, requests, unclearTries)
	}
	if now := c.State(); now.RequestsPerSecond != 1000 || !now.RefusedSince.IsZero() {
		t.Errorf("slowed down: %+v", now)
	}
}

// 400, 401 and 404 mean what they say, however lately the path was answered.
func TestARefusalOfARequestIsNotTakenForOneOfTheRate(t *testing.T) {
	for _, status := range []int{400, 404} {
		requests := 0
		c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
			if requests++; requests > 1 {
				w.WriteHeader(status)
				return
			}
			fmt.Fprint(w, emptyPage)
		})
		e := c.Endpoint("/store-products", uncounted, unwaited)
		_, _ = e.Page(t.Context(), "updated_from=2026-11-20", 0)
		_, err := e.Page(t.Context(), "updated_from=2026-11-20&page=1", 0)
		if said := Refusal(err); said == nil || said.Status != status || requests != 2 {
			t.Errorf("%d: %v after %d requests", status, err, requests)
		}
	}
}
