package instance

import (
	"sync"
	"time"

	"github.com/storestream/storestream/internal/wait"
)

// shift is the work that the instance waits for before it leaves. The group may hand a resource over in the
// very moment in which the instance stops: that work either counts as begun, and is waited for, or
// is not begun.
type shift struct {
	stop chan struct{} // closed when work in hand is to be finished

	mu      sync.Mutex // orders the beginning of work and the stop
	working sync.WaitGroup
}

func newShift() *shift { return &shift{stop: make(chan struct{})} }

// work does f, unless the shift has ended.
func (s *shift) work(f func()) {
	if s.begin() {
		defer s.working.Done()
		f()
	}
}

func (s *shift) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait.Over(s.stop) {
		return false
	}
	s.working.Add(1)
	return true
}

// end asks for the end of all work, and says whether it came within limit. Call it once.
func (s *shift) end(limit time.Duration) bool {
	s.mu.Lock()
	close(s.stop)
	s.mu.Unlock()
	all := make(chan struct{})
	go func() {
		defer close(all)
		s.working.Wait()
	}()
	select {
	case <-all:
		return true
	case <-time.After(limit):
		return false
	}
}
