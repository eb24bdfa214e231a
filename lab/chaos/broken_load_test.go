package main

import (
	"testing"
	"time"

	"github.com/storestream/storestream/lab/asked"
)

func by(instance string) mark { return mark{Mark: asked.Mark{Instance: instance}} }

func TestTheResultSaysHowManyLoadsWereBrokenOffInTheMiddle(t *testing.T) {
	at := func(instance, file string, block int64) mark {
		return mark{Mark: by(instance).Mark, Load: &loading{File: file, Block: block, Blocks: 300}}
	}
	for name, c := range map[string]struct {
		marks         []mark
		begun, broken int
	}{
		"none":                  {[]mark{by("a"), by("b")}, 0, 0},
		"by one owner":          {[]mark{at("a", "1", 64), at("a", "1", 192), at("a", "1", 300)}, 1, 0},
		"broken off at its end": {[]mark{at("a", "1", 64), at("a", "1", 300), by("b")}, 1, 0},
		"gone on":               {[]mark{at("a", "1", 64), at("b", "1", 128), at("c", "1", 300)}, 1, 2},
		"ended by the next":     {[]mark{at("a", "1", 192), by("b")}, 1, 1},
		"another file":          {[]mark{at("a", "1", 192), at("b", "2", 64), by("b")}, 2, 1},
		"again after a reset":   {[]mark{at("a", "1", 64), at("a", "1", 300), at("a", "1", 64)}, 2, 0},
	} {
		begun, broken := countLoads(c.marks)
		if begun != c.begun || broken != c.broken {
			t.Errorf("%s: %d, %d; expected %d, %d", name, begun, broken, c.begun, c.broken)
		}
	}
}

func TestAPlanWithLargeTablesBeginsWithABrokenLoad(t *testing.T) {
	large := 0
	for seed := range uint64(100) {
		p := newPlan(terms{seed: seed + 1, length: 5 * time.Minute, broker: embedded, source: fromDatabase})
		first := p.events[0]
		if p.service.sparse {
			large++
		}
		if p.service.sparse != (first.kind == brokenLoad && first.at == 0) {
			t.Errorf("seed %d: large tables: %v, and the first mishap is %s at %s", seed+1, p.service.sparse, first,
				first.at)
		}
	}
	if large == 0 || large == 100 {
		t.Errorf("%d of 100 plans have large tables", large)
	}
}
