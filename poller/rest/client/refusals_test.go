package client

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

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
			c.maxRefusals = maxRefusals
			e := c.Endpoint("/store-products", uncounted)
			for range 20 {
				if _, err := e.Page(t.Context(), "updated_from=2026-11-20"); err != nil {
					t.Fatal(err)
				}
			}
			if refused == 0 || c.State().RequestsPerSecond >= 1000 {
				t.Errorf("%d refused, %v requests a second", refused, c.State().RequestsPerSecond)
			}
		})
	}
}

// A key without the right to one resource: the others are not slowed down each time that it is tried.
func TestARefusalThatStaysIsWhatItSaysAndSlowsNobodyDown(t *testing.T) {
	requests, open := 0, false
	c := ask(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/store-orders" {
			if requests++; !open {
				w.WriteHeader(http.StatusForbidden)
				return
			}
		}
		fmt.Fprint(w, emptyPage)
	})
	c.maxRefusals = maxRefusals
	orders := c.Endpoint("/store-orders", uncounted)
	refusedAfter := func(want int) {
		t.Helper()
		requests = 0
		_, err := orders.Page(t.Context(), "updated_from=2026-11-20")
		if status := Refusal(err); status == nil || status.Status != 403 || requests != want {
			t.Errorf("%v after %d requests, want a refusal after %d", err, requests, want)
		}
	}
	refusedAfter(fewUnclear)
	slowed := c.limit.state()
	if since := slowed.RefusedSince; !since.IsZero() {
		t.Errorf("the service is said to refuse for the rate since %s", since)
	}
	for range 3 {
		refusedAfter(1)
	}
	if now := c.limit.state().RequestsPerSecond; now < slowed.RequestsPerSecond {
		t.Errorf("slowed down from %v to %v requests a second", slowed.RequestsPerSecond, now)
	}
	open = true
	if _, err := orders.Page(t.Context(), "updated_from=2026-11-20"); err != nil {
		t.Fatal(err)
	}
	if n := c.limit.patience("/store-orders"); n != maxUnclear {
		t.Errorf("answered a moment ago, it is tried %d times", n)
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
		e := c.Endpoint("/store-products", uncounted)
		_, _ = e.Page(t.Context(), "updated_from=2026-11-20")
		_, err := e.Page(t.Context(), "updated_from=2026-11-20&page=1")
		var said *StatusError
		if !errors.As(err, &said) || said.Status != status || requests != 2 {
			t.Errorf("%d: %v after %d requests", status, err, requests)
		}
	}
}
