package storefake

import (
	"cmp"
	"context"
	"fmt"
	"sync"
)

// locks are the rows that transactions hold, as in a database. Without them two transactions could commit a
// row in one order to PostgreSQL and in the other to memory.
type locks struct {
	mu   sync.Mutex
	rows map[rowKey]chan struct{} // closed when the row is let go of
	bulk *bulk                    // may be nil
}

// everyResource makes a bulk statement's range one of all resources.
const everyResource = ""

// bulk is a statement that changes, or waits to change, all rows of a range of ids.
type bulk struct {
	resource string // or everyResource
	from, to int64
	done     chan struct{}
}

func (b *bulk) covers(k rowKey) bool {
	return b != nil && (b.resource == everyResource || k.resource == b.resource) &&
		b.from <= k.id && k.id <= b.to
}

// take waits until no other transaction holds the row, and adds it to held, the rows of one transaction.
func (l *locks) take(ctx context.Context, k rowKey, held map[rowKey]bool) error {
	for {
		wait := l.try(k, held)
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("waiting for another transaction to let go of %s %d: %w", k.resource, k.id,
				context.Cause(ctx))
		}
	}
}

// try takes the row, or returns a channel to wait on.
func (l *locks) try(k rowKey, held map[rowKey]bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait, busy := l.rows[k]; busy {
		return wait
	}
	// A transaction that already holds a row of the range goes on: the bulk statement is waiting for it.
	if l.bulk.covers(k) && !l.bulk.coversAny(held) {
		return l.bulk.done
	}
	l.rows[k] = make(chan struct{})
	held[k] = true
	return nil
}

func (b *bulk) coversAny(held map[rowKey]bool) bool {
	for k := range held {
		if b.covers(k) {
			return true
		}
	}
	return false
}

// release lets go of the rows of a transaction.
func (l *locks) release(held map[rowKey]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range held {
		close(l.rows[k])
		delete(l.rows, k)
	}
}

// taken says whether a transaction or a bulk statement holds the row.
func (l *locks) taken(k rowKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, busy := l.rows[k]
	return busy || l.bulk.covers(k)
}

// takeRange waits until no transaction holds a row of the range, and keeps others from taking one until
// release is called.
func (l *locks) takeRange(ctx context.Context, resource string, from, to int64) (release func(), err error) {
	b := &bulk{resource: resource, from: from, to: to, done: make(chan struct{})}
	announced := false
	release = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.bulk = nil
		close(b.done)
	}
	for {
		wait := l.blocking(b, &announced)
		if wait == nil {
			return release, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			if announced {
				release()
			}
			return nil, fmt.Errorf("waiting for transactions on %s: %w", cmp.Or(resource, "all tables"),
				context.Cause(ctx))
		}
	}
}

// blocking is something that b must wait for, nil if nothing. It announces b as soon as no other bulk
// statement runs.
func (l *locks) blocking(b *bulk, announced *bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.bulk; other != nil && other != b {
		return other.done
	}
	l.bulk, *announced = b, true
	for k, held := range l.rows {
		if b.covers(k) {
			return held
		}
	}
	return nil
}
