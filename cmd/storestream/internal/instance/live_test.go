package instance

import (
	"errors"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

func midnight(day string) time.Time {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return t
}

func TestManyRangesOfDaysAreCutBeforeTheLast(t *testing.T) {
	var l live
	for n := range 1000 {
		day := midnight("2024-01-01").AddDate(0, 0, n).Format(time.DateOnly)
		l.days = append(l.days, health.Days{From: day, To: day, State: "unread"})
	}
	l.days = append(l.days, health.Days{From: "2026-11-20", State: "open"})
	w := watermark.New("users")
	s := l.settling(&w, config.Resource{Source: config.REST, Start: schemas.MinInstant})
	if n := len(s.Days); n != mostRanges || s.Days[0].From != "2024-01-01" || s.Days[n-1].State != "open" {
		t.Errorf("%d ranges: %+v", n, s.Days)
	}
}

func TestTheOpenPartIsShownBehindSettled(t *testing.T) {
	at := func(day string) schemas.Instant { return schemas.InstantOf(midnight(day)) }
	w := watermark.New("orders")
	w.Settled, w.Floor = at("2026-11-20"), &watermark.Floor{}
	w.Cursor = &watermark.Cursor{UpdatedAt: at("2026-11-21")}
	w.Replay = &watermark.Replay{From: at("2026-11-01"), Settled: at("2026-11-22")}
	c := config.Resource{Source: config.Postgres, Overlap: time.Minute, Start: schemas.MinInstant}
	s := (&live{}).settling(&w, c)
	if s.Days != nil || !s.ByFloor || s.OverlapSeconds != 60 || *s.Cursor != at("2026-11-21") ||
		*s.LoadsFrom != at("2026-11-01") || *s.LoadsAt != at("2026-11-21") {
		t.Errorf("a replay: %+v", s)
	}
	first := watermark.New("orders")
	if s = (&live{}).settling(&first, c); s.LoadsFrom != nil || s.LoadsAt != nil {
		t.Errorf("a first load that has not begun: %+v", s)
	}
	first.Settled = at("2026-11-20")
	if s = (&live{}).settling(&first, c); s.LoadsFrom != nil || *s.LoadsAt != at("2026-11-20") {
		t.Errorf("a first load: %+v", s)
	}
	first.AsOf = at("2026-11-20")
	if s = (&live{}).settling(&first, c); s.LoadsAt != nil {
		t.Errorf("no load: %+v", s)
	}
}

func TestARunningInstanceSaysWhichDaysAreOpen(t *testing.T) {
	s := stage.New(t)
	s.Serve(nil)
	c := configOf(t, s, "first")
	begin(t, c)
	stage.Eventually(t, "users has one open day, from settled on", func() bool {
		for _, r := range c.Board.Snapshot().Resources {
			if r.Name == "users" && r.Settled != nil && len(r.Settling.Days) == 1 {
				day := r.Settled.Time().Format(time.DateOnly)
				return r.Settling.Days[0] == health.Days{From: day, State: "open"}
			}
		}
		return false
	})
}

func TestARunningInstanceIsTheWriterOfItsWatermarks(t *testing.T) {
	s := stage.New(t)
	s.Serve(nil)
	s.Publish("users", nil, nil, func(*watermark.Watermark) {}) // by another one
	c := configOf(t, s, "second")
	begin(t, c)
	stage.Eventually(t, "users has a watermark of second", func() bool {
		for _, r := range c.Board.Snapshot().Resources {
			if r.Name == "users" && r.Instance == "second" && r.Group == c.Settings.Kafka.Group() {
				return true
			}
		}
		return false
	})
}

// The first failures of an owner are in no watermark yet.
func TestTheTroubleOfAnOwnerIsItsOwn(t *testing.T) {
	failing := &watermark.Trouble{Why: "before", Failing: true}
	delayed := &watermark.Trouble{Why: "settled stands still", Publishes: true}
	down := errors.New("the database is down")
	for name, test := range map[string]struct {
		l   live
		why string // "" if there is none
	}{
		"it takes over":             {live{}, ""},
		"the takeover fails":        {live{err: down}, "the database is down"},
		"it has found nothing":      {polling(nil, nil), ""},
		"settling is delayed":       {polling(delayed, nil), "settled stands still"},
		"its first failure":         {polling(nil, down), "the database is down"},
		"it fails after a delay":    {polling(delayed, down), "the database is down"},
		"it has failed for a while": {polling(failing, down), "before"},
	} {
		got := test.l.trouble()
		if got == nil && test.why != "" || got != nil && got.Why != test.why {
			t.Errorf("%s: %+v, expected %q", name, got, test.why)
		}
	}
}

func polling(t *watermark.Trouble, err error) live {
	return live{poller: new(poller.Poller), status: poller.Status{Trouble: t, Err: err}}
}
