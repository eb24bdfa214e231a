package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/preflight"
	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/storefake"
)

func TestCheckPrintsALineForEachFindingOneBelowTheOther(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	c := s.do("check").expect(t, exitDone, "Nothing fails",
		"ok    service products         ", "ok    kafka store.order_items   is not there yet",
		"ok    registry                  http://", "ok    status                    127.0.0.1:0 is free")
	if strings.Contains(c.stdout.String(), "\x1b[") {
		t.Errorf("colors where no terminal is:\n%s", c.stdout)
	}
}

// The watermarks hold what a run has found out: the next run begins with it, and check shows it.
func TestWhatARunHasFoundOutAboutTheServiceIsKnownToTheNext(t *testing.T) {
	s := newScene(t)
	s.Serve(func(c *storefake.Config) {
		c.Readings.DayOffset = 5 * time.Hour
		c.Size = storefake.Size{Users: 400, Orders: 4000, Products: 50, Days: 10} // a row at every time of day
	})
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000")
	const warning = "the service cuts days in another zone than UTC"
	if c := s.do("run", "--once").expect(t, exitDone); strings.Count(c.stderr.String(), warning) != 1 {
		t.Errorf("the first run says:\n%s", c.stderr)
	}
	s.do("check").expect(t, exitDone, "note  service days", "other: "+warning, "came among the rows of",
		"ok    service count", "not known: ")
	if c := s.do("run", "--once").expect(t, exitDone); strings.Contains(c.stderr.String(), warning) {
		t.Errorf("the second run finds it out anew:\n%s", c.stderr)
	}
	s.do("check", "--set", "store.dialect.days=utc").expect(t, exitDone, "other: "+warning) // the read shows it
}

// What a client says of a dead broker depends on which one it asks first.
func TestCheckNamesADeadBrokerAndTriesTheRestThroughTheOthers(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	dead, alive := stage.Nowhere(t), s.Broker.Brokers()[0]
	for _, brokers := range []string{dead + "," + alive, alive + "," + dead} {
		c := s.do("check", "--set", "kafka.brokers="+brokers).expect(t, exitDone, "Nothing fails",
			"warn  kafka", dead+" of kafka.brokers does not answer: ",
			"connection refused -> start it, or take it out",
			"broker "+alive+" answers\n")
		if strings.Contains(c.stdout.String(), dead+" answers") {
			t.Errorf("the dead one is said to be there:\n%s", c.stdout)
		}
	}
}

// One wrong path is one mistake.
func TestCheckSaysOnceThatAnAddressIsNoRegistry(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	c := s.do("check", "--set", "registry.url="+s.Registry.URL+"/wrong").expect(t, exitFailed, "1 of ",
		"it does not answer as a schema registry: expected JSON of Confluent's API; perhaps registry.url")
	if strings.Contains(c.stdout.String(), "ok    registry") {
		t.Errorf("it is said to answer:\n%s", c.stdout)
	}
}

func TestCheckPrintsJSONAndExitsWithOneWhereSomethingFails(t *testing.T) {
	s := newScene(t)
	s.Serve(func(c *storefake.Config) { c.Readings.NoDate = true })
	s.Settings = append(s.Settings, "registry.url=http://"+stage.Nowhere(t))
	c := s.do("check", "-o", "json").expect(t, exitFailed, "1 of ", " checks fail", "`run` waits for them")
	var found []preflight.Finding
	if err := json.Unmarshal([]byte(c.stdout.String()), &found); err != nil {
		t.Fatalf("%v:\n%s", err, c.stdout)
	}
	levels := map[preflight.Level]int{}
	for _, f := range found {
		levels[f.Level]++
	}
	if levels[preflight.Failure] != 1 || levels[preflight.Note] == 0 || levels[preflight.OK] == 0 {
		t.Errorf("%v:\n%s", levels, c.stdout)
	}
	s.do("check").expect(t, exitFailed, "FAIL  registry", "cannot serve this now: `run` tries it again")
}

// A person asks `check` what is wrong when the page says that a resource is blocked.
func TestCheckFailsByWhatARunningInstanceIsBlockedFor(t *testing.T) {
	s := newScene(t)
	fake := s.Serve(nil)
	s.Settings = append(s.Settings, "resources.orders.interval=100ms", "store.max_requests_per_second=1000")
	for _, other := range []string{"order_items", "products", "users", "shipments"} {
		s.Settings = append(s.Settings, "resources."+other+".enabled=false")
	}
	s.start("run")
	list := func(word string) func() bool {
		return func() bool { return strings.Contains(s.do("watermark", "list").stdout.String(), word) }
	}
	stage.Eventually(t, "everything is published", list("Everything is up to date"))
	s.do("check").expect(t, exitDone, "resources orders          following")
	for id := range fake.Rows(storefake.Orders) {
		fake.Garble(storefake.Orders, id, storefake.BadTimestamp)
		if err := fake.Touch(t.Context(), storefake.Orders, id); err != nil {
			t.Fatal(err)
		}
	}
	stage.Eventually(t, "orders are blocked", list("orders: blocked for "))
	s.do("check").expect(t, exitFailed, "FAIL  resources orders",
		"none of the 30 rows of a page can be published")
}
