package main

import (
	"bytes"
	"testing"
	"time"
)

func planText(t terms) string {
	var text bytes.Buffer
	p := newPlan(t)
	p.write(&text)
	return text.String()
}

func TestASeedDecidesThePlanAndAnotherSeedAnotherPlan(t *testing.T) {
	for seed := range uint64(50) {
		terms := terms{seed: seed + 1, length: 10 * time.Minute, broker: apacheKafka}
		first := planText(terms)
		if again := planText(terms); again != first {
			t.Fatalf("seed %d made two plans:\n%s\n%s", terms.seed, first, again)
		}
		terms.seed += 1000
		if planText(terms) == first {
			t.Errorf("seeds %d and %d make the same plan", seed+1, terms.seed)
		}
	}
}

func TestPlansKeepToWhatTheyMayAskFor(t *testing.T) {
	met := map[*kind]bool{}
	for seed := range uint64(300) {
		p := newPlan(terms{seed: seed + 1, length: 10 * time.Minute,
			broker: []string{apacheKafka, embedded}[seed%2]})
		if err := p.service.readings.Check(); err != nil {
			t.Errorf("seed %d: %v", seed+1, err)
		}
		for i, e := range p.events {
			met[e.kind] = true
			if answers := p.service.readings; e.readings != nil {
				if e.readings(&answers); answers.Check() != nil {
					t.Errorf("seed %d: %s: %v", seed+1, e, answers.Check())
				}
			}
			if !e.kind.fits(&p) {
				t.Errorf("seed %d: %s cannot be on this stage", seed+1, e)
			}
			for _, other := range p.events[:i] {
				if together(e, other) && e.kind.hits != nothing && (e.kind.hits == other.kind.hits ||
					bothInstances(e, other)) {
					t.Errorf("seed %d: %s at %s and %s at %s hit the same", seed+1, e, e.at, other, other.at)
				}
			}
		}
		if o := p.polling; p.service.speed > 1 &&
			time.Duration(float64(o.restHold)*p.service.speed)*2 > o.restOverlap {
			t.Errorf("seed %d: transactions stay open for %s of the service's clock, the overlap is %s", seed+1,
				time.Duration(float64(o.restHold)*p.service.speed), o.restOverlap)
		}
	}
	for _, k := range kinds() {
		if !met[k] {
			t.Errorf("%s never happens", k.name)
		}
	}
}

func together(a, b event) bool { return a.at < b.at+b.length && b.at < a.at+a.length }

func bothInstances(a, b event) bool {
	return (a.kind.hits == oneInstance || a.kind.hits == everyInstance) &&
		(b.kind.hits == oneInstance || b.kind.hits == everyInstance)
}

// The service's clock must not overtake ours: no day would be closed.
func TestAClockThatRunsFastStaysBehindOurs(t *testing.T) {
	for seed := range uint64(100) {
		p := newPlan(terms{seed: seed + 1, length: time.Hour, broker: apacheKafka, source: fromREST})
		if end := time.Duration(float64(p.length+25*time.Minute) * (p.service.speed - 1)); end >= p.service.behind {
			t.Errorf("seed %d: %s behind at the start, and %s made up by the end", seed+1, p.service.behind, end)
		}
	}
}
