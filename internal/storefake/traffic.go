package storefake

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// trafficWriters are the transactions that traffic has open at once at most.
const trafficWriters = 6

// Some of traffic's transactions take their time between their writes and the commit, so that commits come in another order than the
// stamps: a share of them, and for how long at most, by the machine's clock.
const (
	lingerShare = .1
	lingerFor   = 400 * time.Millisecond
)

// traffic is what StartTraffic started.
type traffic struct {
	mu   sync.Mutex
	stop context.CancelFunc
	done chan struct{}
}

// Traffic changes rows as a shop would, at so many transactions a second of the machine's clock, until ctx is done; it returns when the last
// of them has ended. What PostgreSQL refuses is left out and counted (TrafficErrors), and traffic goes on.
func (s *Store) Traffic(ctx context.Context, perSecond float64) {
	shop := s.openShop()
	pace := rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond/20)))
	var writers sync.WaitGroup
	for n := range uint64(trafficWriters) {
		chance := rand.New(rand.NewPCG(s.seed, streamTraffic<<32+n))
		writers.Go(func() {
			for pace.Wait(ctx) == nil {
				s.noteError(shop.step(ctx, chance, lingerShare))
			}
		})
	}
	writers.Wait()
}

// StartTraffic begins Traffic, or changes its rate; 0 stops it.
func (s *Store) StartTraffic(perSecond float64) {
	s.Quiesce()
	if perSecond <= 0 {
		return
	}
	s.traffic.mu.Lock()
	defer s.traffic.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.traffic.stop, s.traffic.done = cancel, done
	go func() {
		defer close(done)
		s.Traffic(ctx, perSecond)
	}()
}

// Quiesce stops what StartTraffic started and returns when no transaction of it is open.
func (s *Store) Quiesce() {
	s.traffic.mu.Lock()
	defer s.traffic.mu.Unlock()
	if s.traffic.stop == nil {
		return
	}
	s.traffic.stop()
	<-s.traffic.done
	s.traffic.stop = nil
}

// Step makes one of traffic's changes, whole, and returns when it is committed. With the same seed, the same history and nobody else
// changing rows, the n-th call makes the same change, but for its instants.
func (s *Store) Step(ctx context.Context) error {
	return s.openShop().alone(ctx)
}

// TrafficErrors is how many of traffic's transactions failed, and the last error.
func (s *Store) TrafficErrors() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed, s.failure
}

func (s *Store) noteError(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.failure = s.failed+1, err
}
