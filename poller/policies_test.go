package poller

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// ordersUnder is the resource under a policy for its status, "" for none.
func ordersUnder(t *testing.T, policy schemas.Policy) *schemas.Resource {
	t.Helper()
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if policy != "" {
		set.Protect(schemas.Privacy{Fields: map[string]schemas.Policy{"orders.status": policy}})
	}
	return set.Get("orders")
}

func TestATopicThatWasFilledUnderAnotherPolicySaysSoUntilASweepFindsNoRowOfIt(t *testing.T) {
	s := openShop(t, 10, nil)
	core, logged := observer.New(zap.WarnLevel)
	s.config.Log = zap.New(core)
	masked := ordersUnder(t, schemas.PolicyMask).PolicyFingerprint()
	s.config.Resource = ordersUnder(t, schemas.PolicyMask)
	s.takeOver()
	s.poll()
	s.now = s.now.Add(idleWrite)
	s.poll()
	if want := (watermark.Policies{"clear", masked}); !slices.Equal(s.mark.Policies, want) {
		t.Fatalf("the watermark says %q, expected %q", s.mark.Policies, want)
	}
	if logged.FilterMessageSnippet("other policies").Len() == 0 {
		t.Error("the log says nothing of it")
	}
	for id, r := range s.rows { // as the policy shows them
		r.content = 9
		s.rows[id] = r
	}
	extra := s.rows[3]
	delete(s.rows, 3)
	if s.sweep(); !s.mark.Policies.Mixed() {
		t.Errorf("row %d is left as it was, and the watermark says %q", extra.id, s.mark.Policies)
	}
	s.config.Sweep.Tombstone = true
	s.takeOver()
	s.poll()
	if s.sweep(); !slices.Equal(s.mark.Policies, watermark.Policies{masked}) {
		t.Errorf("the watermark says %q, swept %+v", s.mark.Policies, s.mark.Swept)
	}
}

// No sweep compares rows of the topic from before the start, so none shows that they are as the policy has
// them.
func TestRowsFromBeforeTheStartMayBeOfAnotherPolicyWhateverASweepFinds(t *testing.T) {
	s := openShop(t, 10, nil)
	s.config.Resource = ordersUnder(t, schemas.PolicyMask)
	s.config.Start = s.now.Add(time.Hour)
	s.takeOver()
	s.poll()
	if s.sweep(); s.mark.Swept == nil || s.mark.Swept.Early != 10 || !s.mark.Policies.Mixed() {
		t.Errorf("the watermark says %q, swept %+v", s.mark.Policies, s.mark.Swept)
	}
	s.config.Start = schemas.MinInstant
	s.takeOver()
	s.poll()
	if s.sweep(); s.mark.Swept.Early != 0 || s.mark.Policies.Mixed() {
		t.Errorf("the watermark says %q, swept %+v", s.mark.Policies, s.mark.Swept)
	}
}

func TestATopicThatIsFilledUnderOnePolicyHasNoOther(t *testing.T) {
	r := ordersUnder(t, schemas.PolicyDrop)
	s := openShop(t, 10, func(c *Config) { c.Resource = r })
	if want := watermark.PoliciesOf(r.PolicyFingerprint()); !slices.Equal(s.mark.Policies, want) {
		t.Errorf("%q, expected %q", s.mark.Policies, want)
	}
}

// The producer tells what a first load finds in the topic, where the watermark was lost.
func TestAFirstLoadIntoATopicThatHoldsRowsOfAnotherPolicyGoesOnSayingSo(t *testing.T) {
	s := openShop(t, 10, nil)
	masked := ordersUnder(t, schemas.PolicyMask).PolicyFingerprint()
	s.config.Resource = ordersUnder(t, schemas.PolicyMask)
	s.mark = watermark.New("orders")
	s.mark.Policies = watermark.Policies{"unknown", masked}
	s.takeOver()
	if s.poll(); !s.mark.Policies.Mixed() || s.mark.Rows == 0 {
		t.Errorf("%d rows, policies %q", s.mark.Rows, s.mark.Policies)
	}
	if s.sweep(); !slices.Equal(s.mark.Policies, watermark.Policies{masked}) {
		t.Errorf("swept %+v, policies %q", s.mark.Swept, s.mark.Policies)
	}
}

// What a sweep found before the change says nothing of the rows as they should be now.
func TestASweepInPartsBeginsAgainUnderAnotherPolicy(t *testing.T) {
	s := openShop(t, 10, nil)
	from := int64(5)
	s.mark.Sweep = &watermark.Sweep{Request: -1, At: s.now, From: &from, Done: &watermark.Swept{Request: -1}}
	s.config.Resource = ordersUnder(t, schemas.PolicyMask)
	s.takeOver()
	if got := s.poller.state.mark.Sweep; got.From != nil || got.Done != nil {
		t.Errorf("it goes on at %+v", got)
	}
}
