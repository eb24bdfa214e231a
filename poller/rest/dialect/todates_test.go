package dialect

import (
	"testing"

	"github.com/storestream/storestream/schemas"
)

const last = "2026-11-15T00:00:00Z"

// A midnight of any zone proves nothing: a service that compares with it shows such rows too.
func TestOnlyARowThatNoMidnightExplainsShowsThatDaysAreWhole(t *testing.T) {
	for text, whole := range map[string]bool{"2026-11-14T23:59:59Z": false, "2026-11-15T00:00:00Z": false,
		"2026-11-15T11:59:59Z": false, "2026-11-15T12:00:00Z": false, "2026-11-15T12:00:01Z": true} {
		var proof ToDate
		if proof.Met(at(text), at(last)); proof.Whole != whole {
			t.Errorf("a row of %s: whole %v", text, proof.Whole)
		}
	}
	for _, one := range []struct {
		times []string
		whole bool
	}{
		{[]string{"2026-11-15T05:00:00Z", "2026-11-14T05:00:00Z", "2026-11-15T05:00:00Z"}, false},
		{[]string{"2026-11-15T05:00:00Z", "2026-11-15T06:00:00Z"}, true},
		{[]string{"2026-11-15T05:00:01Z"}, true},
	} {
		var proof ToDate
		for _, text := range one.times {
			proof.MetAlone(at(text))
		}
		if proof.Whole != one.whole {
			t.Errorf("rows of %v: whole %v", one.times, proof.Whole)
		}
	}
}

func TestARowAtTheOneTimeThatIsAlwaysShownDecidesNothing(t *testing.T) {
	var proof ToDate
	if !proof.Decides(at("2026-11-15T05:00:00Z")) {
		t.Error("nothing was shown, and a row does not decide")
	}
	proof.MetAlone(at("2026-11-15T05:00:00Z"))
	if proof.Decides(at("2026-11-10T05:00:00Z")) || !proof.Decides(at("2026-11-10T05:15:00Z")) {
		t.Error("what decides is another time of day")
	}
}

func TestARowBehindEveryZonesMidnightContradictsMidnights(t *testing.T) {
	for text, want := range map[string]bool{"2026-11-15T00:00:00Z": false, "2026-11-15T05:00:00Z": false,
		"2026-11-15T12:00:00Z": false, "2026-11-15T12:00:01Z": false, "2026-11-15T12:00:02Z": true} {
		if got := PastMidnight(at(text), at(last)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if PastMidnight(schemas.MinInstant, at(last)) {
		t.Error("a row of long ago")
	}
}
