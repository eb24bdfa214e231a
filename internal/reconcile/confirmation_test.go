package reconcile

import (
	"testing"
	"time"
)

// A look takes time: it counts from its start, and the look before counts from its end.
func TestAStateCountsOnceTwoReadsAnOverlapApartHaveShownIt(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	type read struct{ state, from, to int }
	for name, test := range map[string]struct {
		reads  []read
		counts bool
	}{
		"one look":                            {[]read{{1, 0, 100}}, false},
		"two, an overlap apart":               {[]read{{1, 0, 5}, {1, 65, 66}}, true},
		"from the first one's end":            {[]read{{1, 0, 5}, {1, 64, 66}}, false},
		"to the last one's start":             {[]read{{1, 0, 5}, {1, 30, 90}}, false},
		"with another one in between":         {[]read{{1, 0, 5}, {1, 40, 40}, {1, 65, 66}}, true},
		"with another state in between":       {[]read{{1, 0, 5}, {2, 40, 40}, {1, 65, 66}}, false},
		"another state, an overlap later":     {[]read{{2, 0, 5}, {1, 65, 66}}, false},
		"the same, an overlap after another":  {[]read{{1, 0, 5}, {2, 40, 40}, {1, 65, 66}, {1, 126, 130}}, true},
		"another state that counts by itself": {[]read{{1, 0, 5}, {2, 40, 40}, {2, 100, 101}}, false},
	} {
		var c Confirmation[int]
		for _, r := range test.reads {
			c.Shown(r.state, at(r.from), at(r.to))
		}
		if got := c.Counts(1, time.Minute); got != test.counts {
			t.Errorf("%s: counts %v", name, got)
		}
	}
}
