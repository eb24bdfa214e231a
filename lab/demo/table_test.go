package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

var (
	now  = time.Date(2026, 11, 21, 10, 53, 2, 0, time.UTC)
	fast = 0.42
	slow = 125.0

	samplePace = rates{"orders": 1234.4, "order_items": 4.25}
)

// sample has a resource in every state.
func sample() status.Snapshot {
	at := func(ago time.Duration) *schemas.Instant {
		i := schemas.InstantOf(now.Add(-ago))
		return &i
	}
	return status.Snapshot{Now: now, Started: now, Resources: []health.Resource{
		{Name: "orders", Source: "postgres", State: health.Following, Rows: 1234567,
			LagSeconds: &fast, Settled: at(2 * time.Minute)},
		{Name: "order_items", Source: "postgres", State: health.Failing, Rows: 181000,
			LagSeconds: &slow, Settled: at(time.Hour), Why: "connection refused", Since: now.Add(-125 * time.Second)},
		{Name: "products", Source: "rest", State: health.FirstLoad},
		{Name: "users", Source: "rest", State: health.SettlingDelayed, Rows: 20000, LagSeconds: &fast,
			Why: "2026-11-20 does not come clean", Since: now.Add(-time.Minute)},
		{Name: "shipments", Source: "rest", State: health.Resuming},
	}}
}

func TestTheTableIsAlignedAndLeavesOutTheSourceWhereThereIsNoRoom(t *testing.T) {
	for width, want := range map[int]string{
		100: `
  TOPIC              SOURCE    PUBLISHED  ROWS/S      LAG  SETTLED (UTC)        STATE
  store.orders       postgres  1,234,567   1,234     0.4s  2026-11-21 10:51:02  following
  store.order_items  postgres    181,000     4.2     2m5s  2026-11-21 09:53:02  failing for 2m5s`,
		80: `
  TOPIC              PUBLISHED  ROWS/S      LAG  SETTLED (UTC)        STATE
  store.orders       1,234,567   1,234     0.4s  2026-11-21 10:51:02  following
  store.order_items    181,000     4.2     2m5s  2026-11-21 09:53:02  failing f…
  store.products             0       0        -  not yet              first load
  store.users           20,000       0     0.4s  not yet              settling …
  store.shipments            0       0        -  not yet              resuming`,
	} {
		got := table(sample(), samplePace, false, width)
		if wanted := strings.Split(want, "\n")[1:]; !slices.Equal(got[:len(wanted)], wanted) {
			t.Errorf("%d columns:\n%s\nexpected:%s", width, strings.Join(got, "\n"), want)
		}
	}
}

func TestNoLineOfTheTableIsWiderThanTheTerminal(t *testing.T) {
	for width := range 140 {
		for _, line := range table(sample(), samplePace, false, width) {
			if n := utf8.RuneCountInString(line); n > width {
				t.Fatalf("%d columns on a terminal of %d: %q", n, width, line)
			}
		}
	}
}

func TestOnlyTerminalsThatWantColorsGetThem(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    paint
	}{
		{[]string{"TERM=xterm"}, true},
		{[]string{"NO_COLOR=1"}, false},
		{[]string{"NO_COLOR="}, true},
		{[]string{"NO_COLOR=1", "NO_COLOR="}, true},
		{[]string{"TERM=dumb"}, false},
	} {
		if got := paintFor(test.environ); got != test.want {
			t.Errorf("%s: %v", test.environ, got)
		}
	}
}

func TestRowsASecondAreThoseOfTheLastSeconds(t *testing.T) {
	at := func(second int, orders int64) status.Snapshot {
		return status.Snapshot{Now: now.Add(time.Duration(second) * time.Second),
			Resources: []health.Resource{{Name: "orders", Published: orders}}}
	}
	got := ratesOf([]status.Snapshot{{Now: now}, at(1, 30), at(2, 40)})
	if late := ratesOf([]status.Snapshot{at(1, 30), at(5, 40)}); got["orders"] != 20 || late["orders"] != 2.5 {
		t.Errorf("%v and %v", got, late)
	}
	if got := ratesOf(nil); got["orders"] != 0 {
		t.Errorf("%v without a snapshot", got)
	}
}

func TestColoursChangeNoAlignment(t *testing.T) {
	coloured := table(sample(), samplePace, true, 100)
	strip := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "",
		"\x1b[33m", "")
	for i, line := range table(sample(), samplePace, false, 100) {
		if got := strings.TrimRight(strip.Replace(coloured[i]), " "); got != line {
			t.Errorf("with colours:\n%q\nwithout:\n%q", got, line)
		}
	}
}

func TestWhatIsNoTerminalGetsPlainLinesWithoutControlCharacters(t *testing.T) {
	var out bytes.Buffer
	d := newDemo(options{}, []string{"TERM=xterm"}, &out)
	d.screen.print("demo: text", "")
	d.screen.starting("PostgreSQL")
	d.screen.part("PostgreSQL", "127.0.0.1:5432", "remark", "")
	d.screen.draw(plain(sample(), samplePace, []string{"users settles no further"}))
	d.screen.draw(plain(sample(), samplePace, nil))
	if strings.ContainsAny(out.String(), "\x1b\r") {
		t.Errorf("%q", out.String())
	}
	for _, want := range []string{
		"\n10:53:02Z  store.orders        1,234,567 published    1,234 rows/s  lag 0.4s      " +
			"settled 2026-11-21 10:51:02  following\n",
		"\n10:53:02Z  users settles no further\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestTroubleIsSaidInFull(t *testing.T) {
	v := &watch{snapshot: sample()}
	v.snapshot.Waiting = "broker 127.0.0.1:9092"
	v.snapshot.Resources[0].DeadLetters = []watermark.DeadLetters{{Rows: 1200}}
	want := []string{
		"storestream waits: broker 127.0.0.1:9092",
		"orders: 1,200 rows could not be published, see store.dead_letters",
		"order_items: failing for 2m5s: connection refused",
		"users: settling delayed: 2026-11-20 does not come clean",
	}
	if got := v.trouble(); !slices.Equal(got, want) {
		t.Errorf("%q\nexpected %q", got, want)
	}
}

// Somebody who has stopped PostgreSQL and started it again should not read of its failures for ever.
func TestFailuresOfTheShopAreForgottenWhenTheyHaveEnded(t *testing.T) {
	var f failures
	for _, step := range []struct {
		after       time.Duration
		total, want int
	}{
		{0, 0, 0}, {time.Second, 3, 3}, {5 * time.Second, 815, 815}, {14 * time.Second, 815, 815},
		{15 * time.Second, 815, 0}, {time.Minute, 815, 0}, {61 * time.Second, 816, 1}, {2 * time.Minute, 816, 0},
	} {
		if got := f.count(step.total, now.Add(step.after)); got != step.want {
			t.Errorf("%d failed in all after %s: %d are shown, expected %d", step.total, step.after, got, step.want)
		}
	}
}

func TestFiguresAndCommandsAreWrittenForPeople(t *testing.T) {
	at := schemas.InstantOf(now)
	for _, test := range []struct{ got, want string }{
		{perSecond(0), "0"}, {perSecond(0.04), "0.0"}, {perSecond(9.94), "9.9"}, {perSecond(9.96), "10"},
		{perSecond(1234.5), "1,235"},
		{instant(nil), "not yet"}, {instant(&at), "2026-11-21 10:53:02"},
		{quote("/tmp/a-b_c.yaml"), "/tmp/a-b_c.yaml"}, {quote("it's"), `'it'\''s'`}, {quote(""), "''"},
		{strings.Join(wrap("one two  three four", 9), "|"), "one two|three|four"},
	} {
		if test.got != test.want {
			t.Errorf("%q, expected %q", test.got, test.want)
		}
	}
}
