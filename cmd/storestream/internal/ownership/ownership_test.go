package ownership

import (
	"testing"
	"time"

	"github.com/storestream/storestream/producer"
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
	owners := ByResource([]producer.Owner{
		{Member: producer.Member{Instance: "a"}, Owned: []string{"orders", "users"}},
		{Member: producer.Member{Instance: "b"}},
		{Member: producer.Member{Instance: "c"}, Owned: []string{"products"}},
	})
	if len(owners) != 3 || owners["orders"] != "a" || owners["users"] != "a" || owners["products"] != "c" {
		t.Errorf("%v", owners)
	}
}
