//go:build page

package pagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/storestream/storestream/internal/status"
)

// day is the date so many days ago.
func day(n int) string { return ago(time.Duration(n) * 24 * time.Hour).Format(time.DateOnly) }

// detailed is trouble, with polls and dead letters of order_items, and days of users in every state.
func detailed() status.Snapshot {
	s := trouble()
	for n := range 50 {
		poll := status.Poll{Began: ago(time.Duration(50-n) * time.Second), Seconds: 0.02, Rows: int64(n),
			Outcome: "ok"}
		switch n {
		case 48:
			poll.Outcome = "failed"
		case 47:
			poll.Outcome = "blocked"
		}
		s.Resources[1].Polls = append(s.Resources[1].Polls, poll)
	}
	s.Resources[1].Sweep.Left = "3 rows that the service no longer has: sweep.deletes is report"
	s.Resources[1].Settling = &status.Settling{Settled: s.Resources[1].Settled, OverlapSeconds: 120,
		ByFloor: true}
	for n := range 20 {
		s.Resources[1].LatestLetters = append(s.Resources[1].LatestLetters, status.DeadLetter{
			ID: fmt.Sprint(78001 - n), At: ago(time.Duration(n) * time.Hour), Field: "sale_price",
			Error: "expected a decimal of at most 38 digits, 18 of them after the point"})
	}
	s.Resources[1].LatestLetters[3].Field, s.Resources[1].LatestLetters[3].ID = "", "00000000000000ff"
	users := &s.Resources[3]
	users.Owned, users.Abandoned, users.Passes = true, false, 7
	users.Settled = ago(9 * 24 * time.Hour).Truncate(24 * time.Hour)
	users.Delayed = day(9) + " cannot be closed: " + stuck
	users.Settling = &status.Settling{Settled: users.Settled, OverlapSeconds: 120,
		ReplayFrom: ago(1000 * time.Hour), ReplayTo: ago(24 * time.Hour).Truncate(24 * time.Hour),
		Days: []status.Days{
			{From: day(9), To: day(9), State: status.DayNotClosed, Why: day(9) + " cannot be closed: " + stuck,
				Next: ago(-7 * time.Minute)},
			{From: day(8), To: day(5), State: status.DayClosed},
			{From: day(4), To: day(2), State: status.DayReplaying},
			{From: day(1), To: day(1), State: status.DayUnread},
			{From: day(0), State: status.DayOpen}}}
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

func TestOneResourceIsShownAloneWithItsPollsSweepsAndLetters(t *testing.T) {
	_, url := serve(t, detailed)
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	b.only("")
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab),
		chromedp.KeyEvent(kb.Enter)) // Pause, orders, order_items
	b.only("order_items")
	b.until("its heading has the focus", `document.activeElement.id === "resources"
		&& document.activeElement.textContent === "order_items"`)
	b.says("#polls", "failed")
	b.says("#polls", "blocked")
	b.says("#sweeps", "2 missing and 1 stale")
	b.says("#sweeps", "sweep.deletes is report")
	b.says("#letters", "expected a decimal")
	b.says("#single", "00000000000000ff")
	b.says("#single", "expected a decimal")
	b.until("twenty letters", `document.querySelectorAll("#single tbody tr").length === 20`)
	polls := func(n int) {
		b.until("polls, the newest first", fmt.Sprintf(`document.querySelectorAll("#polls tbody tr").length === %d
			&& document.querySelector("#polls tbody tr").textContent.includes("49")`, n))
	}
	polls(10)
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), // back, card, button
		chromedp.KeyEvent(" "))
	polls(50)
	b.until("the button keeps the focus", `document.activeElement.textContent === "Show the last 10"
		&& document.activeElement.getAttribute("aria-expanded") === "true"`)
	b.do(chromedp.KeyEvent(kb.Enter))
	polls(10)
	if js[bool](b, `document.getElementById("members").checkVisibility()`) {
		t.Error("the group is shown beside one resource")
	}

	b.do(chromedp.Evaluate[chromedp.Void](`history.back()`))
	b.only("")
	if js[bool](b, `document.getElementById("polls").checkVisibility()`) {
		t.Error("polls are shown beside all resources")
	}
	b.do(chromedp.Evaluate[chromedp.Void](`history.forward()`))
	b.only("order_items")
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // from the heading: All resources
	b.only("")
	b.look(url+"?again#users", 1280, 900, 1, false)
	b.only("users")
	b.says("#polls", "None yet.")
	b.look(url+"?again2#no such resource", 1280, 900, 1, false)
	b.only("")
}

func TestTheDaysOfAResourceAreShownAsACalendarThatSaysWhatTheWordsSay(t *testing.T) {
	_, url := serve(t, detailed)
	b := open(t)
	b.look(url+"#users", 1280, 900, 1, false)
	b.only("users")
	for _, line := range []string{
		"All days before " + day(9) + " are settled: no row with an earlier updated_at can still appear.",
		day(9) + ": cannot be closed: " + stuck + ". The next try is at ",
		day(8) + " to " + day(5) + ": read whole, and settled once the days before are.",
		day(4) + " to " + day(2) + ": settled before; the replay reads and publishes them again.",
		day(1) + ": over, and not read whole yet.",
		"Since " + day(0) + ": open. Each poll reads what has changed; a day is over when both clocks",
		"A replay publishes again from ",
	} {
		b.says("#settled li", line)
	}
	for state, days := range map[string]int{"not_closed": 1, "closed": 4, "replaying": 3, "unread": 1,
		"open": 1} {
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
	b.says("#settled li", "Open since then, 3 h: it stands still, for the reason above. Of that each poll "+
		"reads what has changed since the pass before.")
	if js[bool](b, `document.getElementById("calendar").checkVisibility()`) {
		t.Error("days are shown of a resource that is settled to a time")
	}
	b.look(url+"?none#products", 1280, 900, 1, false) // of which nothing is known
	b.only("products")
	b.says("#polls", "None yet.")
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
	users.Settled = time.Date(2009, 1, 1, 0, 0, 0, 0, time.UTC)
	users.Settling = &status.Settling{Settled: users.Settled, Days: []status.Days{
		{From: "2009-01-01", To: "2009-01-01", State: status.DayNotClosed, Why: "x"},
		{From: "2009-01-02", To: "2019-03-01", State: status.DayClosed},
		{From: day(0), State: status.DayOpen}}}
	_, url := serve(t, func() status.Snapshot { return s })
	b := open(t)
	b.look(url+"#users", 360, 780, 2, false)
	b.says("#settled li", "2009-01-02 to 2019-03-01: read whole")
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
		for resource, text := range map[string]string{"order_items": "failed", "users": "None yet"} {
			b.look(fmt.Sprintf("%s?%d%s#%[3]s", url, n, resource), v.width, v.height, v.scale, v.dark)
			b.only(resource)
			b.says("#polls", text)
			b.says("#settled", "can still appear")
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
