package poller

import (
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// policyInForce notes in mark under which policies for fields rows are published from now on. If other
// policies were in force before, the topic has rows of theirs, and the comparisons of a sweep in hand do not
// count. A first load may find such rows too: if the watermark was lost, the producer notes lost policies in
// the new one.
func policyInForce(cfg *Config, mark *watermark.Watermark) {
	now := cfg.Resource.PolicyFingerprint()
	if mark.Rows == 0 && mark.Settled == schemas.MinInstant && !mark.Policies.Mixed() {
		mark.Policies = watermark.PoliciesOf(now) // a first load: it publishes every row
		return
	}
	before := mark.Policies
	mark.Policies = before.Then(now)
	if !slices.Equal(mark.Policies, before) && mark.Sweep != nil {
		mark.ChangeSweep(func(s *watermark.Sweep) { s.From, s.Done = nil, nil })
	}
	if mark.Policies.Mixed() {
		cfg.Log.Warn("the topic may hold rows as other policies for fields (privacy.fields) let them through, "+
			"until a sweep has published them again", zap.String("do", "storestream sweep "+cfg.Resource.Name))
	}
}

// sweptPolicies notes in mark that no row of another policy is left, if the sweep found every row of the
// topic equal to the source's, or made it so. A row that cannot be published now is left in the topic as it
// was.
func sweptPolicies(cfg *Config, mark *watermark.Watermark, total watermark.Swept) {
	if total.Left != "" || total.DeadLetters > 0 || !mark.Policies.Mixed() {
		return
	}
	if total.Early > 0 {
		name := cfg.Resource.Name
		cfg.Log.Warn("rows from before the start of the resource were not compared, and may be as other "+
			"policies for fields let them through", zap.Int("rows", total.Early),
			zap.String("do", fmt.Sprintf("take out resources.%s.start, restart, storestream sweep %s", name, name)))
		return
	}
	mark.Policies = watermark.PoliciesOf(cfg.Resource.PolicyFingerprint())
	cfg.Log.Info("no row of another policy for fields is left in the topic")
}
