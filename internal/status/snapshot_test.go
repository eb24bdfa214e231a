package status

import (
	"testing"
	"time"
)

func TestAResourceIsSummedUpByTheWorstThatIsKnownOfIt(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	lag := func(seconds float64) *float64 { return &seconds }
	polled := func(r Resource) Resource {
		r.Owned, r.Settled, r.AsOf, r.Passes = true, at, at, 7
		return r
	}
	for _, test := range []struct {
		want State
		r    Resource
	}{
		{Unknown, Resource{}},
		{Nobody, Resource{Abandoned: true}},
		{Elsewhere, Resource{Owner: "b-2", Error: "of a moment ago"}},
		{Stalled, Resource{Owner: "b-2", Stalled: true, Delayed: "so"}},
		{Failing, polled(Resource{Error: "401", Stalled: true})},
		{TakingOver, Resource{Owned: true, Doing: "taking over"}},
		{Failing, polled(Resource{Error: "401"})},
		{FirstLoad, Resource{Owned: true, Progress: &Progress{}}},
		{FirstLoad, Resource{Owned: true, Settled: at, Progress: &Progress{At: at}}},
		{CatchingUp, Resource{Owned: true, Settled: at, AsOf: at}},
		{Replaying, polled(Resource{Replaying: true, Delayed: "so"})},
		{Following, polled(Resource{SweepInHand: &SweepInHand{Doing: "reading"}})},
		{SettlingDelayed, polled(Resource{Delayed: "so", LagSeconds: lag(2)})},
		{Following, polled(Resource{LagSeconds: lag(12), IntervalSeconds: 1})},
		// Polls that hang do not fail, and yet nothing arrives.
		{Behind, polled(Resource{LagSeconds: lag(14), IntervalSeconds: 1})},
		{Behind, polled(Resource{LagSeconds: lag(6), IntervalSeconds: 1, Unanswered: true})},
		{Following, polled(Resource{LagSeconds: lag(800), IntervalSeconds: 300})},
	} {
		if got := test.r.state(); got != test.want {
			t.Errorf("%q, expected %q: %+v", got, test.want, test.r)
		}
	}
}

func TestProgressIsAPartOfTheTimeAndTheTimeLeftFollowsThePace(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	from := now.AddDate(0, 0, -100)
	var p pace
	p.add(now.Add(-time.Minute), time.Time{}) // nothing is settled yet
	at := from.AddDate(0, 0, 50)
	for s := range 11 { // a day a second
		p.add(now.Add(time.Duration(s-10)*time.Second), at.AddDate(0, 0, s-10))
	}
	g := Progress{From: from, At: at}
	if g.estimate(now, &p); g.Fraction == nil || *g.Fraction != 0.5 {
		t.Errorf("%v, expected half", g.Fraction)
	}
	if g.SecondsLeft == nil || *g.SecondsLeft < 49 || *g.SecondsLeft > 51 {
		t.Errorf("%v s left, expected 50", *g.SecondsLeft)
	}

	unknown := Progress{At: at} // it began in another process
	if unknown.estimate(now, &p); unknown.Fraction != nil || unknown.SecondsLeft == nil {
		t.Errorf("%+v: expected no fraction of a span whose start is not known, but the time left", unknown)
	}
	p.add(now.Add(time.Second), from) // a reset in the middle
	if begun := (Progress{From: from, At: from}); true {
		if begun.estimate(now.Add(time.Second), &p); begun.SecondsLeft != nil || *begun.Fraction != 0 {
			t.Errorf("%+v: a load that began anew has no pace yet", begun)
		}
	}
	for s := range 5 {
		p.add(now.Add(time.Duration(s+2)*time.Second), from.AddDate(0, 0, s+1))
	}
	if begun := (Progress{From: from, At: from.AddDate(0, 0, 5)}); true {
		if begun.estimate(now.Add(6*time.Second), &p); begun.SecondsLeft == nil || *begun.SecondsLeft < 90 {
			t.Errorf("%+v: the pace is that since the load began anew", begun)
		}
	}
	var still pace
	still.add(now.Add(-20*time.Second), at)
	still.add(now, at)
	if stands := (Progress{From: from, At: at}); true {
		if stands.estimate(now, &still); stands.SecondsLeft != nil {
			t.Errorf("%v s left of a load that stands still", *stands.SecondsLeft)
		}
	}
}

func TestTheHistoryIsAnHourOfEveryResourceWithGapsWhereNothingIsKnown(t *testing.T) {
	h := newHistory()
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for i := range 400 {
		h.add("orders", float64(i), i != 399)
		if i >= 380 { // enabled later
			h.add("users", 7, true)
		}
		h.end(at.Add(time.Duration(i) * historyStep * time.Second))
	}
	shown := h.show()
	orders, users := shown.RowsPerSecond["orders"], shown.RowsPerSecond["users"]
	if len(orders) != 360 || len(users) != 360 {
		t.Fatalf("%d and %d points, expected an hour of both", len(orders), len(users))
	}
	if *orders[0] != 40 || *orders[358] != 398 || orders[359] != nil {
		t.Error("the points of orders are others")
	}
	if users[339] != nil || *users[340] != 7 {
		t.Error("the points of users do not begin where it was enabled")
	}
	if !shown.End.Equal(at.Add(399*10*time.Second)) || shown.StepSeconds != 10 {
		t.Errorf("%v %d", shown.End, shown.StepSeconds)
	}
}
