package preflight

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// check renders the verdict of `watermark list`, and has a level for every state.
func TestCheckSaysOfEachResourceWhatWatermarkListSays(t *testing.T) {
	until := schemas.InstantOf(time.Now().Add(time.Hour))
	for name, test := range map[string]struct {
		trouble *watermark.Trouble
		level   Level
		says    string
	}{
		"nothing is published": {&watermark.Trouble{}, Failure,
			"blocked for 1h5m, nothing is published: poll.memory is full"},
		"rows are left out": {&watermark.Trouble{Publishes: true, LeavesOut: true}, Failure,
			"blocked for 1h5m, other rows go on"},
		"polls fail":           {&watermark.Trouble{Failing: true}, Warning, "failing for 1h5m"},
		"settled stands still": {&watermark.Trouble{Publishes: true}, Warning, "settling is delayed for 1h5m"},
		"a row waits for a look": {&watermark.Trouble{Publishes: true, Until: &until}, Warning,
			"settling is delayed"},
		"it is well": {nil, OK, "following"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage.New(t)
			s.Publish("products", nil, nil, func(w *watermark.Watermark) {
				now := schemas.InstantOf(time.Now())
				w.AsOf, w.Written = now, now
				if w.Trouble = test.trouble; w.Trouble != nil {
					w.Trouble.Why, w.Trouble.Since = "poll.memory is full", now.Add(-65*time.Minute)
				}
			})
			s.Join("a", schemas.Names()...)
			c := Config{Settings: s.Config(), Schemas: s.Schemas, Cluster: s.Cluster("check")}
			found := &findings{part: "resources"}
			stage.Eventually(t, "the group has answered", func() bool {
				found.all = nil
				tryResources(t.Context(), c, found)
				return !slices.ContainsFunc(found.all, func(f Finding) bool { return f.Level == Note })
			})
			all, err := overview.Glance(t.Context(), c.Settings, c.Cluster)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				if r.Name == "products" {
					says(t, found.all, test.level, "resources", "products", test.says, r.Why, r.Remedy)
				}
			}
		})
	}
	s := withService(t, nil)
	s.Publish("products", nil, nil, nil)
	says(t, passing(t, s), Note, "resources", "products", "no instance polls it")
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
	all := s.Schemas.Get("users").Columns()
	s.Publish("users", nil, nil, func(w *watermark.Watermark) { w.Fields = all })
	says(t, failing(t, s), Failure, "service", "users", "the service's rows have lost city")
	says(t, failing(t, s), OK, "service", "products", "can be read") // the rest is tried all the same
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
