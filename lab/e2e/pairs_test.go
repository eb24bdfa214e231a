package e2e

import (
	"math/rand/v2"
	"testing"
)

// A dimension is given by the number of its values. A plan has one value of each dimension.
type plan []int

type pair struct{ a, x, b, y int } // dimension a is x, dimension b is y

// allPairs makes plans such that any two values of different dimensions meet in one of them, but for those
// that allowed refuses (it is asked about plans that are not complete too: -1 is open): greedily, each plan
// is the best of some drawn at random, value by value, by how many pairs it brings that no plan had yet. The
// same seed gives the same plans.
func allPairs(sizes []int, allowed func(plan) bool, seed uint64) []plan {
	chance := rand.New(rand.NewPCG(seed, 0))
	var order []pair
	missing := map[pair]bool{}
	for b := range sizes {
		for a := range b {
			for y := range sizes[b] {
				for x := range sizes[a] {
					p := open(sizes)
					p[a], p[b] = x, y
					if m := (pair{a, x, b, y}); allowed(p) {
						order, missing[m] = append(order, m), true
					}
				}
			}
		}
	}
	var plans []plan
	for len(missing) > 0 {
		var best plan
		gain := -1
		for range 30 {
			first := order[chance.IntN(len(order))]
			for !missing[first] {
				first = order[chance.IntN(len(order))]
			}
			p := drawPlan(sizes, first, missing, allowed, chance)
			if n := len(p.meets(missing)); n > gain {
				best, gain = p, n
			}
		}
		for _, m := range best.meets(missing) {
			delete(missing, m)
		}
		plans = append(plans, best)
	}
	return plans
}

func open(sizes []int) plan {
	p := make(plan, len(sizes))
	for i := range p {
		p[i] = -1
	}
	return p
}

// drawPlan begins with a pair and gives the other dimensions, in random order, the allowed value that meets
// the most of what is missing.
func drawPlan(sizes []int, first pair, missing map[pair]bool, allowed func(plan) bool,
	chance *rand.Rand) plan {
	p := open(sizes)
	p[first.a], p[first.b] = first.x, first.y
	for _, d := range chance.Perm(len(sizes)) {
		if p[d] >= 0 {
			continue
		}
		best, most := 0, -1
		for _, v := range chance.Perm(sizes[d]) {
			p[d] = v
			if n := p.meetsWith(d, missing); n > most && allowed(p) {
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
	plans := allPairs(sizes, func(p plan) bool { return p[1] != 1 || p[4] != 1 }, 1)
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
					if got := met[pair{a, x, b, y}]; got == refused {
						t.Errorf("dimension %d at %d with dimension %d at %d: met %v, refused %v", a, x, b, y, got, refused)
					}
				}
			}
		}
	}
	if len(plans) > 30 {
		t.Errorf("%d plans, the largest two dimensions need 20", len(plans))
	}
}
