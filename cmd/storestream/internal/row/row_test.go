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
	hang := func(share float64) {
		t.Helper()
		err := fake.SetFaults(func(f *storefake.Faults) {
			f.Shares = map[storefake.Fault]float64{storefake.Hang: share}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	hang(1)
	before, ended := len(fake.Requests()), make(chan struct{})
	var r *Report
	var err error
	go func() {
		defer close(ended)
		r, err = Look(t.Context(), Config{Settings: s.Config("store.max_requests_per_second=1000"),
			Schemas: s.Schemas, Cluster: s.Cluster("reader"), Resource: "users", ID: id, Say: func(string) {}})
	}()
	stage.Eventually(t, "it asks the service", func() bool { return len(fake.Requests()) > before })
	s.Publish("users", []schemas.Record{user(t, s, fake, id, "")}, nil, nil)
	hang(0)
	<-ended
	if err != nil || r.Verdict != verify.Identical || r.InTopic.Offset == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestNotesSayWhyARowDiffers(t *testing.T) {
	at := func(text string) schemas.Instant { return stage.Instant(t, text) }
	now, asOf, settled := at("2026-11-20T12:00:00Z"), at("2026-11-20T11:59:30Z"), at("2026-11-20T11:57:30Z")
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	polled := health.Resource{AsOf: &asOf, Settled: &settled, Now: now, Owner: "a", LagSeconds: new(float64)}
	delayed := health.Resource{Name: "users", AsOf: &asOf, Now: now, Owner: "a", Good: &now,
		Trouble: &watermark.Trouble{Why: "a transaction is open", Since: settled, Publishes: true}}
	delayed.Judge()
	blocked := health.Resource{Name: "users", Enabled: true, AsOf: &asOf, Settled: &settled, Now: now,
		Owner: "a", Good: &now, Trouble: &watermark.Trouble{Why: "rows have lost city", Since: settled}}
	blocked.Judge()
	updated := func(text string) *schemas.Value { return &schemas.Value{UpdatedAt: at(text)} }
	old, young := updated("2026-11-20T11:50:00Z"), updated("2026-11-20T11:59:59Z")
	for name, test := range map[string]struct {
		topic, service *schemas.Value
		now            health.Resource
		deletes, says  string
	}{
		"younger than the last poll": {old, young, polled, "", "updated 1.0s ago, and the last complete poll " +
			"began 30s ago, so it may be under way"},
		"settled": {updated("2026-11-20T11:40:00Z"), old, polled, "", "no poll meets it again"},
		"settled, with a letter": {updated("2026-11-20T11:40:00Z"), old, polled, "letter",
			"`storestream dead-letters retry users 7` publishes it"},
		"an older state": {young, updated("2026-11-20T11:58:00Z"), polled, "", "shows an older state than " +
			"the topic"},
		"an older state, settled":    {young, old, polled, "", "Perhaps it changed without a later updated_at"},
		"deleted":                    {old, nil, polled, "", "stays until the next sweep"},
		"deleted, and only reported": {old, nil, polled, config.Report, "sweep.deletes is report"},
		"delayed": {old, young, delayed, "", "The resource: settling is delayed for 2m30s, and rows go on: a " +
			"transaction is open."},
		"blocked": {updated("2026-11-20T11:40:00Z"), old, blocked, "", "Its resource is blocked: ask " +
			"again when it is not.\nThe resource: blocked"},
		"another row's record": {young, old, polled, "id", "another program wrote it. `storestream sweep users`"},
	} {
		differs := []string{"city"}
		if test.deletes == "id" {
			differs, test.deletes = []string{"id", "city"}, ""
		}
		l := look{Config: Config{Settings: &config.Config{Sweep: config.Sweep{Deletes: test.deletes}}, ID: 7},
			resource: set.Get("users"), settings: config.Resource{Overlap: 2 * time.Minute}}
		r := &Report{Resource: "users", ID: 7, Verdict: verify.Different, Differs: differs,
			InTopic: InTopic{State: Present}, InService: InService{State: Present}}
		if test.deletes == "letter" {
			r.DeadLetter = &DeadLetter{}
		}
		if test.service == nil {
			r.InService.State = Absent
		}
		got := strings.Join(l.notes(r, test.now, test.topic, test.service), "\n")
		if !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, expected %q", name, got, test.says)
		}
	}
}
