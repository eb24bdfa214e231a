package reconcile

import (
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/schemas"
)

// A look takes time: it counts from its start, and the look before counts from its end.
func TestAStateCountsOnceTwoReadsAnOverlapApartHaveShownIt(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	type read struct{ state, from, to int64 }
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
		var c Confirmation
		for _, r := range test.reads {
			c.Shown(rowset.Version{Millis: r.state}, at(r.from), at(r.to))
		}
		if got := c.Counts(rowset.Version{Millis: 1}, time.Minute); got != test.counts {
			t.Errorf("%s: counts %v", name, got)
		}
	}
}

// A poll that takes longer than an overlap may have read the row beside the look.
func TestAReadOfUnknownTimeConfirmsNothing(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{1: row(1, 1000, 7)}, now: time.Unix(0, 0)}
	p.publish(row(1, 2000, 8))
	c := p.run(t, 1)
	p.now = p.now.Add(2 * overlap)
	c.See([]schemas.Record{p.source[1]}, nil)
	if d := c.Differences(); len(d) != 1 || d[0].Counts {
		t.Errorf("one look and a sight of unknown time count: %+v", d)
	}
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := c.Differences(); len(d) != 1 || !d[0].Counts {
		t.Errorf("two looks do not count: %+v", d)
	}
}
