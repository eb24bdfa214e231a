package storefake

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/storestream/storestream/internal/wait"
)

// trafficWriters are the transactions that traffic has open at once at most.
const trafficWriters = 6

// Some of traffic's transactions pause between their writes and the commit, so that commits come in another
// order than the stamps: a share of them, and for how long at most, by the machine's clock.
const (
	lingerShare = .1
	lingerFor   = 400 * time.Millisecond
)

// Shop changes rows as a shop would: traffic.
type Shop struct {
	store     *Store
	behaviour *Behaviour
	seed      uint64

	booking sync.Mutex
	opened  *orderBook // nil before the first use

	stepping sync.Mutex // Step makes one change at a time
	chance   *rand.Rand // Step's

	mu      sync.Mutex         // guards stop and stopped
	stop    context.CancelFunc // nil if no traffic runs
	stopped chan struct{}

	errors  sync.Mutex // guards the fields below
	failed  int        // transactions
	failure error      // the last of them
}

func newShop(store *Store, behaviour *Behaviour, seed uint64) *Shop {
	return &Shop{store: store, behaviour: behaviour, seed: seed,
		chance: rand.New(rand.NewPCG(seed, streamTraffic))}
}

// book is opened when traffic first asks for it.
func (sh *Shop) book() *orderBook {
	sh.booking.Lock()
	defer sh.booking.Unlock()
	if sh.opened == nil {
		sh.opened = openBook(sh.store.tables)
	}
	return sh.opened
}

// closeBook makes traffic look through the orders again.
func (sh *Shop) closeBook() {
	sh.booking.Lock()
	defer sh.booking.Unlock()
	sh.opened = nil
}

// Traffic makes so many changes a second of the machine's clock, until ctx is done; it returns when the last
// of them has ended. What PostgreSQL refuses is left out and counted (TrafficErrors), and traffic goes on.
func (sh *Shop) Traffic(ctx context.Context, perSecond float64) {
	pace := rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond/20)))
	var writers sync.WaitGroup
	for n := range uint64(trafficWriters) {
		chance := rand.New(rand.NewPCG(sh.seed, streamTraffic<<32+n))
		writers.Go(func() {
			for pace.Wait(ctx) == nil {
				if err := sh.change(ctx, chance, lingerShare); err != nil {
					sh.errors.Lock()
					sh.failed, sh.failure = sh.failed+1, err
					sh.errors.Unlock()
				}
			}
		})
	}
	writers.Wait()
}

// StartTraffic begins Traffic, or changes its rate. Zero stops it.
func (sh *Shop) StartTraffic(perSecond float64) {
	sh.Quiesce()
	if perSecond <= 0 {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	sh.stop, sh.stopped = cancel, stopped
	go func() {
		defer close(stopped)
		sh.Traffic(ctx, perSecond)
	}()
}

// Quiesce stops the traffic and returns when its last transaction has ended.
func (sh *Shop) Quiesce() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.stop == nil {
		return
	}
	sh.stop()
	<-sh.stopped
	sh.stop = nil
}

// Step makes one of traffic's changes, whole, and returns when it is committed. With the same seed and
// history, and if no other client changes rows, the n-th call makes the same change, but for its instants.
func (sh *Shop) Step(ctx context.Context) error {
	sh.stepping.Lock()
	defer sh.stepping.Unlock()
	return sh.change(ctx, sh.chance, 0)
}

// TrafficErrors is how many of traffic's transactions failed, and the last error.
func (sh *Shop) TrafficErrors() (int, error) {
	sh.errors.Lock()
	defer sh.errors.Unlock()
	return sh.failed, sh.failure
}

// change makes one change. ctx ends only the pause before the commit: a transaction that has begun ends in
// good order.
func (sh *Shop) change(ctx context.Context, chance *rand.Rand, linger float64) error {
	c := &clerk{store: sh.store, book: sh.book(), read: sh.behaviour.Readings(), chance: chance,
		tx: sh.store.Begin()}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCommit)
	defer cancel()
	defer c.tx.Rollback(work)
	if err := c.choose()(work); err != nil {
		return err
	}
	if chance.Float64() < linger {
		_ = wait.For(ctx, time.Duration(chance.Float64()*float64(lingerFor))) // it commits either way
	}
	if err := c.tx.Commit(work); err != nil {
		return err
	}
	if c.after != nil {
		c.after()
	}
	return nil
}
