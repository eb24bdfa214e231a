//go:build page

package pagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// day is the date so many days ago.
func day(n int) string { return ago(time.Duration(n) * 24 * time.Hour).Format(time.DateOnly) }

// detailed is trouble, with what is open of order_items, and days of users in every state.
func detailed() status.Snapshot {
	s := trouble()
	s.Resources[1].Swept.Left = "3 rows that the service no longer has: sweep.deletes is report"
	s.Resources[1].Settling = &health.Settling{OverlapSeconds: 120, ByFloor: true}
	users := &s.Resources[3]
	users.Owned, users.Polling, users.Abandoned, users.Passes = true, true, false, 7
	settled := ago(9 * 24 * time.Hour).Truncate(24 * time.Hour)
	users.Settled = health.Known(schemas.InstantOf(settled))
	users.Trouble = &watermark.Trouble{Publishes: true,
		Why: day(9) + " cannot be closed: " + stuck}
	users.Replay = &watermark.Replay{From: *instant(1000 * time.Hour), Settled: *instant(24 * time.Hour)}
	users.Settling = &health.Settling{OverlapSeconds: 120, Days: []health.Days{
		{From: day(9), To: day(9), State: "not_closed", Why: day(9) + " cannot be closed: " + stuck,
			Next: ago(-7 * time.Minute)},
		{From: day(8), To: day(5), State: "closed"},
		{From: day(4), To: day(1), State: "unread"},
		{From: day(0), State: "open"}}}
	return s
}

const stuck = "the service says has_more for ever"

// only waits until the card of one resource alone is seen, "" for all five.
func (b *browser) only(resource string) {
	b.t.Helper()
	want := `["orders", "order_items", "products", "users", "shipments"]`
	if resource != "" {
		want = `["` + resource + `"]`
	}
	b.until("these cards are seen: "+want, `JSON.stringify([...document.querySelectorAll("article")]
		.filter((e) => e.checkVisibility()).map((e) => e.querySelector("h3").textContent))
		=== JSON.stringify(`+want+`)`)
}

func TestOneResourceIsShownAlone(t *testing.T) {
	_, url := serve(t, detailed)
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	b.only("")
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab),
		chromedp.KeyEvent(kb.Enter)) // Freeze page, orders, order_items
	b.only("order_items")
	b.until("its heading has the focus", `document.activeElement.id === "resources"
		&& document.activeElement.textContent === "order_items"`)
	b.says("#settled", "can appear")
	b.says("#letters", "expected a decimal")
	if js[bool](b, `document.getElementById("members").checkVisibility()`) {
		t.Error("the group is shown beside one resource")
	}

	b.do(chromedp.Evaluate[chromedp.Void](`history.back()`))
	b.only("")
	if js[bool](b, `document.getElementById("settling").checkVisibility()`) {
		t.Error("what is open of one is shown beside all resources")
	}
	b.do(chromedp.Evaluate[chromedp.Void](`history.forward()`))
	b.only("order_items")
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // from the heading: All resources
	b.only("")
	b.look(url+"?again#users", 1280, 900, 1, false)
	b.only("users")
	b.look(url+"?again2#no such resource", 1280, 900, 1, false)
	b.only("")
}

func TestAPauseAndTheReplayInHandAreShown(t *testing.T) {
	_, url := serve(t, func() status.Snapshot {
		s := trouble()
		orders, items := &s.Resources[0], &s.Resources[1]
		orders.Trouble, orders.Pause = nil, &watermark.Pause{Since: *instant(time.Hour), By: "ann@desk",
			Why: "migration"}
		items.Parts = []watermark.Part{{Kind: watermark.Replays, Rows: 1200, Of: 5000,
			Failure: "it failed 2 times in a row"}, {Kind: watermark.Retries}}
		return s
	})
	b := open(t)
	b.look(url+"#orders", 1280, 900, 1, false)
	b.only("orders")
	for _, text := range []string{"paused by ann@desk since ", ": migration", "storestream resume orders"} {
		b.says("article", text)
	}
	b.look(url+"?again#order_items", 1280, 900, 1, false)
	b.only("order_items")
	for _, text := range []string{"1,200 of at most 5,000 rows", "it failed 2 times in a row, 1 more waiting"} {
		b.says("article", text)
	}
}

func TestTheDaysOfAResourceAreShownAsACalendarThatSaysWhatTheWordsSay(t *testing.T) {
	_, url := serve(t, detailed)
	b := open(t)
	b.look(url+"#users", 1280, 900, 1, false)
	b.only("users")
	for _, line := range []string{
		"All days before " + day(9) + " are settled: no unread row with an earlier updated_at can appear.",
		day(9) + ": cannot be closed: " + stuck + ". The next try is at ",
		day(8) + " to " + day(5) + ": read completely. Settled as soon as all earlier days are.",
		day(4) + " to " + day(1) + ": over, but not read completely yet.",
		"Since " + day(0) + ": open. Each poll reads the changes. A day is over when our clock and the service's",
		"A replay publishes again the rows since ",
	} {
		b.says("#settled li", line)
	}
	for state, days := range map[string]int{"not_closed": 1, "closed": 4, "unread": 4, "open": 1} {
		b.until(state, fmt.Sprintf(`document.querySelectorAll("#calendar .%s").length === %d
			&& document.querySelector("#settled .%[1]s") !== null`, state, days))
	}
	for what, expression := range map[string]string{
		"five weeks and some days": `(n => n > 35 && n <= 42)(
			document.querySelectorAll("#calendar .mark").length)`,
		"today is the last":   `document.querySelector("#calendar .today").classList.contains("open")`,
		"the day is its date": `document.querySelector("#calendar .not_closed").textContent === "` + date(9) + `"`,
		"a screen reader reads the words alone": `document.getElementById("calendar")
			.getAttribute("aria-hidden") === "true"`,
	} {
		if !js[bool](b, expression) {
			t.Errorf("not so: %s", what)
		}
	}

	b.look(url+"?pg#order_items", 1280, 900, 1, false)
	b.only("order_items")
	b.says("#settled li", "Open since then (3 h): settled does not move, for the reason above. Each poll "+
		"reads the changes since the pass before.")
	if js[bool](b, `document.getElementById("calendar").checkVisibility()`) {
		t.Error("days are shown of a resource that is settled to a time")
	}
	b.look(url+"?none#products", 1280, 900, 1, false) // of which nothing is known
	b.only("products")
	if js[bool](b, `document.getElementById("settling").checkVisibility()`) {
		t.Error("settled and open days are shown where nothing is known")
	}
}

// date is the day of the month so many days ago.
func date(n int) string { return fmt.Sprint(ago(time.Duration(n) * 24 * time.Hour).Day()) }

// A resource that is years behind, its days in more states than are shown.
func TestACalendarHasNotOneElementADay(t *testing.T) {
	s := quiet()
	users := &s.Resources[1]
	users.Settled = on(2009, 1, 1)
	users.Settling = &health.Settling{Days: []health.Days{
		{From: "2009-01-01", To: "2009-01-01", State: "not_closed", Why: "x"},
		{From: "2009-01-02", To: "2019-03-01", State: "closed"},
		{From: day(0), State: "open"}}}
	_, url := serve(t, func() status.Snapshot { return s })
	b := open(t)
	b.look(url+"#users", 360, 780, 2, false)
	b.says("#settled li", "2009-01-02 to 2019-03-01: read completely")
	b.says("#settled li", "2019-03-02 to "+day(1)+": not settled, and too many to list.")
	if n := js[int](b, `document.querySelectorAll("#settling *").length`); n > 120 {
		t.Errorf("%d elements", n)
	}
	b.noSideways()
}

func TestOneResourceIsReadInEveryWindowByDayAndByNight(t *testing.T) {
	_, url := serve(t, detailed)
	b := open(t)
	for n, v := range append(views, struct {
		name          string
		width, height int64
		scale         float64
		dark          bool
	}{"phone-360", 360, 780, 3, true}) {
		for _, resource := range []string{"order_items", "users"} {
			b.look(fmt.Sprintf("%s?%d%s#%[3]s", url, n, resource), v.width, v.height, v.scale, v.dark)
			b.only(resource)
			b.says("#settled", "can appear")
			b.noSideways()
			if cut := js[[]string](b, cutOff); len(cut) > 0 {
				t.Errorf("%s: cut off: %q", v.name, cut)
			}
			var contrast float64
			if _, err := fmt.Sscan(js[string](b, leastContrast), &contrast); err != nil || contrast < 4.5 {
				t.Errorf("%s: the least contrast is %s, expected 4.5 or more", v.name, js[string](b, leastContrast))
			}
			b.shoot(resource + "-" + v.name)
		}
	}
}
