package main

import (
	"sync"
	"testing"
	"time"
)

// The group may hand a resource over in the moment in which the instance is told to stop. Either it is waited for, or it is not begun.
func TestAResourceThatFallsToAnInstanceWhileItStopsIsWaitedForOrNotBegun(t *testing.T) {
	for range 100 {
		in := &instance{stop: make(chan struct{})}
		var late sync.WaitGroup
		var mu sync.Mutex
		working := 0
		for range 4 {
			late.Go(func() {
				if !in.enter() {
					return
				}
				mu.Lock()
				working++
				mu.Unlock()
				mu.Lock()
				working--
				mu.Unlock()
				in.working.Done()
			})
		}
		in.finish()
		if !in.idle(time.Minute) {
			t.Fatal("an owner that ended is still waited for")
		}
		mu.Lock()
		if working != 0 {
			t.Fatal("the instance leaves while an owner is at work")
		}
		mu.Unlock()
		late.Wait()
	}
	in := &instance{stop: make(chan struct{})}
	in.finish()
	in.own(t.Context(), "orders") // it has no owner to run: begun, it would panic
}
