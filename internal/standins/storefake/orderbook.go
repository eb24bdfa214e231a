package storefake

import (
	"math/rand/v2"
	"sync"
)

// orderBook lists orders by the step that they wait for.
type orderBook struct {
	mu         sync.Mutex
	processing []int64 // to be shipped or cancelled
	shipped    []int64 // to arrive
	complete   []int64 // may come back
}

// openBook looks through the orders.
func openBook(tables *Tables) *orderBook {
	b := &orderBook{}
	tables.each(Orders, func(_ *resource, row []cell) {
		if status := row[orderStatus]; status != null {
			b.file(int64(row[0]), tables.words.text(status))
		}
	})
	return b
}

// file enters an order by its state.
func (b *orderBook) file(order int64, status string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if list := b.list(status); list != nil {
		*list = append(*list, order)
	}
}

// take draws an order in that state and takes it out of the book. It returns 0 if there is none.
func (b *orderBook) take(chance *rand.Rand, status string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list(status)
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

// list is nil for a state that waits for nothing.
func (b *orderBook) list(status string) *[]int64 {
	switch status {
	case Processing:
		return &b.processing
	case Shipped:
		return &b.shipped
	case Complete:
		return &b.complete
	default:
		return nil
	}
}
