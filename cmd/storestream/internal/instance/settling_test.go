package instance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller/rest"
	"github.com/storestream/storestream/schemas"
)

func instant(day string) schemas.Instant { return schemas.InstantOf(midnight(day)) }

func midnight(day string) time.Time {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return t
}

// write is days as a line.
func write(days []status.Days) string {
	var all []string
	for _, d := range days {
		all = append(all, fmt.Sprintf("%s..%s %s", d.From, d.To, d.State))
	}
	return strings.Join(all, ", ")
}

func TestTheDaysThatAreNotSettledAreShownFromTheWatermarkOn(t *testing.T) {
	day := func(from, to string, state rest.DayState) rest.DayRange {
		r := rest.DayRange{From: midnight(from), State: state}
		if to != "" {
			r.To = midnight(to)
		}
		return r
	}
	open := day("2026-11-20", "", rest.Open)
	for name, test := range map[string]struct {
		settled string
		replay  string // to where settled stood before
		days    []rest.DayRange
		want    string
	}{
		"nothing is settled":    {"", "", []rest.DayRange{open}, "2026-11-20.. open"},
		"nothing was said":      {"2026-11-20", "", nil, ""},
		"all that is over":      {"2026-11-20", "", []rest.DayRange{open}, "2026-11-20.. open"},
		"settled since the day": {"2026-11-21", "", []rest.DayRange{open}, "2026-11-21.. open"},
		"not closed, and closed behind": {"2026-11-16", "", []rest.DayRange{
			day("2026-11-16", "2026-11-16", rest.NotClosed),
			day("2026-11-17", "2026-11-19", rest.Closed), open},
			"2026-11-16..2026-11-16 not_closed, 2026-11-17..2026-11-19 closed, 2026-11-20.. open"},
		"settled meanwhile": {"2026-11-18", "", []rest.DayRange{day("2026-11-01", "2026-11-15", rest.Unread),
			day("2026-11-16", "2026-11-19", rest.Unread), open}, "2026-11-18..2026-11-19 unread, 2026-11-20.. open"},
		"closed, and not published": {"2026-11-10", "", []rest.DayRange{day("2026-11-15", "2026-11-19",
			rest.Unread), open}, "2026-11-10..2026-11-14 closed, 2026-11-15..2026-11-19 unread, 2026-11-20.. open"},
		"a replay": {"2026-11-10", "2026-11-15", []rest.DayRange{day("2026-11-10", "2026-11-19", rest.Unread),
			open}, "2026-11-10..2026-11-14 replaying, 2026-11-15..2026-11-19 unread, 2026-11-20.. open"},
		"a replay of all": {"2026-11-10", "2026-11-20", []rest.DayRange{day("2026-11-10", "2026-11-19",
			rest.Unread), open}, "2026-11-10..2026-11-19 replaying, 2026-11-20.. open"},
	} {
		w := watermark.New("users")
		if test.settled != "" {
			w.Settled = instant(test.settled)
		}
		if test.replay != "" {
			w.Replay = &watermark.Replay{From: schemas.MinInstant, Settled: instant(test.replay)}
		}
		s := settling(w, config.Resource{Source: config.REST, Overlap: time.Minute}, test.days)
		if got := write(s.Days); got != test.want {
			t.Errorf("%s: %s, expected %s", name, got, test.want)
		}
		if s.OverlapSeconds != 60 || s.Settled.IsZero() != (test.settled == "") {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestManyRangesOfDaysAreCutBeforeTheLast(t *testing.T) {
	var days []rest.DayRange
	for n := range 1000 {
		at := midnight("2024-01-01").Add(time.Duration(n) * oneDay)
		days = append(days, rest.DayRange{From: at, To: at, State: rest.DayState(1 + n%2)})
	}
	days = append(days, rest.DayRange{From: days[999].To.Add(oneDay), State: rest.Open})
	w := watermark.New("users")
	w.Settled = instant("2024-01-01")
	s := settling(w, config.Resource{Source: config.REST}, days)
	if n := len(s.Days); n != mostRanges || s.Days[0].From != "2024-01-01" || s.Days[n-1].State != "open" {
		t.Errorf("%d ranges: %s", n, write(s.Days))
	}
}

func TestAPostgreSQLResourceIsSettledToATimeAndHasNoDays(t *testing.T) {
	w := watermark.New("orders")
	w.Settled, w.Floor = instant("2026-11-20").Add(time.Hour), &watermark.Floor{}
	w.Cursor = &watermark.Cursor{UpdatedAt: instant("2026-11-21")}
	w.Replay = &watermark.Replay{From: instant("2026-11-01"), Settled: instant("2026-11-22")}
	s := settling(w, config.Resource{Source: config.Postgres, Overlap: time.Minute}, nil)
	if s.Days != nil || !s.ByFloor || !s.Settled.Equal(midnight("2026-11-20").Add(time.Hour)) ||
		!s.Cursor.Equal(midnight("2026-11-21")) || !s.ReplayFrom.Equal(midnight("2026-11-01")) ||
		!s.ReplayTo.Equal(midnight("2026-11-22")) {
		t.Errorf("%+v", s)
	}
}

func TestARunningInstanceSaysWhichDaysAreOpen(t *testing.T) {
	s := stage.New(t)
	s.Serve(nil)
	c := configOf(t, s, "first")
	begin(t, c)
	var d status.Detail
	stage.Eventually(t, "users has one open day, from settled on", func() bool {
		d, _ = c.Board.Detail("users")
		return d.Settling != nil && !d.Settling.Settled.IsZero() &&
			write(d.Settling.Days) == d.Settling.Settled.Format(time.DateOnly)+".. open"
	})
	if over := d.Now.Sub(d.Settling.Settled); over < 0 || over > 3*oneDay {
		t.Errorf("settled to %s, which is %s ago", d.Settling.Settled, over)
	}
}
