//go:build page

package pagetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// serve answers as storestream does, for what snapshot says.
func serve(t *testing.T, snapshot func() status.Snapshot) (board *status.Board, url string) {
	t.Helper()
	board = status.New("shop-1-4711", "v1.2.0")
	board.ShowValues()
	board.Provide(snapshot)
	return board, "http://" + listen(t, "127.0.0.1:0", board).Addr() + "/"
}

func listen(t *testing.T, addr string, board *status.Board) *status.Server {
	t.Helper()
	server, err := status.Listen(status.Config{Addr: addr}, board, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func ago(d time.Duration) time.Time { return time.Now().UTC().Add(-d) }

const refused = "read orders from 127.0.0.1:6432: dial tcp 127.0.0.1:6432: connect: connection refused. " +
	"Perhaps it is down: is the database up, and is postgres.dsn's host and port right?"

// trouble is an instance with a resource in every kind of it.
func trouble() status.Snapshot {
	skew := 12.0
	return status.Snapshot{
		Group: "storestream", DeadLettersTopic: "shop.dead_letters",
		Notices: []string{"The state of the other instances is uncertain: kafka does not answer"},
		Service: &status.Service{Allowed: 2.5, Ceiling: 10, RefusedSince: ago(4 * time.Minute),
			RefusedUntil: time.Date(2126, 11, 20, 14, 3, 9, 0, time.UTC), ClockSkewSeconds: &skew,
			Dialect: []status.Property{{Name: "days", Question: "In which time zone do date filters cut days?",
				Value: "other", Evidence: "a row of 2026-11-14T02:00:00Z came among the rows of 2026-11-15",
				Since: ago(time.Hour)},
				{Name: "count", Question: "Is meta.count exact or an estimate?", Value: "estimate", Set: true},
				{Name: "updated_to", Question: "Which rows of day D does updated_to=D include?"}}},
		Members: []health.Member{{Instance: "shop-1-4711", Enabled: []string{"order_items", "orders", "shipments",
			"users"}, Owned: []string{"order_items", "orders", "shipments"}},
			{Instance: "shop-2-99", Enabled: []string{"order_items", "orders", "products", "shipments"},
				Owned: []string{"products"}}},
		Resources: []health.Resource{
			{Name: "orders", Source: "postgres", Owned: true, Polling: true, Owner: "shop-1-4711", Passes: 812,
				Doing: "waiting to try again", DoingSince: ago(3 * time.Second),
				Settled: instant(7 * time.Minute), AsOf: instant(5 * time.Minute), Good: instant(5 * time.Minute),
				Rows: 1234567, IntervalSeconds: 1,
				Trouble: &watermark.Trouble{Failing: true, Since: *instant(5 * time.Minute), Why: refused}},
			{Name: "order_items", Source: "postgres", Owned: true, Polling: true, Owner: "shop-1-4711", Passes: 811,
				Doing: "waiting for the next poll", DoingSince: ago(time.Second),
				Settled: instant(3 * time.Hour), AsOf: instant(time.Second), Good: instant(time.Second),
				Rows: 181000, IntervalSeconds: 1,
				Trouble: &watermark.Trouble{Publishes: true, Since: *instant(3 * time.Hour), Why: "a transaction (id " +
					"4711) is open since about 2026-11-20T09:00:00Z and may still bring rows from before: settled " +
					"waits for its end"},
				DeadLetters: []watermark.DeadLetters{{Field: "sale_price",
					Error: "expected a decimal of at most 38 digits, 18 of them after the point", Rows: 1200,
					IDs: []string{"77812", "77813", "77815", "77820", "78001"}, Latest: ago(time.Minute)},
					{Error: "expected a JSON object", Rows: 4, IDs: []string{"00000000000000ff"},
						Latest: ago(26 * time.Hour)}},
				UnknownFields: 17, Policies: watermark.Policies{"clear", "0f"},
				Sweep:     &watermark.Sweep{At: *instant(time.Hour)},
				Sweeping:  &health.Sweeping{Error: "polls fail: too many connections"},
				LastSweep: instant(4 * time.Hour),
				Swept: &watermark.Swept{Began: *instant(5 * time.Hour), SourceRows: 181000, TopicRows: 180998,
					Missing: 2, Stale: 1, Published: 3}},
			{Name: "products", Source: "rest", Owner: "shop-2-99", Settled: instant(20 * time.Hour),
				AsOf: instant(40 * time.Second), Good: instant(40 * time.Second), IntervalSeconds: 30,
				Written: instant(8 * time.Second), Rows: 29120},
			{Name: "users", Source: "rest", Abandoned: true, Settled: instant(30 * time.Hour),
				AsOf: instant(6 * time.Hour), Good: instant(6 * time.Hour), Written: instant(6 * time.Hour),
				Rows: 100000},
			{Name: "shipments", Source: "rest", Owned: true, Polling: true, Owner: "shop-1-4711",
				Doing: "closing 2024-03-01 to 2024-03-09", DoingSince: ago(42 * time.Second),
				Settled: on(2024, 3, 1), Rows: 54000, IntervalSeconds: 30,
				Settling: &health.Settling{LoadsFrom: on(2019, 1, 6), LoadsAt: on(2024, 3, 1)},
				Requests: map[string]int64{"200": 1180, "429": 21, "0": 2}},
		},
	}
}

// instant is so long ago, on is the beginning of a day.
func instant(d time.Duration) *schemas.Instant { return health.Known(schemas.InstantOf(ago(d))) }

func on(year int, month time.Month, day int) *schemas.Instant {
	return health.Known(schemas.InstantOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC)))
}

// quiet is an instance with nothing wrong.
func quiet() status.Snapshot {
	s := status.Snapshot{Group: "storestream", Service: &status.Service{Allowed: 10, Ceiling: 10}}
	for _, name := range []string{"orders", "users"} {
		s.Resources = append(s.Resources, health.Resource{Name: name, Source: "rest", Owned: true, Polling: true,
			Doing: "waiting for the next poll", DoingSince: ago(time.Second), Passes: 4,
			Settled: instant(time.Hour), AsOf: instant(time.Second), Good: instant(time.Second), Rows: 12,
			Requests: map[string]int64{}})
	}
	return s
}

// card is a resource's card.
func card(resource string) string { return `article[aria-labelledby="resource-` + resource + `"]` }

func TestEveryTroubleIsSaidInWords(t *testing.T) {
	_, url := serve(t, trouble)
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	b.until("there are five cards", `document.querySelectorAll("article").length === 5`)
	for selector, texts := range map[string][]string{
		"#headline": {"users is without an owner; orders is failing; order_items is incomplete; " +
			"shipments is being loaded for the first time; " +
			"products is up to date; products is owned by another instance; " +
			"1,204 rows cannot be published."},
		"#notices": {"The service has been refusing requests for their rate since",
			". The longest pause ends at 14:03:09. storestream now sends 2.5 of 10 requests a second",
			"The state of the other instances is uncertain",
			"The service's clock is 12 s ahead of this machine's."},
		card("orders"): {"failing", "Since", "(5 min", refused, "1,234,567"},
		card("order_items"): {"incomplete", "lacks 1,204 rows because of dead letters",
			"Settling is delayed: a transaction (id 4711) is open since",
			"What to do: storestream watermark list names",
			"For settling: ask the transaction's owner to end it. To find it", "2 missing and 1 stale",
			"3 published", "polls fail: too many", "17", "storestream check --names", "1,204",
			"older rows may remain"},
		card("products"): {"following", "shop-2-99", "wrote at"},
		card("users"):    {"no owner", "no instance polls it", "What to do: start an instance", "6 h"},
		card("shipments"): {"first load", "closing 2024-03-01 to 2024-03-09, for 42 s",
			"% of the time from 2019-01-06 to now", "at 2024-03-01", "1,203 in all; 429: 21, no answer: 2"},
		"#letters": {"The topic shop.dead_letters holds them", "sale_price",
			"expected a decimal of at most 38 digits", "1,200", "77812, 77813", "00000000000000ff", "the row"},
		"#members": {"shop-1-4711 (this one)", "order_items, orders, shipments"},
		"#dialect": {"In which time zone", "other", "a row of 2026-11-14T02:00:00Z came", "estimate",
			"the configuration", "not known"},
	} {
		said := b.text(selector)
		for _, text := range texts {
			if !strings.Contains(said, text) {
				t.Errorf("%s does not say %q but:\n%s", selector, text, said)
			}
		}
	}
	if title := js[string](b, "document.title"); title != "users, orders and order_items - storestream" {
		t.Errorf("the title is %q", title)
	}
	b.shoot("desk")
}

// standby is an instance that owns nothing, beside one that holds what it polls and one that is dead.
func standby() status.Snapshot {
	return status.Snapshot{
		Group: "storestream",
		Members: []health.Member{{Instance: "shop-1-4711"}, {Instance: "shop-2-99", Owned: []string{"users",
			"shipments"}}, {Instance: "shop-3-17", Owned: []string{"orders", "products"}}},
		Resources: []health.Resource{
			{Name: "orders", Source: "postgres", Owner: "shop-3-17", Silent: 7 * time.Minute,
				Settled: instant(9 * time.Minute), AsOf: instant(7 * time.Minute), Good: instant(7 * time.Minute),
				Written: instant(7 * time.Minute), Rows: 1234567},
			{Name: "products", Source: "rest", Owner: "shop-3-17", Silent: 7 * time.Minute},
			{Name: "users", Source: "rest", Owner: "shop-2-99", Settled: instant(30 * time.Hour),
				AsOf: instant(26 * time.Minute), Written: instant(10 * time.Second), Rows: 100000,
				Trouble: &watermark.Trouble{Since: *instant(25 * time.Minute), Why: "users: poll.memory is full: 1000 " +
					"rows that a poll may meet again fill 1MiB, and settled stands at 2026-11-20T00:00:00.000000Z"}},
			{Name: "shipments", Source: "rest", Owner: "shop-2-99", Settled: instant(30 * time.Hour),
				AsOf: instant(5 * time.Second), Good: instant(5 * time.Second), Written: instant(5 * time.Second),
				Rows: 54000, Trouble: &watermark.Trouble{Publishes: true, Since: *instant(3 * time.Hour),
					Why: "2026-11-20 cannot be closed: its rows change all the time"}},
		},
	}
}

func TestWhatOtherInstancesHoldOrLeaveAloneIsSaidInWords(t *testing.T) {
	_, url := serve(t, standby)
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	b.until("there are four cards", `document.querySelectorAll("article").length === 4`)
	for selector, texts := range map[string][]string{
		"#headline": {"orders and products are stalled; users is blocked; shipments is published, but settling " +
			"is delayed; orders, products, users and shipments are owned by other instances."},
		card("orders"): {"stalled", "shop-3-17 has it, according to the consumer group, and has not written its " +
			"watermark for 7m0s", "Lag", "1,234,567"},
		card("products"): {"stalled", "has written no watermark"},
		card("users"): {"blocked", "shop-2-99", "(25 min", "poll.memory is full",
			"What to do: see the reason why settling is delayed"},
		card("shipments"): {"settling delayed", "shop-2-99", "(3 h", "2026-11-20 cannot be closed"},
	} {
		said := b.text(selector)
		for _, text := range texts {
			if !strings.Contains(said, text) {
				t.Errorf("%s does not say %q but:\n%s", selector, text, said)
			}
		}
	}
	if title := js[string](b, "document.title"); title != "orders, products and users - storestream" {
		t.Errorf("the title is %q", title)
	}
	b.shoot("standby")
}

func TestRowsAppearAsTheyPassWithoutAReloadAndWithoutPersonalData(t *testing.T) {
	board, url := serve(t, quiet)
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	b.says("#latest", "This instance has published no rows since it started.")
	b.do(chromedp.Evaluate[chromedp.Void](`window.mark = "not reloaded"`))
	users := set.Get("users")
	for i, first := range []string{"Anastasia", "<b>Bartholomew</b>"} {
		row, reject := schemas.NewRowParser(users).Parse(fmt.Appendf(nil, `{"id":%d,"first_name":%q,
			"last_name":"Ng","email":"ng@example.com","age":40,"street_address":"1 High Street",
			"city":"Bialystok","traffic_source":"<i>Łódź</i>",
			"created_at":"2020-01-01T00:00:00Z","updated_at":"2026-11-20T09:30:00Z"}`,
			7001+i, first))
		if reject != nil {
			t.Fatal(reject.Err)
		}
		b.publish(board, users, row)
		b.says("#latest", fmt.Sprint(7001+i))
	}
	said := b.text("#latest")
	for _, secret := range []string{"Anastasia", "Bartholomew", "Ng", "ng@example.com", "High Street",
		"Bialystok"} {
		if strings.Contains(said, secret) {
			t.Errorf("%q is on the page", secret)
		}
	}
	for _, text := range []string{"first_name ***", "email ***", "age ***", "traffic_source <i>Łódź</i>",
		"updated_at 2026-11-20 09:30:00"} {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not in:\n%s", text, said)
		}
	}
	if js[string](b, `window.mark`) != "not reloaded" {
		t.Error("the page was loaded again")
	}
}

// publish hands a row to the board until it becomes part of the sample.
func (b *browser) publish(board *status.Board, r *schemas.Resource, row schemas.Record) {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		board.Published(r, []schemas.Record{row}, nil)
		for _, u := range board.Document().Latest {
			if u.ID == row.ID {
				return
			}
		}
	}
	b.t.Fatal("the row is not shown")
}

func TestAResourceThatFailsIsSaidAtOnceAndSoIsItsRecovery(t *testing.T) {
	var failing atomic.Bool
	_, url := serve(t, func() status.Snapshot {
		s := quiet()
		if failing.Load() {
			s.Resources[0].Trouble = &watermark.Trouble{Failing: true, Since: *instant(3 * time.Second),
				Why: `<img src=x onerror=alert(1)> 500 internal_error`}
		}
		return s
	})
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	b.says("#headline", "orders and users are up to date.")
	failing.Store(true)
	b.says("#headline", "orders is failing; users is up to date.")
	b.says(card("orders")+" .reason", `: <img src=x onerror=alert(1)> 500 internal_error`)
	b.says(card("users")+" .state", "following")
	failing.Store(false)
	b.says("#headline", "orders and users are up to date.")
	if b.text(card("orders")+" .reason") != "" {
		t.Error("the reason is still shown")
	}
}

func TestAPageThatHasLostItsServerSaysSoAndComesBack(t *testing.T) {
	board := status.New("shop-1-4711", "v1")
	board.Provide(quiet)
	server := listen(t, "127.0.0.1:0", board)
	b := open(t)
	b.look("http://"+server.Addr()+"/", 1280, 900, 1, false)
	b.says("#headline", "up to date")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	b.says("#headline", "No connection to storestream: this page is out of date.")
	listen(t, server.Addr(), board)
	b.says("#headline", "up to date")
}

func TestAFrozenPageStandsStillUntilItIsUnfrozen(t *testing.T) {
	var rows atomic.Int64
	_, url := serve(t, func() status.Snapshot { s := quiet(); s.Resources[0].Rows = rows.Add(1); return s })
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	value := `document.querySelector('` + card("orders") + `').innerText`
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("pause").click()`))
	b.says("#notices", "Page frozen")
	before := js[string](b, value)
	b.until("three more events have come", `new Promise((done) => { let n = 0;
		new EventSource("events").addEventListener("status", () => { if (++n === 3) done(true); }); })`)
	if after := js[string](b, value); after != before {
		t.Errorf("a frozen page changed from\n%s\nto\n%s", before, after)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("pause").click()`))
	b.until("it goes on", value+` !== `+quoted(before))
}

func TestTheLastHourIsDrawn(t *testing.T) {
	published := atomic.Int64{}
	_, url := serve(t,
		func() status.Snapshot { s := quiet(); s.Resources[0].Published = published.Add(30); return s })
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	b.says(card("orders")+" .caption", "Rows a second since ")
	b.until("something is drawn in the colour of the curve", `(() => {
		const canvas = document.querySelector('`+card("orders")+` canvas');
		if (!canvas) return false;
		const want = getComputedStyle(canvas.closest(".chart")).color.match(/\d+/g).map(Number);
		const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 200 && want
		.every((c, k) => Math.abs(c - pixels[i + k]) < 40)) return true;
		return false;
	})()`)
	b.shoot("chart")
}
