package storefake

import (
	"context"
	"fmt"
)

// locks are the rows that transactions hold, as a database's are: without them two transactions could commit a row in one order to PostgreSQL
// and in the other to memory. The Store's mutex guards them.
type locks struct {
	rows map[rowKey]chan struct{} // closed when the row is let go of
	bulk *bulk                    // nil: none
}

// bulk is a statement that changes, or waits to change, all rows of a range of ids.
type bulk struct {
	resource string
	from, to int64
	done     chan struct{}
}

func (b *bulk) covers(k rowKey) bool {
	return b != nil && k.resource == b.resource && b.from <= k.id && k.id <= b.to
}

// lock waits until nobody else holds the row.
func (tx *Tx) lock(ctx context.Context, k rowKey) error {
	s := tx.store
	for {
		s.mu.Lock()
		wait, busy := s.locks.rows[k]
		// A transaction that holds a row of the range already goes on: the bulk statement is waiting for it.
		if b := s.locks.bulk; !busy && b.covers(k) && !tx.holdsIn(b) {
			wait, busy = b.done, true
		}
		if !busy {
			s.locks.rows[k] = make(chan struct{})
			tx.held[k] = true
		}
		s.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("waiting for another transaction to let go of %s %d: %w", k.resource, k.id, context.Cause(ctx))
		}
	}
}

func (tx *Tx) holdsIn(b *bulk) bool {
	for k := range tx.held {
		if b.covers(k) {
			return true
		}
	}
	return false
}

func (tx *Tx) release() {
	s := tx.store
	tx.ended = true
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range tx.held {
		close(s.locks.rows[k])
		delete(s.locks.rows, k)
	}
}

// locked says whether some transaction holds the row.
func (s *Store) locked(k rowKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, busy := s.locks.rows[k]
	return busy || s.locks.bulk.covers(k)
}

// lockRange waits until no transaction holds a row of the range, and keeps others from taking one until release is called.
func (s *Store) lockRange(ctx context.Context, b *bulk) (release func(), err error) {
	announced := false
	release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.locks.bulk = nil
		close(b.done)
	}
	for {
		wait := s.blocking(b, &announced)
		if wait == nil {
			return release, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			if announced {
				release()
			}
			return nil, fmt.Errorf("waiting for transactions on %s: %w", b.resource, context.Cause(ctx))
		}
	}
}

// blocking is something that b must wait for, nil if nothing. It announces b as soon as no other bulk statement runs.
func (s *Store) blocking(b *bulk, announced *bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.locks.bulk; other != nil && other != b {
		return other.done
	}
	s.locks.bulk, *announced = b, true
	for k, held := range s.locks.rows {
		if b.covers(k) {
			return held
		}
	}
	return nil
}
