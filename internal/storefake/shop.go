package storefake

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// shop is what goes on in the shop: it knows which orders wait for what.
type shop struct {
	store *Store

	mu         sync.Mutex
	processing []int64 // orders to be shipped or cancelled
	shipped    []int64 // orders to arrive
	complete   []int64 // orders that may come back
	chance     *rand.Rand
	stepping   sync.Mutex // Step makes one change at a time
}

// openShop looks through the orders, once.
func (s *Store) openShop() *shop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shop != nil {
		return s.shop
	}
	s.shop = &shop{store: s, chance: rand.New(rand.NewPCG(s.seed, streamTraffic))}
	for _, row := range s.tables[Orders].all() {
		if status := row[orderStatus]; status != null {
			s.shop.file(int64(row[0]), s.words.text(status))
		}
	}
	return s.shop
}

// file notes what an order waits for now.
func (sh *shop) file(order int64, status string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch status {
	case Processing:
		sh.processing = append(sh.processing, order)
	case Shipped:
		sh.shipped = append(sh.shipped, order)
	case Complete:
		sh.complete = append(sh.complete, order)
	}
}

// take draws an order that waits and takes it off the list; 0 if none waits.
func (sh *shop) take(chance *rand.Rand, list *[]int64) int64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	waiting := *list
	if len(waiting) == 0 {
		return 0
	}
	n, last := chance.IntN(len(waiting)), len(waiting)-1
	order := waiting[n]
	waiting[n] = waiting[last]
	*list = waiting[:last]
	return order
}

func (sh *shop) alone(ctx context.Context) error {
	sh.stepping.Lock()
	defer sh.stepping.Unlock()
	return sh.step(ctx, sh.chance, 0)
}

// deed is one kind of change: it writes into the transaction, and returns what to do once that is committed.
type deed func(ctx context.Context, tx *Tx, chance *rand.Rand) (after func(), err error)

// step makes one change. ctx ends only the pause before the commit: a transaction once begun is ended in good order.
func (sh *shop) step(ctx context.Context, chance *rand.Rand, linger float64) error {
	tx := sh.store.Begin()
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCommit)
	defer cancel()
	defer tx.Rollback(work)
	after, err := sh.choose(chance)(work, tx, chance)
	if err != nil {
		return err
	}
	if chance.Float64() < linger {
		select {
		case <-time.After(time.Duration(chance.Float64() * float64(lingerFor))):
		case <-ctx.Done():
		}
	}
	if err := tx.Commit(work); err != nil {
		return err
	}
	if after != nil {
		after()
	}
	return nil
}

func (sh *shop) choose(chance *rand.Rand) deed {
	if share := sh.store.Readings().Deletes; share > 0 && chance.Float64() < share {
		return sh.deleteRow
	}
	return pick(chance, []deed{sh.placeOrder, sh.ship, sh.deliver, sh.cancel, sh.comeBack, sh.changePrice, sh.moveHouse, sh.signUp, sh.addProduct},
		[]float64{.28, .20, .18, .04, .05, .10, .10, .03, .02})
}
