package watermark

import (
	"cmp"
	"slices"
)

// clearly stands for no policy at all, whose fingerprint is "".
const clearly = "clear"

// unknown stands for whatever policies were noted in a watermark that was lost.
const unknown = "unknown"

// Policies are fingerprints (schemas.Resource.PolicyFingerprint, "clear" for none, "unknown" where nobody
// knows): by which policies for fields rows of the data topic may have been published. The last one is in
// force. nil: every row is in clear.
//
// A change of policy leaves the topic as it is. So a fingerprint stays until a sweep has shown that no row is
// left which was published under it.
type Policies []string

// PoliciesOf says that every row was published under this one.
func PoliciesOf(fingerprint string) Policies {
	if fingerprint == "" {
		return nil
	}
	return Policies{fingerprint}
}

// LostPolicies are those of a topic that holds rows, and whose watermark was lost.
func LostPolicies() Policies { return Policies{unknown} }

func (p Policies) all() []string {
	if len(p) == 0 {
		return []string{clearly}
	}
	return p
}

// InForce says whether rows were published under this one last.
func (p Policies) InForce(fingerprint string) bool {
	all := p.all()
	return all[len(all)-1] == cmp.Or(fingerprint, clearly)
}

// Then is p once this one is in force.
func (p Policies) Then(fingerprint string) Policies {
	older := slices.DeleteFunc(slices.Clone(p.all()),
		func(one string) bool { return one == cmp.Or(fingerprint, clearly) })
	if len(older) == 0 {
		return PoliciesOf(fingerprint)
	}
	return append(older, cmp.Or(fingerprint, clearly))
}

// Older says whether rows may be there that were published under another one.
func (p Policies) Older(fingerprint string) bool {
	return slices.ContainsFunc(p.all(), func(one string) bool { return one != cmp.Or(fingerprint, clearly) })
}

// Mixed says whether rows may have been published under more than one.
func (p Policies) Mixed() bool { return len(p) > 1 }
