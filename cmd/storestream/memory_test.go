package main

import (
	"runtime/debug"
	"testing"
)

// Whoever has set GOGC gets that, and one resource alone pays nothing for the memory of several.
func TestGarbageIsCollectedSoonerForSeveralResourcesUnlessGOGCIsSet(t *testing.T) {
	current := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	usual := current()
	undo := collectSooner(1)
	if got := current(); got != usual {
		t.Errorf("one resource: %d, expected %d", got, usual)
	}
	undo()
	undo = collectSooner(2)
	if got := current(); got != 75 {
		t.Errorf("two resources: %d, expected 75", got)
	}
	undo()
	if got := current(); got != usual {
		t.Errorf("afterwards: %d, expected %d", got, usual)
	}
	t.Setenv("GOGC", "100")
	undo = collectSooner(2)
	defer undo()
	if got := current(); got != usual {
		t.Errorf("GOGC is set: %d, expected %d", got, usual)
	}
}
