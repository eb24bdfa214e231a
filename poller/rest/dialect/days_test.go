package dialect

import (
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
)

func at(text string) schemas.Instant {
	var i schemas.Instant
	if err := i.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return i
}

func TestARowOutsideOfTheDaysAskedForShowsAnotherZone(t *testing.T) {
	from, end := at("2026-11-14T00:00:00Z"), at("2026-11-16T00:00:00Z")
	for text, want := range map[string]struct{ other, unasked bool }{
		"2026-11-14T00:00:00Z": {}, "2026-11-15T23:59:59Z": {},
		"2026-11-16T00:00:00Z": {}, // written for 23:59:59.9
		"2026-11-13T23:59:59Z": {}, // written for 00:00:00.1, or nearly
		"2026-11-13T23:59:58Z": {other: true}, "2026-11-16T00:00:02Z": {other: true},
		"2026-11-13T00:00:00Z": {other: true}, "2026-11-12T23:00:00Z": {unasked: true},
		"2026-11-17T00:00:01Z": {unasked: true},
	} {
		if other, unasked := Outside(at(text), from, end); other != want.other || unasked != want.unasked {
			t.Errorf("%s: another zone %v, not asked for %v", text, other, unasked)
		}
	}
	if other, unasked := Outside(end.Add(400*24*time.Hour), from, schemas.MaxInstant); other || unasked {
		t.Errorf("of days without an end: another zone %v, not asked for %v", other, unasked)
	}
}
