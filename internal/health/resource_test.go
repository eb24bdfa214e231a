package health

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

var now = schemas.InstantOf(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC))

// at is a resource of which another instance completed a pass so long ago, and has just said so.
func at(ago time.Duration) Resource {
	mark := watermark.New("orders")
	mark.AsOf, mark.Written, mark.Settled = now.Add(-ago), now, now.Add(-ago-time.Minute)
	r := New(mark, now)
	r.Owner, r.Source, r.IntervalSeconds, r.Enabled = "a", "rest", 30, true
	return r
}

func (r Resource) with(change func(*Resource)) Resource {
	change(&r)
	return r
}

// polled is one that the instance that answers polls.
func polled(change func(*Resource)) Resource {
	r := at(2 * time.Second)
	r.Owned, r.Polling, r.Passes = true, true, 7
	return r.with(change)
}

func trouble(t watermark.Trouble) func(*Resource) {
	t.Why, t.Since = "so it is", now.Add(-time.Minute)
	return func(r *Resource) { r.Trouble = &t }
}

// letters is a resource with so many dead letters, of two kinds, and rows that were published.
func letters(dead int, published int64) func(*Resource) {
	return func(r *Resource) {
		r.DeadLetters, r.Rows = []watermark.DeadLetters{{Rows: dead - 1}, {Rows: 1}}, published
	}
}

func nothing(*Resource) {}

func TestAResourceIsJudgedByTheWorstThatIsKnownOfIt(t *testing.T) {
	never := New(watermark.New("orders"), now).with(func(r *Resource) { r.Enabled = true })
	delayed := trouble(watermark.Trouble{Publishes: true})
	for name, test := range map[string]struct {
		r        Resource
		state    State
		upToDate bool
		text     string
	}{
		// By the watermark.
		"fresh": {at(3 * time.Second), Following, true, ""},
		"paused, and blocked before": {at(time.Hour).with(trouble(watermark.Trouble{})).with(func(r *Resource) {
			r.Pause = &watermark.Pause{Since: now.Add(-time.Hour), By: "bob@shop", Why: "its clock was set forward"}
		}), Paused, false, "paused by bob@shop since 2026-11-21T02:00:00Z: its clock was set forward"},
		"after a pause": {at(3 * time.Second).with(func(r *Resource) {
			r.Pause = &watermark.Pause{Until: &now, By: "bob@shop"}
		}), Following, true, ""},
		"within three intervals": {at(90 * time.Second), Following, true, ""},
		"old":                    {at(time.Hour), Behind, false, "the last complete pass began 1h0m ago"},
		"left": {at(10 * time.Minute).with(func(r *Resource) { r.Owner, r.Abandoned = "", true }), Unowned, false,
			"no instance polls it, since 10m0s"},
		"handed over": {at(12 * time.Second).with(func(r *Resource) { r.Owner, r.Between = "", true }), Following,
			true, ""},
		"the group has not answered": {at(0).with(func(r *Resource) { r.Owner = "" }), Unknown, false,
			"the group has not said yet which instance has it"},
		"the owner does not write": {at(time.Hour).with(func(r *Resource) { r.Silent = 5 * time.Minute }), Stalled,
			false, "a has it, according to the consumer group, and has not written its watermark for 5m0s: " +
				"perhaps it is dead, hangs or fails"},
		"and failed before": {at(time.Hour).with(trouble(watermark.Trouble{Failing: true})).with(
			func(r *Resource) { r.Silent = 5 * time.Minute }), Stalled, false, "a has it, according to the consumer " +
			"group, and has not written its watermark for 5m0s: perhaps it is dead, hangs or fails. Its " +
			"owner said last: so it is"},
		"a clock is wrong": {at(-time.Hour), Behind, false, "the last complete pass began 1h0m from now: this " +
			"machine's clock is behind, or the owner's ahead, and the lag is not known"},
		"met by a cheap pass": {New(func() watermark.Watermark {
			mark := at(time.Hour).Mark
			mark.FreshAsOf = now.Add(-time.Second)
			return mark
		}(), now).with(func(r *Resource) { r.Owner, r.Enabled = "a", true }), Following, true, ""},
		"blocked": {at(time.Second).with(trouble(watermark.Trouble{})), Blocked, false,
			"blocked for 1m0s, nothing is published: so it is"},
		"blocked for some rows": {at(time.Second).with(trouble(watermark.Trouble{Publishes: true,
			LeavesOut: true})), Blocked, false, "blocked for 1m0s, other rows go on: so it is"},
		"failing": {at(time.Second).with(trouble(watermark.Trouble{Failing: true})), Failing, false,
			"failing for 1m0s: so it is"},
		"settling is delayed": {at(time.Second).with(delayed), SettlingDelayed, true,
			"settling is delayed for 1m0s, and rows go on: so it is"},
		"delayed, and behind": {at(time.Hour).with(delayed), Behind, false,
			"the last complete pass began 1h0m ago: so it is"},
		"another program wrote its watermark": {never.with(func(r *Resource) {
			r.Unreadable, r.Enabled = errors.New("garbage"), false
		}), Unreadable, false, "garbage"},
		"nothing ever ran": {never.with(func(r *Resource) { r.Abandoned = true }), Unowned, false,
			"nothing is published yet, and no instance polls it"},
		"the first load": {never.with(func(r *Resource) { r.Owner = "a" }), FirstLoad, false,
			"the first load is not finished"},
		"the first load, delayed": {never.with(func(r *Resource) { r.Owner = "a" }).with(delayed), FirstLoad, false,
			"the first load is not finished: so it is"},
		"all but a row is loaded": {New(func() watermark.Watermark {
			mark := watermark.New("orders")
			mark.FreshAsOf, mark.Written = now.Add(-time.Second), now
			return mark
		}(), now).with(func(r *Resource) {
			r.Owner, r.Owned, r.Polling, r.IntervalSeconds, r.Enabled = "a", true, true, 30, true
		}).with(delayed), SettlingDelayed, false, "settling is delayed for 1m0s, and rows go on: so it is"},
		"replayed": {at(time.Second).with(func(r *Resource) { r.Replay = &watermark.Replay{} }), Replaying, true,
			""},
		"not polled by this configuration": {at(time.Hour).with(func(r *Resource) { r.Enabled = false }), Behind,
			true, "the last complete pass began 1h0m ago"},
		"replayed, and not polled by this configuration": {at(time.Hour).with(func(r *Resource) {
			r.Replay, r.Enabled = &watermark.Replay{}, false
		}), Replaying, true, "the last complete pass began 1h0m ago"},

		// By the rows that cannot be published, of 10,000 that were.
		"few dead letters": {at(time.Second).with(letters(5, 10_000)), Following, true, ""},
		"many": {at(time.Second).with(letters(6, 1_000_000)), Incomplete, false,
			"the topic lacks 6 rows because of dead letters: more than 5, or more than one in a thousand"},
		"few, and one in a thousand": {at(time.Second).with(letters(2, 1998)), Following, true, ""},
		"few, and more than that": {at(time.Second).with(letters(2, 1997)), Incomplete, false,
			"the topic lacks 2 rows because of dead letters: more than 5, or more than one in a thousand"},
		"few, of few rows that change often": {at(time.Second).with(letters(2, 10_000)).with(func(r *Resource) {
			r.Swept = &watermark.Swept{SourceRows: 1990, Early: 7}
		}), Incomplete, false,
			"the topic lacks 2 rows because of dead letters: more than 5, or more than one in a thousand"},
		"few, of many rows": {at(time.Second).with(letters(2, 10_000)).with(func(r *Resource) {
			r.Swept = &watermark.Swept{SourceRows: 1990, Early: 8}
		}), Following, true, ""},
		"few, and the service showed none of many rows": {at(time.Second).with(letters(2, 10_000)).with(
			func(r *Resource) { r.Swept = &watermark.Swept{TopicRows: 9_000} }), Following, true, ""},
		"many, and settling is delayed": {at(time.Second).with(letters(6, 0)).with(delayed), Incomplete, false,
			"the topic lacks 6 rows because of dead letters: more than 5, or more than one in a thousand. " +
				"Settling is delayed: so it is"},
		"many, and failing": {at(time.Second).with(letters(6, 0)).with(trouble(watermark.Trouble{Failing: true})),
			Failing, false, "failing for 1m0s: so it is"},
		"many, and old": {at(time.Hour).with(letters(6, 0)), Behind, false,
			"the last complete pass began 1h0m ago"},
		"many, and replayed": {at(time.Second).with(letters(6, 0)).with(func(r *Resource) {
			r.Replay = &watermark.Replay{}
		}), Incomplete, false,
			"the topic lacks 6 rows because of dead letters: more than 5, or more than one in a thousand"},
		"many, and not polled by this configuration": {at(time.Second).with(letters(6, 0)).with(func(r *Resource) {
			r.Enabled = false
		}), Incomplete, true,
			"the topic lacks 6 rows because of dead letters: more than 5, or more than one in a thousand"},

		// By the instance that polls it.
		"polled":             {polled(nothing), Following, true, ""},
		"polled, and silent": {polled(func(r *Resource) { r.Silent = time.Hour }), Following, true, ""},
		"polled, and failing": {polled(trouble(watermark.Trouble{Failing: true})), Failing, false,
			"failing for 1m0s: so it is"},
		"taken over": {polled(func(r *Resource) { r.Polling = false }), Resuming, true, ""},
		"taken over, refused": {polled(trouble(watermark.Trouble{})).with(func(r *Resource) { r.Polling = false }),
			Blocked, false, "blocked for 1m0s, nothing is published: so it is"},
		"no pass since": {polled(func(r *Resource) { r.Passes = 0 }), Resuming, true, ""},
		"no pass since, and old": {polled(func(r *Resource) { r.Passes, r.Good = 0, Known(now.Add(-time.Hour)) }),
			Resuming, false, "the last complete pass began 1h0m ago"},
		"polls hang": {polled(func(r *Resource) { r.Good = Known(now.Add(-time.Hour)) }), Behind, false,
			"the last complete pass began 1h0m ago"},
		"lag of one that is polled seldom": {polled(func(r *Resource) {
			r.Good, r.IntervalSeconds = Known(now.Add(-800*time.Second)), 300
		}), Following, true, ""},
	} {
		if test.r.Judge(); test.r.State != test.state || test.r.UpToDate != test.upToDate ||
			test.r.Text() != test.text {
			t.Errorf("%s: %s, up to date %v: %q", name, test.r.State, test.r.UpToDate, test.r.Text())
		}
	}
}

// A resource that is incomplete may settle late too. Each has its remedy.
func TestAnIncompleteResourceHasTheRemedyOfItsDelayToo(t *testing.T) {
	r := at(time.Second).with(letters(6, 0)).with(trouble(watermark.Trouble{Publishes: true}))
	r.Trouble.Why = "a transaction (id 7) is open since 03:00"
	r.Judge()
	if !strings.HasPrefix(r.Remedy, "`storestream watermark list` names the rows") ||
		!strings.Contains(r.Remedy, `, "Dead letters"). For settling: ask the transaction's owner`) {
		t.Error(r.Remedy)
	}
}

func TestLagGrowsWhileNothingHappensAndIsNullWhileUnknown(t *testing.T) {
	r := at(time.Hour)
	if r.Judge(); r.LagSeconds == nil || *r.LagSeconds != 3600 {
		t.Errorf("lag %v, expected 3600", r.LagSeconds)
	}
	r = New(watermark.New("users"), now)
	r.Judge()
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"lag_seconds":null`) ||
		strings.Contains(string(text), "0001-01-01") {
		t.Errorf("%v: what is not known is null or left out: %s", err, text)
	}
}

// While no usable pass is known, the lag counts from the first try: a time in the future would say for as
// long that the resource is fresh.
func TestTheReportedLagCountsFromTheLastPassOrFromTheFirstTry(t *testing.T) {
	tried := now.Add(-7 * time.Minute)
	for name, test := range map[string]struct {
		r     Resource
		since schemas.Instant
	}{
		"a pass":           {at(time.Hour), now.Add(-time.Hour)},
		"no pass":          {New(watermark.New("orders"), now), tried},
		"one of the clock": {at(-time.Hour), tried},
	} {
		test.r.Judge()
		if test.r.ReportLag(tried); *test.r.LagSince != test.since {
			t.Errorf("%s: since %s, expected %s", name, test.r.LagSince, test.since)
		}
		if known := test.r.LagSeconds != nil; known != (test.since != tried) {
			t.Errorf("%s: the lag is known: %v", name, known)
		}
	}
}

// The clock went back. The next cheap pass replaces its time, and only the next complete one replaces as_of.
func TestTheLagCountsFromTheLastPassThoughAsOfIsOfAClockThatWasAhead(t *testing.T) {
	mark := watermark.New("orders")
	mark.AsOf, mark.FreshAsOf = now.Add(time.Hour), now.Add(-time.Second)
	r := New(mark, now)
	if r.Judge(); r.LagSeconds == nil || *r.LagSeconds != 1 {
		t.Errorf("lag %v, expected 1", r.LagSeconds)
	}
	if r.ReportLag(now.Add(-24 * time.Hour)); *r.LagSince != mark.FreshAsOf {
		t.Errorf("the lag is reported since %s", r.LagSince)
	}
}

func TestATakeoverThatIsRefusedBlocksUnlessTheRefusalMayPass(t *testing.T) {
	r := at(time.Hour)
	if r.Judge(); r.UpToDate {
		t.Error("it is behind")
	}
	passing := r
	if passing.Refuse("connection refused", true); passing.State != Failing ||
		!strings.HasSuffix(passing.Text(), "take it over: connection refused") {
		t.Errorf("%s: %q", passing.State, passing.Text())
	}
	r.Refuse("kafka store.orders: cleanup.policy is delete", false)
	const text = "the last complete pass began 1h0m ago; no instance with this configuration can take it " +
		"over: kafka store.orders: cleanup.policy is delete"
	if r.State != Blocked || r.UpToDate || r.Text() != text {
		t.Errorf("%s: %q", r.State, r.Text())
	}
	blocked := at(time.Second)
	blocked.Owner = "a"
	blocked.Trouble = &watermark.Trouble{Why: "poll.memory is full", Since: now.Add(-time.Minute)}
	blocked.Judge()
	remedy := blocked.Remedy
	blocked.Refuse("connection refused", true)
	if blocked.State != Blocked || blocked.Remedy != remedy || blocked.UpToDate ||
		!strings.HasPrefix(blocked.Text(), "blocked for 1m0s, nothing is published: poll.memory is full; ") {
		t.Errorf("%s, %q: %q", blocked.State, blocked.Remedy, blocked.Text())
	}
}

// Every reason has one state and one remedy, whichever of them it is.
func TestEveryReasonIsKnownByItsText(t *testing.T) {
	codes := map[string]bool{}
	for i := range Reasons {
		reason := &Reasons[i]
		if codes[reason.Code] || reason.Remedy == "" {
			t.Errorf("%s: a code for two reasons, or no remedy", reason.Code)
		}
		codes[reason.Code] = true
		r := at(time.Second)
		r.Trouble = &watermark.Trouble{Why: "orders: " + strings.ReplaceAll(reason.Texts()[0], "...", "7") + " 5",
			Since: now.Add(-time.Minute), Publishes: reason.State != Blocked}
		r.Judge()
		want := reason.State
		if want == Incomplete || want == Paused {
			want = SettlingDelayed
		}
		remedy := strings.ReplaceAll(reason.Remedy, "RESOURCE", "orders")
		if r.State != want || !strings.HasPrefix(r.Remedy, remedy) ||
			ReasonOf(r.State, r.Trouble.Why) != reason {
			t.Errorf("%s: %s -> %s", reason.Code, r.State, r.Remedy)
		}
	}
	if ReasonOf(Blocked, "a transaction (id 7) is open since 03:00") != nil {
		t.Error("a transaction that is open blocks nothing by itself")
	}
	refused := `the service refuses a request: /store-users answered 403 ("this role may not read users")`
	if got := ReasonOf(Blocked, refused); got == nil || got.Code != "service_unusable" {
		t.Errorf("%+v: the service's words are taken for those of PostgreSQL", got)
	}
	for text, code := range map[string]string{"it falls into too many parts (9)": "too_many_pages",
		"rows moved while it was looked for how the service reads to_ dates": "open_window_not_read"} {
		got := ReasonOf(SettlingDelayed, "2026-11-20 cannot be closed: "+text)
		if got == nil || got.Code != code {
			t.Errorf("%+v, expected the wrapped reason", got)
		}
	}
}

// In the middle of the first pass requests fail, or a day cannot be closed, and the pass goes on beside them.
// The reason is shown, and nothing is ready.
func TestAFirstLoadShowsWhatHoldsItUpAndIsNotReady(t *testing.T) {
	for _, trouble := range []func(*Resource){
		trouble(watermark.Trouble{Failing: true, Publishes: true}), trouble(watermark.Trouble{Publishes: true}),
	} {
		r := polled(trouble)
		r.Good, r.AsOf, r.Passes = nil, nil, 0
		if r.Judge(); r.State != FirstLoad || !strings.HasSuffix(r.Text(), "so it is") || r.Ready() || r.UpToDate {
			t.Errorf("%s: %s, ready %v", r.State, r.Text(), r.Ready())
		}
	}
}
