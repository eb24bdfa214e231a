package watermark

import (
	"cmp"
	"slices"
)

// clearly stands for no policy at all, whose fingerprint is "".
const clearly = "clear"

// unknown stands for the policies in a watermark that was lost.
const unknown = "unknown"

// Policies are the fingerprints of the policies for fields under which rows of the data topic may have been
// published. A fingerprint is schemas.Resource.PolicyFingerprint, "clear" for no policy, or "unknown". The
// last one is in force. Nil means that every row is in clear.
//
// A change of policy leaves the topic as it is. So a fingerprint stays until a sweep has shown that no row is
// left which was published under it.
type Policies []string

// PoliciesOf returns the Policies of a topic whose rows were all published under this one.
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

// Then returns p with this one in force.
func (p Policies) Then(fingerprint string) Policies {
	older := slices.DeleteFunc(slices.Clone(p.all()),
		func(one string) bool { return one == cmp.Or(fingerprint, clearly) })
	if len(older) == 0 {
		return PoliciesOf(fingerprint)
	}
	return append(older, cmp.Or(fingerprint, clearly))
}

// Older reports whether there may be rows that were published under another one.
func (p Policies) Older(fingerprint string) bool {
	return slices.ContainsFunc(p.all(), func(one string) bool { return one != cmp.Or(fingerprint, clearly) })
}

// Mixed reports whether rows may have been published under more than one.
func (p Policies) Mixed() bool { return len(p) > 1 }
