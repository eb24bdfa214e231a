package row

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// user is a row of users, as the service has it or in another city.
func user(t *testing.T, s *stage.Stage, fake *storefake.Fake, id int64, city string) schemas.Record {
	t.Helper()
	row := fake.Rows(storefake.Users)[id]
	text := fmt.Sprintf(`{"id":%d`, id)
	for _, f := range s.Schemas.Get("users").Fields[1:] {
		switch value := row[f.Name].(type) {
		case nil:
		case time.Time:
			text += fmt.Sprintf(`,%q:%q`, f.Name, value.Format(time.RFC3339))
		case string:
			if f.Name == "city" && city != "" {
				value = city
			}
			text += fmt.Sprintf(`,%q:%q`, f.Name, value)
		default:
			text += fmt.Sprintf(`,%q:%v`, f.Name, value)
		}
	}
	record, reject := schemas.NewRowParser(s.Schemas.Get("users")).Parse([]byte(text + "}"))
	if reject != nil {
		t.Fatalf("%s: %s", reject.Field, reject.Err)
	}
	return record
}

// To read a topic takes long. What is published meanwhile is no difference.
func TestARowThatIsPublishedWhileTheServiceIsReadIsEqual(t *testing.T) {
	s := stage.New(t)
	fake := s.Serve(nil)
	id := slices.Min(slices.Collect(maps.Keys(fake.Rows(storefake.Users))))
	s.Publish("users", []schemas.Record{user(t, s, fake, id, "Vorher")}, nil, nil)
	published := false
	c := Config{Settings: s.Config("store.max_requests_per_second=1000"), Schemas: s.Schemas,
		Cluster: s.Cluster("reader"), Resource: "users", ID: id,
		Reading: func(what string, _, _ int) {
			if !published && strings.Contains(what, "service") {
				published = true
				s.Publish("users", []schemas.Record{user(t, s, fake, id, "")}, nil, nil)
			}
		}}
	r, err := Look(t.Context(), c)
	if err != nil || r.Verdict != verify.Identical || r.InTopic.Records != 2 || !published {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestNotesSayWhyARowDiffers(t *testing.T) {
	at := func(text string) schemas.Instant { return stage.Instant(t, text) }
	now, asOf, settled := at("2026-11-20T12:00:00Z"), at("2026-11-20T11:59:30Z"), at("2026-11-20T11:57:30Z")
	differs := func(topic, service State) *Report {
		return &Report{Resource: "users", ID: 7, Verdict: verify.Different, InTopic: InTopic{State: topic},
			InService: InService{State: service}}
	}
	polled := health.Resource{AsOf: &asOf, Settled: &settled, Now: now, Owner: "a", LagSeconds: new(float64)}
	delayed := health.Resource{Name: "users", AsOf: &asOf, Now: now, Owner: "a", Good: &now,
		Trouble: &watermark.Trouble{Why: "a transaction is open", Since: settled, Publishes: true}}
	delayed.Judge()
	for name, test := range map[string]struct {
		facts facts
		says  string
	}{
		"younger than the last poll": {facts{report: differs(Present, Present), overview: polled,
			serviceUpdated: at("2026-11-20T11:59:59Z")}, "updated 1.0s ago, and the last complete poll began 30s ago"},
		"younger than overlap": {facts{report: differs(Present, Present), overview: polled,
			serviceUpdated: at("2026-11-20T11:57:31Z")}, "may be under way"},
		"polls should have met it": {facts{report: differs(Absent, Present),
			overview:       health.Resource{AsOf: &asOf, Now: now},
			serviceUpdated: at("2026-11-20T11:50:00Z")}, "polls should have met it"},
		"settled": {facts{report: differs(Present, Present), overview: polled,
			serviceUpdated: at("2026-11-20T11:50:00Z")}, "no poll meets it again"},
		"first load": {facts{report: differs(Absent, Present), overview: health.Resource{Now: now},
			serviceUpdated: settled}, "The first load is not finished"},
		"an older state": {facts{report: differs(Present, Present), overview: polled,
			topicUpdated: at("2026-11-20T11:59:00Z"), serviceUpdated: settled}, "shows an older state than the topic"},
		"deleted": {facts{report: differs(Present, Absent), overview: polled}, "stays until the next sweep"},
		"deleted, and only reported": {facts{report: differs(Present, Absent), overview: polled,
			deletes: config.Report}, "sweep.deletes is report"},
		"to be erased": {facts{report: differs(Present, Absent), overview: health.Resource{AsOf: &asOf, Now: now,
			Erase: []watermark.Erase{{ID: 7}}}}, "was asked to erase it"},
		"delayed": {facts{report: differs(Present, Present), overview: delayed, serviceUpdated: now},
			"Settling is delayed for 2m30s, and rows go on: a transaction is open."},
	} {
		test.facts.overlap = 2 * time.Minute
		if got := strings.Join(test.facts.notes(), "\n"); !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, expected %q", name, got, test.says)
		}
	}
}
