package preflight

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// What the page, /status.json and the log say of a resource comes from the same member of the watermark.
func TestEveryBlockThatAnOwnerReportsFails(t *testing.T) {
	s := withService(t, nil)
	until := schemas.InstantOf(time.Now().Add(time.Hour))
	c := Config{Settings: s.Config(), Schemas: s.Schemas, Cluster: s.Cluster("checker")}
	for name, test := range map[string]struct {
		trouble watermark.Trouble
		level   Level
		says    string
	}{
		"nothing is published": {watermark.Trouble{}, Failure, "blocked for 5m1s, nothing is published"},
		"rows are left out":    {watermark.Trouble{Publishes: true, LeavesOut: true}, Failure, "other rows go on"},
		"polls fail":           {watermark.Trouble{Failing: true}, Failure, "failing for 5m1s"},
		"settled stands still": {watermark.Trouble{Publishes: true}, Warning, "settled stands still for 5m1s"},
		"a row waits for a look": {watermark.Trouble{Publishes: true, Until: &until}, Warning,
			"settled stands still"},
		"gone: blocked": {watermark.Trouble{}, Failure,
			"blocked for 1h5m, as instance publisher said 1h0m ago"},
		"gone: polls failed":  {watermark.Trouble{Failing: true}, Warning, "was failing for 1h5m"},
		"gone: settled stood": {watermark.Trouble{Publishes: true}, Warning, "as instance publisher said 1h0m ago"},
		"gone: rows left out": {watermark.Trouble{Publishes: true, LeavesOut: true}, Failure, "other rows go on"},
	} {
		now, trouble := time.Now(), test.trouble
		gone := strings.HasPrefix(name, "gone")
		if gone {
			now = now.Add(-time.Hour)
		}
		trouble.Why, trouble.Since = "the reason", schemas.InstantOf(now.Add(-5*time.Minute-time.Second))
		found := &findings{part: "resources"}
		if gone { // a commit notes when it was
			mark := watermark.New("products")
			mark.Trouble, mark.Written, mark.Instance = &trouble, schemas.InstantOf(now), "publisher"
			read := c
			read.marks = func() map[string]watermark.Watermark {
				return map[string]watermark.Watermark{"products": mark}
			}
			tryResources(t.Context(), read, found)
		} else {
			s.Publish("products", nil, nil, func(w *watermark.Watermark) { w.Trouble = &trouble })
			found.all = slices.Collect(Try(t.Context(), c, "resources"))
		}
		says(t, found.all, test.level, "resources", "products", test.says, "the reason")
	}
	s.Publish("products", nil, nil, func(w *watermark.Watermark) { w.Trouble = nil })
	says(t, passing(t, s), OK, "resources", "", "no owner of 1 resource says that it is blocked")
}

// No instance has to run for it: it is what the next one would hold for.
func TestAColumnThatIsGoneFailsAndOneThatNeverWasThereDoesNot(t *testing.T) {
	s := withDatabase(t, nil)
	all := s.Schemas.Get("orders").Columns()
	for _, change := range []string{"RENAME COLUMN status TO state", "DROP COLUMN state"} {
		s.exec(t, "ALTER TABLE orders "+change)
		s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.Fields = all })
		says(t, failing(t, s.Stage), Failure, "database", "orders",
			`table "public"."orders" has no column status any more`, "take the field out of the schema")
		s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
			w.Fields = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "status" })
		})
		says(t, passing(t, s.Stage), Note, "database", "orders", "has no column for status: published as null")
	}
}

func TestAFieldThatTheServicesRowsHaveLostFailsAndOneThatASingleRowLacksDoesNot(t *testing.T) {
	s := withService(t, func(c *storefake.Config) { c.Readings.Without = []string{"users.city"} })
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000")
	all := s.Schemas.Get("users").Columns()
	s.Publish("users", nil, nil, func(w *watermark.Watermark) { w.Fields = all })
	says(t, failing(t, s), Failure, "service", "users", "the service's rows have lost city")
	says(t, failing(t, s), OK, "service", "products", "gave a row") // the rest is tried all the same
	s.Publish("users", nil, nil, func(w *watermark.Watermark) { w.Fields = nil })
	passing(t, s)

	fake := s.Serve(nil)
	fake.OnRequest(func(r *http.Request) {
		_ = fake.SetReadings(func(read *storefake.Readings) {
			if read.Without = nil; r.URL.Query().Get("page_size") == "1" {
				read.Without = []string{"users.city"}
			}
		})
	})
	s.Publish("users", nil, nil, func(w *watermark.Watermark) { w.Fields = all })
	passing(t, s)
}
