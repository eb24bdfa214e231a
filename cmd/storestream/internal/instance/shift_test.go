package instance

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAResourceThatFallsToAnInstanceWhileItStopsIsWaitedForOrNotBegun(t *testing.T) {
	for range 100 {
		s := newShift()
		var late sync.WaitGroup
		var working atomic.Int64
		for range 4 {
			late.Go(func() {
				s.work(func() {
					working.Add(1)
					working.Add(-1)
				})
			})
		}
		if !s.end(time.Minute) {
			t.Fatal("work that ended is still waited for")
		}
		if working.Load() != 0 {
			t.Fatal("the instance leaves while an owner is at work")
		}
		late.Wait()
		s.work(func() { t.Error("work begins after the end") })
	}
}

func TestTheEndOfAShiftIsNotWaitedForLongerThanItMayTake(t *testing.T) {
	s := newShift()
	begun, finish := make(chan struct{}), make(chan struct{})
	defer close(finish)
	go s.work(func() {
		close(begun)
		<-finish
	})
	<-begun
	if s.end(time.Millisecond) {
		t.Error("it is said to have ended while somebody is at work")
	}
}
