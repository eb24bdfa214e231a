package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

// at is a primary's clock that says so when ours does.
func at(ours time.Duration, says schemas.Instant, next uint64) *clock {
	then := time.Unix(0, 0).Add(ours)
	return &clock{time: says, known: true, next: next, asked: then, answered: then}
}

func TestAClockThatIsSetBackTakesItsHorizonsAlong(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		name   string
		clock  *clock // after 100 at 0 and 200 at 100 of ours
		reach  schemas.Instant
		before schemas.Instant // consumeBack
	}{
		{"it runs on", at(150*us, 250, 7), 190, schemas.MaxInstant},
		{"it is set back", at(150*us, 150, 7), 90, 90},
		{"it is set back, and has passed the time since", at(300*us, 390, 7), 180, 180},
	} {
		hs := horizons{overlap: 10 * us}
		hs.observe(at(0, 100, 5), true)
		hs.observe(at(100*us, 200, 6), true)
		hs.observe(c.clock, true)
		if got := hs.reach(6); got != c.reach {
			t.Errorf("%s: settled reaches %d, expected %d", c.name, got, c.reach)
		}
		if got := hs.consumeBack(); got != c.before {
			t.Errorf("%s: rows may have appeared from %d on, expected %d", c.name, got, c.before)
		}
		if hs.consumeBack() != schemas.MaxInstant {
			t.Errorf("%s: it is told twice", c.name)
		}
	}
}

// Within a second, and two in a hundred of what has passed, clocks differ and nobody has set one.
func TestAClockThatRunsALittleSlowIsNotSetBack(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		ours, says time.Duration
		back       bool
	}{
		{time.Second, 100 * time.Millisecond, false},
		{time.Second, -200 * time.Millisecond, true},
		{time.Hour, time.Hour - 70*time.Second, false},
		{time.Hour, time.Hour - 80*time.Second, true},
	} {
		hs := horizons{overlap: time.Minute, allowed: allowedStep}
		hs.observe(at(0, schemas.InstantOf(time.Unix(0, 0).Add(day)), 5), true)
		hs.observe(at(c.ours, schemas.InstantOf(time.Unix(0, 0).Add(day+c.says)), 6), true)
		if got := hs.consumeBack() < schemas.MaxInstant; got != c.back {
			t.Errorf("%v passed here and %v there: set back %v, expected %v", c.ours, c.says, got, c.back)
		}
	}
}

// A transaction that stamped before the step may write after it.
func TestAfterAClockIsSetForwardNoHorizonIsNotedForAnOverlap(t *testing.T) {
	const us = time.Microsecond
	hs := horizons{overlap: 10 * us}
	hs.observe(at(0, 100, 5), true)
	for _, c := range []struct {
		clock *clock
		want  schemas.Instant
	}{{at(5*us, 1005, 6), 90}, {at(14*us, 1014, 7), 90}, {at(15*us, 1015, 8), 1005}} {
		if hs.observe(c.clock, true); hs.reach(100) != c.want {
			t.Errorf("at %d settled reaches %d, expected %d", c.clock.time, hs.reach(100), c.want)
		}
		if delayed := hs.delays(c.clock, 100); (delayed != "") != (c.want == 90) {
			t.Errorf("at %d it says %q", c.clock.time, delayed)
		}
	}
}

// A standby's clock stands still while its primary commits nothing. That is no step, and that it is behind
// the primary's is none either.
func TestTheClockOfAStandbyIsComparedWithAStandbysAlone(t *testing.T) {
	const us = time.Microsecond
	replayed := func(ours time.Duration, says schemas.Instant) *clock {
		c := at(ours, says, 7)
		c.standby = true
		return c
	}
	hs := horizons{overlap: 10 * us}
	hs.observe(at(0, 100, 5), true)
	for i, c := range []struct {
		clock *clock
		want  schemas.Instant
	}{
		{replayed(10*us, 50), schemas.MaxInstant},
		{replayed(90*us, 50), schemas.MaxInstant},
		{at(100*us, 200, 8), schemas.MaxInstant},
		{replayed(110*us, 40), 10},
		{replayed(120*us, 60), schemas.MaxInstant},
	} {
		if hs.observe(c.clock, true); hs.consumeBack() != c.want {
			t.Errorf("clock %d: expected that rows may have appeared from %d on", i, c.want)
		}
	}
}

func TestHorizonsAreBoundedAndThinningNeverSettlesFurther(t *testing.T) {
	hs := horizons{overlap: 0}
	exact := map[uint64]schemas.Instant{}
	for i := range 50_000 {
		h := horizon{time: schemas.Instant(10 * i), next: uint64(i)}
		hs.record(h)
		exact[h.next] = h.time
	}
	if len(hs.recorded) > maxHorizons {
		t.Errorf("%d horizons are kept, the bound is %d", len(hs.recorded), maxHorizons)
	}
	for xmin := uint64(0); xmin < 50_000; xmin += 37 {
		if got := hs.reach(xmin); got > exact[xmin] {
			t.Fatalf("with xmin %d settled reaches %d, without thinning %d", xmin, got, exact[xmin])
		}
	}
	if got := hs.reach(49_999); got != exact[49_999] {
		t.Errorf("the newest horizon was thinned away: reach %d", got)
	}
}

// A process that was started beside a transaction knows only that it is older than itself.
func TestATransactionIsSaidToBeOpenSinceNoLaterThanIsKnown(t *testing.T) {
	hs := horizons{overlap: 10 * time.Microsecond}
	hs.record(horizon{time: 100, next: 5})
	hs.record(horizon{time: 200, next: 6})
	now := &clock{known: true, time: 1000}
	for xmin, want := range map[uint64]string{
		4: "is open since before 1970-01-01T00:00:00.000100Z",
		5: "is open since about 1970-01-01T00:00:00.000200Z",
		6: "",
	} {
		if got := hs.delays(now, xmin); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("xmin %d: %q, expected %q", xmin, got, want)
		}
	}
}
