//go:build page

package pagetest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// What a person on call sees of a real storestream: rows as they pass, then a database that is gone, and why.
func TestARealInstanceShowsItsRowsAndWhatIsWrongWhenTheDatabaseStops(t *testing.T) {
	s := start(t)
	await(t, s.url+"healthz")
	b := open(t)
	b.look(s.url, 1280, 900, 1, false)
	b.says("#headline", "All 5 resources polled here are up to date.")
	b.do(chromedp.Evaluate[chromedp.Void](`window.mark = "not reloaded"`))
	for _, resource := range []string{"orders", "order_items", "users", "shipments"} {
		b.says("#latest tbody", resource)
	}
	b.until("users come with their personal fields masked", `[...document.querySelectorAll("#latest tbody tr")].some((tr) => tr.innerText.includes("email ***"))`)
	newest := js[string](b, `document.querySelector("#latest tbody tr").innerText`)
	b.until("a newer row has taken the first place", `document.querySelector("#latest tbody tr").innerText !== `+quoted(newest))

	if err := s.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	b.says(card("orders")+" .state", "failing")
	b.says(card("orders")+" .reason", "is the database up")
	b.says("#headline", "are failing")
	b.says(card("users")+" .state", "following")
	if js[string](b, `window.mark`) != "not reloaded" {
		t.Error("the page was loaded again")
	}
	b.shoot("failing")
	for _, path := range []string{"", "status.json", "metrics", "readyz"} {
		if text := get(t, s.url+path); strings.Contains(text, studentPassword) || strings.Contains(text, "@example") {
			t.Errorf("/%s holds the password or an address", path)
		}
	}
	if text := b.text("body"); strings.Contains(text, studentPassword) || strings.Contains(text, "@example") {
		t.Error("the page shows the password or an address")
	}
}

func await(t *testing.T, url string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			return
		}
	}
	t.Fatal("storestream does not answer")
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
