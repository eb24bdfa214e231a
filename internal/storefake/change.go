package storefake

import (
	"context"
	"fmt"
	"time"
)

// Do runs f in a transaction and commits it, or takes it back if f fails.
func (s *Store) Do(ctx context.Context, f func(*Tx) error) error {
	tx := s.Begin()
	defer tx.Rollback(ctx)
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Touch sets a row's updated_at to now.
func (s *Store) Touch(ctx context.Context, resource string, id int64) error {
	return s.Update(ctx, resource, id, func(Row) {})
}

// Update changes a row, in a transaction of its own.
func (s *Store) Update(ctx context.Context, resource string, id int64, change func(Row)) error {
	return s.Do(ctx, func(tx *Tx) error { return tx.Update(ctx, resource, id, change) })
}

// Insert adds a row, in a transaction of its own.
func (s *Store) Insert(ctx context.Context, resource string, row Row) (id int64, err error) {
	err = s.Do(ctx, func(tx *Tx) error { id, err = tx.Insert(ctx, resource, row); return err })
	return id, err
}

// Delete removes a row, in a transaction of its own.
func (s *Store) Delete(ctx context.Context, resource string, id int64) error {
	return s.Do(ctx, func(tx *Tx) error { return tx.Delete(ctx, resource, id) })
}

// SetUpdatedAt makes a row's updated_at at, backwards or into the future too; the zero time makes it null.
func (s *Store) SetUpdatedAt(ctx context.Context, resource string, id int64, at time.Time) error {
	return s.Do(ctx, func(tx *Tx) error {
		row, ok, err := tx.Get(ctx, resource, id)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("set updated_at of %s %d: no such row", resource, id)
		}
		row["updated_at"] = at
		if at.IsZero() {
			row["updated_at"] = nil
		}
		return tx.write(ctx, resource, id, row)
	})
}

// BulkUpdate gives all rows with from <= id <= to the same updated_at, now, by one statement: K4. It returns that instant and the number of
// rows. Like a database's, it waits for the transactions that hold one of the rows.
func (s *Store) BulkUpdate(ctx context.Context, resource string, from, to int64) (time.Time, int, error) {
	t, err := s.table(resource)
	if err != nil {
		return time.Time{}, 0, err
	}
	release, err := s.lockRange(ctx, &bulk{resource: resource, from: from, to: to, done: make(chan struct{})})
	if err != nil {
		return time.Time{}, 0, err
	}
	defer release()
	at := s.clock.Now()
	if s.db != nil && t.res.table != "" {
		if err := s.db.bulkUpdate(ctx, t.res.table, from, to, s.appendSQL(nil, instant, cellOf(at))); err != nil {
			return at, 0, err
		}
	}
	return at, s.stampRange(t, from, to, cellOf(at)), nil
}

func (s *Store) stampRange(t *table, from, to int64, at cell) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, row := 0, make([]cell, t.res.width())
	for _, cells := range t.all() {
		if id := int64(cells[0]); id < from || id > to {
			continue
		}
		copy(row, cells)
		row[t.res.updated()] = at
		t.put(row)
		n++
	}
	return n
}
