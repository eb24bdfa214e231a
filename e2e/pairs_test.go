package e2e

import (
	"math/rand/v2"
	"testing"
)

// A dimension is what may be one thing or another: its number of values. A plan is one value of each dimension.
type plan []int

type pair struct{ a, x, b, y int } // dimension a is x, dimension b is y

// allPairs makes plans such that any two values of different dimensions meet in one of them, but for those that allowed refuses: greedily, each
// plan is the best of some drawn at random, value by value, by how many pairs it brings that no plan had yet. The same seed gives the same plans.
func allPairs(sizes []int, allowed func(plan) bool, seed uint64) []plan {
	chance := rand.New(rand.NewPCG(seed, 0))
	missing := map[pair]bool{}
	for a := range sizes {
		for b := range sizes[:a] {
			for x := range sizes[a] {
				for y := range sizes[b] {
					missing[pair{b, y, a, x}] = true
				}
			}
		}
	}
	var plans []plan
	for idle := 0; len(missing) > 0 && idle < 20; {
		var best plan
		gain := 0
		for range 30 {
			p := drawPlan(sizes, missing, chance)
			if n := len(p.meets(missing)); n > gain && allowed(p) {
				best, gain = p, n
			}
		}
		if best == nil {
			idle++ // what is left is refused, or was not drawn
			continue
		}
		for _, m := range best.meets(missing) {
			delete(missing, m)
		}
		plans = append(plans, best)
	}
	return plans
}

// drawPlan begins with a pair that is missing and gives the other dimensions, in random order, the value that meets the most of what is missing.
func drawPlan(sizes []int, missing map[pair]bool, chance *rand.Rand) plan {
	p := make(plan, len(sizes))
	for i := range p {
		p[i] = -1
	}
	n := chance.IntN(len(missing))
	for m := range missing {
		if n--; n < 0 {
			p[m.a], p[m.b] = m.x, m.y
			break
		}
	}
	for _, d := range chance.Perm(len(sizes)) {
		if p[d] >= 0 {
			continue
		}
		best, most := 0, -1
		for _, v := range chance.Perm(sizes[d]) {
			p[d] = v
			if n := p.meetsWith(d, missing); n > most {
				best, most = v, n
			}
		}
		p[d] = best
	}
	return p
}

func (p plan) meetsWith(d int, missing map[pair]bool) (n int) {
	for other, v := range p {
		m := pair{min(d, other), p[min(d, other)], max(d, other), p[max(d, other)]}
		if other != d && v >= 0 && missing[m] {
			n++
		}
	}
	return n
}

func (p plan) meets(missing map[pair]bool) (found []pair) {
	for a := range p {
		for b := a + 1; b < len(p); b++ {
			if m := (pair{a, p[a], b, p[b]}); missing[m] {
				found = append(found, m)
			}
		}
	}
	return found
}

func TestPlansBringAnyTwoValuesTogether(t *testing.T) {
	sizes := []int{5, 2, 3, 4, 2}
	plans := allPairs(sizes, func(p plan) bool { return p[1] == 0 || p[4] == 0 }, 1)
	met := map[pair]bool{}
	for _, p := range plans {
		for a := range p {
			for b := a + 1; b < len(p); b++ {
				met[pair{a, p[a], b, p[b]}] = true
			}
		}
	}
	for a := range sizes {
		for b := a + 1; b < len(sizes); b++ {
			for x := range sizes[a] {
				for y := range sizes[b] {
					refused := a == 1 && b == 4 && x == 1 && y == 1
					if met[pair{a, x, b, y}] == refused {
						t.Errorf("dimension %d at %d with dimension %d at %d: met %v, refused %v", a, x, b, y, !refused, refused)
					}
				}
			}
		}
	}
	if len(plans) > 30 {
		t.Errorf("%d plans, the largest two dimensions need 20", len(plans))
	}
}
