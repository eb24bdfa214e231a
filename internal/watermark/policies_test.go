package watermark

import (
	"slices"
	"testing"
)

func TestPoliciesOfTheTopicStayUntilNoRowIsLeft(t *testing.T) {
	var p Policies
	if p.Older("") || !p.Older("a") || p.Then("") != nil {
		t.Error("a topic in clear")
	}
	for _, step := range []struct {
		now  string
		want Policies
	}{
		{"", nil}, {"a", Policies{"clear", "a"}}, {"a", Policies{"clear", "a"}}, {"b", Policies{"clear", "a", "b"}},
		{"a", Policies{"clear", "b", "a"}}, {"", Policies{"b", "a", "clear"}},
	} {
		p = p.Then(step.now)
		if !slices.Equal(p, step.want) || p.Older(step.now) != (len(p) > 1) {
			t.Errorf("after %q: %q, expected %q", step.now, p, step.want)
		}
	}
	if p = PoliciesOf("a"); p.Older("a") || !p.Older("") || !slices.Equal(p.Then(""), Policies{"a", "clear"}) {
		t.Errorf("%q", p)
	}
}
