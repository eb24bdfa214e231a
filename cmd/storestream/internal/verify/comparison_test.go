package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func newTestComparison(t *testing.T, looked time.Time) *comparison {
	t.Helper()
	s := stage.New(t)
	c := Config{Settings: s.Config("resources.users.interval=1s"), Schemas: s.Schemas,
		Cluster: s.Cluster("verifier"), Say: func(string, string) {}}
	o := newComparison(c, s.Schemas.Get("users"), reconcile.Config{})
	o.looked = looked
	return o
}

// While a group shares its resources out anew, what is not delivered is under way: verify waits for the next
// owner's polls.
func TestVerifyWaitsForTheNextOwnerDuringAHandover(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	o := newTestComparison(t, at)
	for _, step := range []struct {
		after     time.Duration // since it was looked at
		owner     string
		instances bool
		asOf      time.Duration // of the watermark, before or after that
		ready     bool
	}{
		{time.Second, "a", true, -time.Second, false},
		{4 * time.Second, "", true, -time.Second, false},
		{15 * time.Second, "", true, -time.Second, false}, // however long
		{20 * time.Second, "b", true, -time.Second, false},
		{26 * time.Second, "b", true, -time.Second, false},
		{28 * time.Second, "b", true, -time.Second, true}, // two polls of b are over, none of them complete
		{28 * time.Second, "b", true, time.Second, true},
		{29 * time.Second, "", true, -time.Second, false},
		{60 * time.Second, "", true, -time.Second, true}, // nobody takes it
		{61 * time.Second, "", false, -time.Second, true},
		{62 * time.Second, "c", true, -time.Second, false},
	} {
		now := at.Add(step.after)
		o.ownership.Note(step.owner, step.instances, now)
		o.mark.AsOf = schemas.InstantOf(at.Add(step.asOf))
		if what, _ := o.waits(now); (what == "") != step.ready {
			t.Errorf("after %s: it waits for %q (%+v)", step.after, what, o.ownership)
		}
	}
}

func TestVerifyDoesNotWaitWhereNoInstanceRunsNorLongForAGroupThatCannotBeAsked(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	o := newTestComparison(t, at)
	soon, _ := o.waits(at.Add(time.Second))
	if late, _ := o.waits(at.Add(8 * time.Second)); soon == "" || late != "" {
		t.Error("two intervals and a little are what an instance of which nothing is known takes")
	}
	o.ownership.Note("", false, at)
	if what, _ := o.waits(at); what != "" {
		t.Errorf("it waits for %s where no instance runs", what)
	}
}

// What is deferred is published an overlap later, and nobody should have to guess how long that is.
func TestVerifyWaitsForRowsThatAreDeferredAndTellsUntilWhen(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	o := newTestComparison(t, at)
	o.ownership.Note("a", true, at)
	until := schemas.InstantOf(at.Add(time.Minute))
	o.mark.AsOf = schemas.InstantOf(at.Add(time.Second))
	o.mark.Trouble = &watermark.Trouble{Publishes: true, Until: &until}
	end := at.Add(o.settings.Overlap + 2*time.Second + deliverWithin)
	what, ends := o.waits(end)
	if later, _ := o.waits(end.Add(time.Second)); !strings.Contains(what, "defers") || later != "" ||
		!ends.Equal(end) {
		t.Errorf("it waits for %s until %s, and then for %q; expected until %s", what, ends, later, end)
	}
	o.mark.Trouble = nil
	if what, _ := o.waits(at.Add(2 * time.Second)); what != "" {
		t.Errorf("no row is deferred any more, a poll is over, and it waits for %s", what)
	}
}
