package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

func TestAClockThatIsSetBackTakesItsHorizonsAlong(t *testing.T) {
	hs := horizons{overlap: 10 * time.Microsecond}
	hs.note(horizon{time: 100, next: 5})
	hs.note(horizon{time: 200, next: 6})
	hs.note(horizon{time: 150, next: 7})
	if got := hs.reach(6); got != 90 {
		t.Errorf("settled reaches %d by horizons of a clock that was set back from 200 to 150, expected 90", got)
	}
}

func TestHorizonsAreBoundedAndThinningNeverSettlesFurther(t *testing.T) {
	hs := horizons{overlap: 0}
	exact := map[uint64]schemas.Instant{}
	for i := range 50_000 {
		h := horizon{time: schemas.Instant(10 * i), next: uint64(i)}
		hs.note(h)
		exact[h.next] = h.time
	}
	if len(hs.noted) > maxHorizons {
		t.Errorf("%d horizons are kept, the bound is %d", len(hs.noted), maxHorizons)
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
	hs.note(horizon{time: 100, next: 5})
	hs.note(horizon{time: 200, next: 6})
	now := &clock{known: true, time: 1000}
	for xmin, want := range map[uint64]string{
		4: "is open since before 1970-01-01T00:00:00.000100Z",
		5: "is open since about 1970-01-01T00:00:00.000200Z",
		6: "",
	} {
		if got := hs.held(now, xmin); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("xmin %d: %q, expected %q", xmin, got, want)
		}
	}
}
