package main

import (
	"testing"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// While a group shares its resources out anew, what is not delivered is in flight and no difference: verify waits for the next owner's polls.
func TestVerifyWaitsForTheNextOwnerDuringAHandover(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	has := func(instance string, owned ...string) producer.Owner {
		return producer.Owner{Member: producer.Member{Instance: instance}, Owned: owned}
	}
	o := &verified{Resource: "orders", cfg: config.Resource{Interval: time.Second}, looked: at}
	for _, step := range []struct {
		after   time.Duration // since it was looked at
		members []producer.Owner
		asOf    time.Duration // of the watermark, before or after that
		ready   bool
	}{
		{time.Second, []producer.Owner{has("a", "orders"), has("b")}, -time.Second, false},
		{4 * time.Second, []producer.Owner{has("a"), has("b")}, -time.Second, false},
		{15 * time.Second, []producer.Owner{has("b")}, -time.Second, false}, // however long
		{20 * time.Second, []producer.Owner{has("b", "orders")}, -time.Second, false},
		{26 * time.Second, []producer.Owner{has("b", "orders")}, -time.Second, false},
		{28 * time.Second, []producer.Owner{has("b", "orders")}, -time.Second, true}, // two polls of b are over, and no pass of it was complete
		{28 * time.Second, []producer.Owner{has("b", "orders")}, time.Second, true},
		{29 * time.Second, []producer.Owner{has("b")}, -time.Second, false},
		{60 * time.Second, []producer.Owner{has("b")}, -time.Second, true}, // nobody takes it
		{61 * time.Second, nil, -time.Second, true},
		{62 * time.Second, []producer.Owner{has("c", "orders")}, -time.Second, false},
	} {
		now := at.Add(step.after)
		o.polled.note(ownersOf(step.members)["orders"], len(step.members) > 0, now)
		o.asOf = known(schemas.InstantOf(at.Add(step.asOf)))
		if got := o.ready(now); got != step.ready {
			t.Errorf("after %s: ready %v, want %v (%+v)", step.after, got, step.ready, o.polled)
		}
	}
	o = &verified{Resource: "orders", cfg: config.Resource{Interval: time.Second}, looked: at}
	if o.polled.note("", false, at); !o.ready(at) || !o.polled.nobody {
		t.Error("it waits where no instance runs")
	}
	if o.polled = (polled{}); o.ready(at.Add(time.Second)) || !o.ready(at.Add(8*time.Second)) {
		t.Error("it waits for a group that cannot be asked")
	}
}

func TestAResourceBetweenTwoOwnersIsNotCalledAbandoned(t *testing.T) {
	cfg, now := config.Default(), schemas.InstantOf(time.Now())
	lag := 12.0
	s := state{Resource: "orders", LagSeconds: &lag, Written: &now, Instance: "a", between: true, now: now}
	if why, owner := s.late(&cfg), s.owner(); why != "" || owner != "between two (last a)" {
		t.Errorf("%q, owner %q", why, owner)
	}
	if s.between = false; s.late(&cfg) == "" {
		t.Error("nobody has it, and it is called up to date")
	}
}
