package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
			forRate := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
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

// A key without the right to one resource: the others are not slowed down.
func TestARefusalThatStaysIsWhatItSaysAndSlowsNobodyDown(t *testing.T) {
	requests := 0
	c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusForbidden)
	})
	_, err := c.Endpoint("/store-orders", uncounted, unwaited).Page(t.Context(), "updated_from=2026-11-20", 0)
	if refused := Refusal(err); refused == nil || refused.Status != 403 || requests != c.cfg.Attempts {
		t.Errorf("%v after %d requests, want a refusal after %d", err, requests, c.cfg.Attempts)
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
