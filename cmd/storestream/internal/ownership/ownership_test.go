package ownership

import (
	"testing"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/schemas"
)

func TestAResourceIsAbandonedWhereNoInstanceRunsOrNoneTakesItForLong(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var r Resource
	if r.Between() || r.Abandoned {
		t.Error("something is said before anything is known")
	}
	for _, step := range []struct {
		after              time.Duration
		owner              string
		instances          bool
		between, abandoned bool
		had                time.Duration // how long the owner has had it
	}{
		{1 * time.Second, "a", true, false, false, 0},
		{4 * time.Second, "", true, true, false, 0},
		{34 * time.Second, "", true, true, false, 0},
		{35 * time.Second, "", true, false, true, 0}, // nobody takes it
		{36 * time.Second, "b", true, false, false, 0},
		{40 * time.Second, "b", true, false, false, 4 * time.Second},
		{41 * time.Second, "c", true, false, false, 0},
		{42 * time.Second, "", false, false, true, 0}, // nobody is there
		{43 * time.Second, "", true, true, false, 0},
	} {
		now := start.Add(step.after)
		r.Note(step.owner, step.instances, now)
		if r.Between() != step.between || r.Abandoned != step.abandoned {
			t.Errorf("after %s: between %v, abandoned %v", step.after, r.Between(), r.Abandoned)
		}
		if step.owner != "" && now.Sub(r.Since) != step.had {
			t.Errorf("after %s: %s has had it for %s, expected %s", step.after, r.Owner, now.Sub(r.Since), step.had)
		}
	}
}

func TestTheOwnerOfEachResourceIsTheMemberThatHasIt(t *testing.T) {
	owners := ByResource([]health.Member{
		{Instance: "a", Owned: []string{"orders", "users"}},
		{Instance: "b"},
		{Instance: "c", Owned: []string{"products"}},
	})
	if len(owners) != 3 || owners["orders"] != "a" || owners["users"] != "a" || owners["products"] != "c" {
		t.Errorf("%v", owners)
	}
}

func TestAResourceIsStalledWhileItsOwnerLeavesTheWatermarkAlone(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var r Resource
	// look looks every five seconds for as long as d; the writer's clock is an hour behind.
	look := func(owner string, d time.Duration, writes bool) {
		written := r.written
		for end := now.Add(d); now.Before(end); {
			now = now.Add(5 * time.Second)
			if writes {
				written = schemas.InstantOf(now.Add(-time.Hour))
			}
			r.Note(owner, true, now)
			r.Wrote(written, now)
		}
	}
	for _, step := range []struct {
		name     string
		do       func()
		interval time.Duration
		stalled  bool
	}{
		{"it is written", func() { look("a", 10*time.Minute, true) }, time.Second, false},
		{"for two minutes it is not", func() { look("a", 2*time.Minute, false) }, time.Second, false},
		{"for longer", func() { look("a", 10*time.Second, false) }, time.Second, true},
		{"which says nothing where it is polled once a minute", func() {}, time.Minute, false},
		{"another one gets it", func() { look("b", 2*time.Minute, false) }, time.Second, false},
		{"and does nothing either", func() { look("b", 10*time.Second, false) }, time.Second, true},
		{"nobody has it: that is another matter", func() { look("", 10*time.Minute, false) }, time.Second, false},
		{"somebody takes it", func() { look("b", time.Minute, false) }, time.Second, false},
		{"and writes", func() { look("b", time.Minute, true) }, time.Second, false},
		{"its clock is set back", func() { look("b", 2*time.Minute, false); r.Wrote(0, now) }, time.Second, false},
		{"an hour in which nobody could look", func() { r.Missed(); now = now.Add(time.Hour); r.Wrote(0, now) },
			time.Second, false},
		{"an hour in which this process was stopped", func() { now = now.Add(time.Hour); r.Wrote(0, now) },
			time.Second, false},
	} {
		if step.do(); (r.Silent() > health.StalledAfter(step.interval)) != step.stalled {
			t.Errorf("%s: stalled %v (still for %s)", step.name, !step.stalled, r.still)
		}
	}
}
