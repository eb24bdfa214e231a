//go:build page

package pagetest

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// What a person on call sees of a real storestream: rows as they pass, then a database that is gone, and why.
func TestARealInstanceShowsItsRowsAndWhatIsWrongWhenTheDatabaseStops(t *testing.T) {
	s := start(t, storefake.Faults{})
	await(t, s.url+"healthz")
	b := open(t)
	b.look(s.url, 1280, 900, 1, false)
	b.says("#headline", "All 5 resources are up to date.")
	b.do(chromedp.Evaluate[chromedp.Void](`window.mark = "not reloaded"`))
	for _, resource := range []string{"orders", "order_items", "users", "shipments"} {
		b.says("#latest tbody", resource)
	}
	b.until("users come with their personal fields masked", `[...document.querySelectorAll("#latest tbody tr")]
		.some((tr) => tr.innerText.includes("email ***"))`)
	newest := js[string](b, `document.querySelector("#latest tbody tr").innerText`)
	b.until("a newer row has taken the first place",
		`document.querySelector("#latest tbody tr").innerText !== `+quoted(newest))

	checkMetrics(t, get(t, s.url+"metrics"))
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
	lagGrows(t, s.url, "orders", "users")
	for _, path := range []string{"", "status.json", "metrics", "readyz"} {
		if text := get(t, s.url+path); strings.Contains(text, studentPassword) ||
			strings.Contains(text, "@example") {
			t.Errorf("/%s holds the password or an address", path)
		}
	}
	if text := b.text("body"); strings.Contains(text, studentPassword) || strings.Contains(text, "@example") {
		t.Error("the page shows the password or an address")
	}
}

// A broker that is gone takes the group with it: nobody owns anything, and the instance must say why, and how
// far everything is behind.
func TestARealInstanceSaysThatItsBrokerIsGoneAndItsLagGoesOn(t *testing.T) {
	s := start(t, storefake.Faults{})
	await(t, s.url+"healthz")
	b := open(t)
	b.look(s.url, 1280, 900, 1, false)
	b.says("#headline", "All 5 resources are up to date.")
	if err := s.broker.Stop(); err != nil {
		t.Fatal(err)
	}
	b.says("#headline", "Waiting: kafka:")
	lagGrows(t, s.url, "orders", "")
	lagGrows(t, s.url, "users", "")
	if text := get(t, s.url+"readyz"); !strings.Contains(text, "waiting: kafka") {
		t.Errorf("/readyz says %s", text)
	}
	b.shoot("kafka")
}

// Rows that break the contract, and a service that refuses requests: both are said with their reason, and
// neither with a value.
func TestARealInstanceSaysWhyRowsCannotBePublishedAndThatItWaitsForTheRateLimit(t *testing.T) {
	var limited atomic.Bool
	s := start(t, storefake.Faults{GarbledRows: 0.01, Choose: func(*http.Request) storefake.Fault {
		if limited.Load() {
			return storefake.TooMany
		}
		return storefake.NoFault
	}})
	await(t, s.url+"healthz")
	b := open(t)
	b.look(s.url, 1280, 900, 1, false)
	b.says("#headline", " incomplete; ")
	b.says("#headline", " rows cannot be published.")
	b.until("dead letters are shown with field, reason and rows",
		`[...document.querySelectorAll("#letters tbody tr")].some((tr) => tr.innerText.includes("users"))`)
	b.says("#letters", "The topic store.dead_letters holds them")
	b.until("the cards count them", `[...document.querySelectorAll("article .value.bad")].length > 0`)
	limited.Store(true)
	b.says("#notices", "The service has been refusing requests for their rate since")
	b.says(card("users")+" .note", "429:")
	b.shoot("limited")
	limited.Store(false)
	b.until("it goes on by itself", `document.getElementById("notices").hidden`)
}

// lagGrows waits until the lag of a resource is some seconds, and more than that of another one. An instance
// that has not had an answer of the group yet reports no lag until a minute after its start.
func lagGrows(t *testing.T, url, resource, other string) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); <-tick.C {
		text := get(t, url+"metrics")
		lag, known := lookup(t, text, `storestream_freshness_lag_seconds{resource="`+resource+`"}`)
		less := 0.0
		if other != "" {
			less = value(t, text, `storestream_freshness_lag_seconds{resource="`+other+`"}`)
		}
		if known && lag > 6 && lag > less {
			return
		}
	}
	t.Fatalf("the lag of %s does not grow", resource)
}

// checkMetrics: every promised name is there for every resource, with the labels that are promised.
func checkMetrics(t *testing.T, text string) {
	t.Helper()
	for _, resource := range []string{"orders", "order_items", "products", "users", "shipments"} {
		for _, name := range []string{
			"settled_timestamp_seconds{", "freshness_lag_seconds{", "rows_read_total{", "rows_published_total{",
			`rows_suppressed_total{reason="repeat",`, "late_rows_total{", `dead_letters_total{reason="row",`,
			`polls_total{outcome="ok",`, "poll_duration_seconds_count{", `http_requests_total{code="200",`,
			"rate_limited_seconds_total{", "page_passes_total{", "sql_timeouts_total{",
			`sweep_differences_total{kind="missing",`, "owned{",
		} {
			value(t, text, "storestream_"+name+`resource="`+resource+`"}`)
		}
		if lag := value(t, text, `storestream_freshness_lag_seconds{resource="`+resource+`"}`); lag > 20 {
			t.Errorf("%s is up to date, and its lag is %v s", resource, lag)
		}
		if owned := value(t, text, `storestream_owned{resource="`+resource+`"}`); owned != 1 {
			t.Errorf("owned of %s is %v", resource, owned)
		}
	}
	value(t, text, `storestream_kafka_produce_records_total{topic="store.watermarks"}`)
	value(t, text, "go_goroutines")
	value(t, text, "process_resident_memory_bytes")
}

// value is that of one series, which must be there.
func value(t *testing.T, text, series string) float64 {
	t.Helper()
	v, known := lookup(t, text, series)
	if !known {
		t.Errorf("no %s", series)
	}
	return v
}

func lookup(t *testing.T, text, series string) (value float64, known bool) {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v, true
		}
	}
	return 0, false
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
