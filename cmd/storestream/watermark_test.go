package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestWatermarkListShowsWhatIsPublishedAndWhatIsAskedFor(t *testing.T) {
	s := newScene(t)
	s.do("watermark", "list").expect(t, exitLate, "RESOURCE", "orders", "shipments",
		"none") // before anything has ever run

	settled := stage.Instant(t, "2026-11-20T09:28:00.000123Z")
	asOf := schemas.InstantOf(time.Now().Add(-time.Hour))
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped"), s.Order(2, "Complete")}, nil,
		func(w *watermark.Watermark) {
			w.Settled, w.AsOf = settled, asOf
		})
	s.answer("yes\n", "watermark", "reset", "orders", "--to", "2026-11-19").expect(t, exitDone,
		"Publish these again? [y/N]",
		"orders: asked for a replay from 2026-11-19T00:00:00.000000Z")

	s.do("watermark", "list").expect(t, exitLate, "2026-11-20T09:28:00Z", "1h0m",
		"waits: reset to 2026-11-19T00:00:00Z by "+whoAmI())

	c := s.do("watermark", "list", "-o", "json").expect(t, exitLate)
	var resources []health.Resource
	if err := json.Unmarshal([]byte(c.stdout.String()), &resources); err != nil {
		t.Fatalf("%v:\n%s", err, c.stdout)
	}
	if len(resources) != 5 || resources[0].Name != "orders" || resources[1].Name != "order_items" {
		t.Fatalf("%d resources, expected all five in order:\n%s", len(resources), c.stdout)
	}
	orders, items := resources[0], resources[1]
	if orders.Rows != 2 || *orders.Settled != settled || *orders.LagSeconds < 3599 || len(orders.Pending) != 1 ||
		orders.Pending[0].Kind != watermark.Reset {
		t.Errorf("orders: %+v", orders)
	}
	if items.Settled != nil || items.LagSeconds != nil || items.Rows != 0 {
		t.Errorf("order_items have never run, and are shown as %+v", items)
	}
	if !strings.Contains(c.stdout.String(), `"settled": "2026-11-20T09:28:00.000123Z"`) {
		t.Errorf("settled must keep its microseconds:\n%s", c.stdout)
	}
}

func TestWatermarkListNamesATopicWithRowsOfAnotherPolicy(t *testing.T) {
	s := newScene(t)
	const says = "orders: holds rows as other policies for fields let them through: storestream sweep orders"
	mixed := watermark.Policies{"clear", "0f"}
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.Policies = mixed })
	s.do("watermark", "list").expect(t, exitLate, says)
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Policies, w.Swept = mixed, &watermark.Swept{Early: 3}
	})
	s.do("watermark", "list").expect(t, exitLate, "orders: holds rows as other policies for fields let them "+
		"through: no sweep compares 3 rows from before resources.orders.start: take start out, restart all "+
		"instances, then storestream sweep orders")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.Policies = mixed[1:] })
	if c := s.do("watermark", "list"); strings.Contains(c.stdout.String(), says) {
		t.Error(c.stdout)
	}
}

// Whoever looks at three in the morning wants one answer first.
func TestWatermarkListSaysWhetherEverythingIsUpToDate(t *testing.T) {
	s := newScene(t)
	s.do("watermark", "list").expect(t, exitLate, "NOT up to date.\n"+
		"orders: nothing is published yet, and no instance polls it -> start an instance (`storestream run`)")
	asOf := func(ago time.Duration) func(*watermark.Watermark) {
		return func(w *watermark.Watermark) {
			w.AsOf = schemas.InstantOf(time.Now().Add(-ago))
			w.Settled = w.AsOf.Add(-time.Minute)
		}
	}
	s.Publish("orders", nil, nil, asOf(3*time.Second))
	s.Publish("users", nil, nil, asOf(time.Hour))
	s.Publish("products", nil, nil, func(*watermark.Watermark) {})
	s.Join("shop-1", schemas.Names()...)
	stage.Eventually(t, "shop-1 has users", func() bool {
		return strings.Contains(s.do("watermark", "list").stdout.String(), "shop-1")
	})
	s.do("watermark", "list").expect(t, exitLate, "NOT up to date.\n",
		"\norder_items: the first load is not finished\n", "\nproducts: the first load is not finished\n",
		"\nusers: the last complete pass began 1h0m ago -> `storestream check`")
	for _, name := range schemas.Names() {
		s.Publish(name, nil, nil, asOf(0))
	}
	block := func(publishes, leavesOut bool) func(*watermark.Watermark) {
		return func(w *watermark.Watermark) {
			w.Trouble = &watermark.Trouble{Why: "so it is", Since: schemas.InstantOf(time.Now().Add(-time.Hour)),
				Publishes: publishes, LeavesOut: leavesOut}
		}
	}
	s.Publish("orders", nil, nil, block(false, false))
	s.do("watermark", "list").expect(t, exitLate, "NOT up to date.\n",
		"\norders: blocked for 1h0m, nothing is published: so it is\n")
	s.Publish("orders", nil, nil, block(true, true))
	c := s.do("watermark", "list").expect(t, exitLate, "NOT up to date.\n",
		"\norders: blocked for 1h0m, other rows go on: so it is\n")
	if strings.Contains(c.stdout.String(), "settling is delayed") {
		t.Errorf("a block is told of as if polls succeeded:\n%s", c.stdout)
	}
	s.Publish("orders", nil, nil, block(true, false))
	s.Publish("users", nil, nil, asOf(30*time.Second))
	s.do("watermark", "list").expect(t, exitDone, "Everything is up to date: the largest lag is 3", "s (users).",
		"orders: settling is delayed for 1h0m, and rows go on: so it is\n")
	letter := watermark.DeadLetter{Key: "products/7", Source: "rest", Row: []byte("{}"), Field: "cost",
		Err: "bad"}
	write := func(rows int64) {
		letters := watermark.Transaction{DeadLetters: []watermark.DeadLetter{letter}}
		s.Commit("products", letters, func(w *watermark.Watermark) {
			asOf(0)(w)
			w.Rows = rows
		})
	}
	write(2000)
	s.do("watermark", "list").expect(t, exitDone, "Everything is up to date",
		"products: 1 row cannot be published")
	letter.Key = "products/8"
	write(1997)
	says := "products: the topic lacks 2 rows because of dead letters: more than 5, or more than one in a " +
		"thousand"
	s.do("watermark", "list").expect(t, exitLate, "NOT up to date.\n", says+" -> `storestream watermark list`",
		"storestream: not up to date: products\n", "products: 2 rows cannot be published, its cost: bad")
	s.do("watermark", "list", "-o", "json").expect(t, exitLate, `"state": "incomplete"`,
		`"up_to_date": false`)
	says = strings.TrimPrefix(says, "products: ")
	s.do("check").expect(t, exitFailed, "warn  resources products        "+says)
}

// An owner that is refused a takeover may not write why.
func TestWatermarkListSaysWhatNobodyCanTakeAResourceOverFor(t *testing.T) {
	s := newScene(t)
	s.Join("shop-1", schemas.Names()...)
	ago := func(d time.Duration) func(*watermark.Watermark) {
		return func(w *watermark.Watermark) { w.AsOf = schemas.InstantOf(time.Now().Add(-d)) }
	}
	stage.Eventually(t, "shop-1 has users", func() bool {
		return strings.Contains(s.do("watermark", "list").stdout.String(), "shop-1")
	})
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, ago(time.Hour))
	s.Publish("users", nil, nil, ago(2*time.Hour))
	const behind, refused = "the last complete pass began 1h0m ago; ",
		"no instance with this configuration can take it over: "
	c := s.do("watermark", "list").expect(t, exitLate,
		"orders: the last complete pass began 1h0m ago -> `storestream check`")
	if strings.Contains(c.stdout.String(), refused) {
		t.Errorf("nothing is refused:\n%s", c.stdout)
	}

	// The registry has lost its schemas: it is another one, where nothing is registered.
	lost := "\norders: " + behind + refused +
		"topic store.orders: the schema id of its keys is "
	const remedy = ": point registry.url at the registry that the topic was written with"
	anew := "registry.url=" + servers.RegistryForTest(t).URL
	c = s.do("watermark", "list", "--set", anew).expect(t, exitLate, lost, remedy,
		"\nusers: the last complete pass began 2h0m ago -> `storestream check`")
	if strings.Count(c.stdout.String(), refused) != 1 {
		t.Errorf("it is said of others than orders:\n%s", c.stdout)
	}

	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	policy := "delete"
	spoil := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &policy}}
	for topic, says := range map[string][]string{
		"store.orders": {"\norders: " + behind + refused},
		"store.watermarks": {"\norders: " + behind + refused,
			"\nusers: the last complete pass began 2h0m ago; " + refused},
	} {
		if _, err := kadm.NewClient(cl).AlterTopicConfigs(t.Context(), spoil, topic); err != nil {
			t.Fatal(err)
		}
		found := "topic " + topic + ": cleanup.policy is delete, expected compact: kafka-configs.sh "
		for _, said := range says {
			s.do("watermark", "list").expect(t, exitLate, said, found)
		}
	}
	s.do("watermark", "list", "-o", "json").expect(t, exitLate,
		`"why": "`+behind+refused+`topic store.watermarks: cleanup.policy is delete`)
}

func TestWatermarkListNamesARecordThatIsNoWatermarkAndShowsTheOthers(t *testing.T) {
	s := newScene(t)
	asOf := func(w *watermark.Watermark) { w.AsOf = schemas.InstantOf(time.Now()) }
	s.Publish("users", nil, nil, asOf)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, asOf)
	put := s.Garbage("users")
	why := fmt.Sprintf("topic store.watermarks, partition %d, offset %d: watermark of users: ", put.Partition,
		put.Offset)
	const remedy = `docs/security.md says, "A forged watermark"`
	c := s.do("watermark", "list").expect(t, exitLate, "\nusers: "+why, remedy)
	if !regexp.MustCompile(`(?m)^orders .* 1 +never `).MatchString(c.stdout.String()) {
		t.Errorf("orders are not shown:\n%s", c.stdout)
	}
	c = s.do("watermark", "list", "-o", "json").expect(t, exitLate)
	var resources []health.Resource
	if err := json.Unmarshal([]byte(c.stdout.String()), &resources); err != nil {
		t.Fatalf("%v:\n%s", err, c.stdout)
	}
	for _, r := range resources {
		if named := strings.HasPrefix(r.Why, why); named != (r.Name == "users") {
			t.Errorf("%s: %q, expected of users alone %q", r.Name, r.Why, why)
		}
		if r.Name == "orders" && r.Rows != 1 {
			t.Errorf("orders: %+v", r)
		}
	}
	if len(resources) != 5 {
		t.Errorf("%d resources, expected all five", len(resources))
	}
	s.do("watermark", "list", "--set", "resources.users.enabled=false").expect(t, exitLate, "\nusers: "+why)
}

func TestWatermarkListShowsTheLastSweepAndWhatCannotBePublished(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.LastSweep = schemas.InstantOf(time.Now().Add(-2 * time.Hour))
		w.Swept = &watermark.Swept{SourceRows: 40, Missing: 1, Stale: 2, Left: "so it is"}
	})
	s.Publish("users", nil, nil, func(w *watermark.Watermark) {
		w.LastSweep = schemas.InstantOf(time.Now().Add(-3 * time.Hour))
		w.Swept = &watermark.Swept{Left: "nothing was compared"}
		w.Sweep = &watermark.Sweep{Request: -1, Failure: "it failed 7 times in a row"}
	})
	s.Commit("orders", watermark.Transaction{DeadLetters: []watermark.DeadLetter{{Key: "orders/7",
		Source: "rest",
		Row:    []byte(`{"id":7,"total_amount":"geheim"}`),
		Field:  "total_amount", Err: "expected a decimal"}}}, nil)
	c := s.do("watermark", "list").expect(t, exitLate, "2h0m ago: 40 rows, 3 differed",
		"orders: 1 row cannot be published, its total_amount: expected a decimal (orders/7 in store.dead_letters)")
	c.expect(t, exitLate, "orders: the last sweep left some of it: so it is",
		"3h0m ago: 0 rows, see below", "  a sweep is tried again\n",
		"users: the sweep has not ended: it failed 7 times in a row\n")
	j := s.do("watermark", "list", "-o", "json").expect(t, exitLate, `"rows": 1`, `"ids"`)
	if strings.Contains(c.stdout.String()+j.stdout.String(), "geheim") {
		t.Errorf("a value of a row is shown:\n%s%s", c.stdout, j.stdout)
	}
}

func TestAResetShowsHowMuchItRepeats(t *testing.T) {
	s := newScene(t)
	rows := []schemas.Record{s.Order(1, "Shipped"), s.Order(2, "Complete"), s.Order(3, "Complete")}
	s.Publish("orders", rows, nil, nil)
	c := s.do("watermark", "reset", "orders", "users", "--to", "2025-01-01", "--yes").expect(t, exitDone,
		"ROWS, AT MOST", "users     0\n")
	if !regexp.MustCompile(`(?m)^orders +[1-9]`).MatchString(c.stdout.String()) {
		t.Errorf("orders has three rows:\n%s", c.stdout)
	}
}

func TestAResetWaitsUntilItsReplayIsOverAndSaysHowManyRowsItPublished(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { // one of before is no answer
		w.End(watermark.Result{Request: 0, RequestUID: "before", Kind: watermark.Reset, Rows: 5})
	})
	out, _, ended := s.run("watermark", "reset", "orders", "--to", "2026-11-20", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "asked for a replay")
	})
	requests := s.Cluster("owner").Requests()
	if err := requests.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := requests.After("orders", -1, "")[0]
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		w.Replay = &watermark.Replay{Request: asked.ID, RequestUID: asked.UID, From: *asked.To,
			Ends: []int64{0, 0}}
	})
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Replay = nil
		w.End(watermark.Result{Request: asked.ID, RequestUID: asked.UID, Kind: watermark.Reset, From: *asked.To,
			Rows: 2987, Began: schemas.InstantOf(time.Now().Add(-2 * time.Second)),
			Ended: schemas.InstantOf(time.Now())})
	})
	c := ended().expect(t, exitDone,
		"orders: published again: 2,987 rows since 2026-11-20T00:00:00.000000Z, in ")
	if strings.Contains(c.stdout.String(), "5 rows") {
		t.Errorf("it took the replay of before for its own:\n%s", c.stdout)
	}
}

func TestARequestThatTheOwnerAcceptedIsNoLongerPending(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Settled = stage.Instant(t,
			"2026-11-20T09:28:00Z")
	})
	s.do("watermark", "reset", "orders", "--to", "2026-11-19T12:00:00+02:00", "--yes").expect(t, exitDone,
		"asked for a replay from 2026-11-19T10:00:00.000000Z")
	requests := s.Cluster("owner").Requests()
	if err := requests.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := requests.After("orders", -1, "")[0]
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		w.Replay = &watermark.Replay{Request: asked.ID, RequestUID: asked.UID,
			From: stage.Instant(t, "2026-11-19T10:00:00Z"), Ends: []int64{0, 0}}
	})
	c := s.do("watermark", "list").expect(t, exitLate, "replaying from 2026-11-19T10:00:00Z")
	if strings.Contains(c.stdout.String(), "waits") {
		t.Errorf("the request is shown as waiting:\n%s", c.stdout)
	}
}

func TestAResetThatIsNotConfirmedAsksNothingOfTheInstance(t *testing.T) {
	s := newScene(t)
	for _, answer := range []string{"", "\n", "no\n", "yesterday\n"} {
		s.answer(answer, "watermark", "reset", "--all", "--to", "2026-11-19").expect(t, exitFailed, "not confirmed")
	}
	if c := s.do("watermark", "list"); strings.Contains(c.stdout.String(), "waits") {
		t.Errorf("a request was written:\n%s", c.stdout)
	}
}

func TestResetOfAllResourcesWritesOneRequestForEach(t *testing.T) {
	s := newScene(t)
	c := s.do("watermark", "reset", "--all", "--to", "2026-11-19", "--yes").expect(t, exitDone)
	for _, name := range schemas.Names() {
		enabled := slices.Contains(storefake.Names(), name)
		if strings.Contains(c.stdout.String(), name+": asked for a replay") != enabled {
			t.Errorf("%s is enabled: %v, and a request is to be written only then:\n%s", name, enabled, c.stdout)
		}
	}
}

func TestAResourceBetweenTwoOwnersIsNotCalledOwnedByNobody(t *testing.T) {
	now := stage.Instant(t, "2026-11-21T03:00:00Z")
	written := now.Add(-12 * time.Second)
	r := health.Resource{Name: "orders", Instance: "a", Written: &written, Now: now, Between: true}
	if got := ownerText(r); got != "between two (last a)" {
		t.Error(got)
	}
	r.Between = false
	if got := ownerText(r); got != "none (last a, 12s ago)" {
		t.Error(got)
	}
}

// Each reason is printed with its text and its remedy.
func TestWatermarkListPrintsEveryReasonWithItsRemedy(t *testing.T) {
	now := schemas.InstantOf(time.Now())
	for _, reason := range health.Reasons {
		mark := watermark.New("orders")
		mark.AsOf, mark.Written = now, now
		mark.Trouble = &watermark.Trouble{Why: "7 " + strings.ReplaceAll(reason.Texts()[0], "...", "5"), Since: now,
			Publishes: reason.State != health.Blocked}
		r := health.New(mark, now)
		r.Owner, r.Enabled = "a", true
		r.Judge()
		var out strings.Builder
		env := &environment{stdout: &out}
		if err := printOverview(env, "store.dead_letters", []health.Resource{r}); err != nil {
			t.Fatal(err)
		}
		remedy := strings.ReplaceAll(reason.Remedy, "RESOURCE", "orders")
		if said := out.String(); !strings.Contains(said, mark.Trouble.Why+" -> "+remedy) ||
			strings.Contains(said, "NOT up to date") != (reason.State == health.Blocked) {
			t.Errorf("%s:\n%s", reason.Code, said)
		}
	}
}
