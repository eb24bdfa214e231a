package overview

import (
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Whoever looks at three in the morning wants one answer first.
func TestAResourceIsUpToDateOrItIsSaidWhyNot(t *testing.T) {
	now := schemas.InstantOf(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC))
	settings := config.Resource{Enabled: true, Interval: 30 * time.Second}
	for _, test := range []struct {
		name    string
		asOf    time.Duration // ago
		owner   string
		between bool
		late    string
	}{
		{"fresh", 3 * time.Second, "a", false, ""},
		{"within three intervals", 90 * time.Second, "a", false, ""},
		{"old", time.Hour, "a", false, "the last complete pass began 1h0m ago"},
		{"left", 10 * time.Minute, "", false, "no instance polls it, since 10m0s"},
		{"left a moment ago", 12 * time.Second, "", false, "no instance polls it, since 12s"},
		{"handed over", 12 * time.Second, "", true, ""},
	} {
		mark := watermark.New("orders")
		mark.AsOf, mark.Written = now.Add(-test.asOf), now
		r := of(mark, settings, now)
		r.Owner, r.Between = test.owner, test.between
		if got := r.Late(); got != test.late || r.Lag() != test.asOf {
			t.Errorf("%s: late %q, lag %s, expected %q, %s", test.name, got, r.Lag(), test.late, test.asOf)
		}
	}
	mark := watermark.New("orders")
	mark.AsOf, mark.Written = now.Add(-time.Hour), now.Add(-5*time.Minute)
	stalled := of(mark, settings, now)
	stalled.ownedBy("a")
	const silent = "a has it, according to the consumer group, and has not written for 5m0s: it is dead, " +
		"hangs or fails: what `storestream check` says of kafka, registry and service, or its log, is why"
	if got := stalled.Late(); got != "the last complete pass began 1h0m ago; "+silent {
		t.Errorf("its owner does not write: %q", got)
	}
	mark.AsOf = now.Add(time.Hour)
	ahead := of(mark, settings, now)
	ahead.Owner = "a"
	if got := ahead.Late(); !strings.HasPrefix(got, "the last complete pass began 1h0m from now") {
		t.Errorf("somebody's clock is wrong: %q", got)
	}
	mark.AsOf = now.Add(-time.Second)
	mark.Trouble = &watermark.Trouble{Why: "poll.memory is full", Since: now.Add(-time.Minute)}
	blocked := of(mark, settings, now)
	blocked.Owner = "a"
	if got := blocked.Late(); got != "blocked for 1m0s, nothing is published: poll.memory is full" {
		t.Errorf("blocked a moment ago: %q", got)
	}
	mark.Trouble.Failing = true
	failing := of(mark, settings, now)
	failing.Owner = "a"
	if got := failing.Late(); got != "failing for 1m0s: poll.memory is full" {
		t.Errorf("its polls fail: %q", got)
	}
	mark.Trouble.Publishes, mark.Trouble.Failing = true, false
	settling := of(mark, settings, now)
	settling.Owner = "a"
	if got := settling.Late(); got != "" {
		t.Errorf("rows go on, and settled stands still: %q", got)
	}
	mark.Trouble.LeavesOut = true
	leavesOut := of(mark, settings, now)
	leavesOut.Owner = "a"
	if got := leavesOut.Late(); got != "blocked for 1m0s, other rows go on: poll.memory is full" {
		t.Errorf("it is blocked for some rows: %q", got)
	}
	r := of(watermark.New("orders"), settings, now)
	if got := r.Late(); got != "nothing is published yet, and no instance polls it" || r.LagSeconds != nil {
		t.Errorf("before anything ran: %q", got)
	}
	r.Owner = "a"
	if got := r.Late(); got != "the first load is not finished" {
		t.Errorf("during the first load: %q", got)
	}
}

func TestAResourceIsUnattendedWhereItsWatermarkIsNotOfAnOwnerAtWork(t *testing.T) {
	now := schemas.InstantOf(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct {
		written time.Duration // ago
		group   string
		late    string
		is      bool
	}{
		"written with each poll":   {40 * time.Second, "shop", "", false},
		"not for two":              {61 * time.Second, "shop", "", true},
		"written, and late":        {time.Second, "shop", "so it is", true},
		"written by another group": {time.Second, "other", "", true},
	} {
		mark := watermark.New("users")
		mark.AsOf, mark.Written, mark.Group = now.Add(-test.written), now.Add(-test.written), test.group
		r := of(mark, config.Resource{Enabled: true, Interval: 30 * time.Second}, now)
		r.NotUpToDate = test.late
		if got := r.Unattended("shop"); got != test.is {
			t.Errorf("%s: unattended %v, expected %v", name, got, test.is)
		}
	}
}

func TestSweepsThatDoNotEndAreTold(t *testing.T) {
	now := schemas.InstantOf(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC))
	const day = 24 * time.Hour
	swept := func(ago time.Duration) watermark.Watermark {
		w := watermark.New("orders")
		w.LastSweep = now.Add(-ago)
		return w
	}
	never, dies, replays := watermark.New("orders"), swept(4*day), swept(4*day)
	never.Sweep = &watermark.Sweep{At: now.Add(-4 * day), Attempts: 1}
	dies.Sweep = &watermark.Sweep{At: now.Add(-3 * day), Attempts: 4}
	replays.Replay = &watermark.Replay{}
	const late = "no sweep has ended for 4d0h, and sweep.interval is 1d0h"
	const why = ": the log and the status page of its owner say why"
	for name, test := range map[string]struct {
		mark     watermark.Watermark
		interval time.Duration
		says     string
	}{
		"none is due yet":       {watermark.New("orders"), day, ""},
		"after three intervals": {swept(3 * day), day, ""},
		"later":                 {swept(4 * day), day, late + why},
		"the first one":         {never, day, late + why},
		"its owners die":        {dies, day, late + " (this one was begun 4 times in a row)" + why},
		"beside a replay":       {replays, day, late + ": sweeps wait until the replay is over"},
		"once a week":           {swept(4 * day), 7 * day, ""},
		"never scheduled":       {swept(400 * day), 0, ""},
	} {
		if got := sweepLate(&test.mark, test.interval, now); got != test.says {
			t.Errorf("%s: %q, expected %q", name, got, test.says)
		}
	}
}
