package storefake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Store changes rows: in Tables, and orders and order_items in PostgreSQL too, if there is one. All methods
// may be called at once.
type Store struct {
	clock    *Clock
	tables   *Tables
	replicas *replicas // every change of tables goes through them
	mirror   *mirror   // nil if rows are in memory only
	locks    locks
	stepping sync.Mutex   // StepClock moves two clocks
	backups  atomic.Int64 // made so far
}

// newStore fills tables with history and copies orders and order_items to PostgreSQL, if there is one.
func newStore(ctx context.Context, c *Config, clock *Clock) (*Store, error) {
	s := &Store{clock: clock, tables: newTables(), locks: locks{rows: map[rowKey]chan struct{}{}}}
	s.replicas = &replicas{clock: clock, tables: s.tables, seed: c.Seed}
	pool, err := c.Database.connect(ctx)
	if err != nil {
		return nil, err
	}
	generate(s.tables, clock, c)
	if pool == nil {
		return s, nil
	}
	if s.mirror, err = newMirror(ctx, c.Database, pool, s.tables, clock); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// Begin starts a transaction and reads the clock.
func (s *Store) Begin() *Tx {
	return &Tx{store: s, At: s.clock.Now(), held: map[rowKey]bool{}, writes: map[rowKey][]cell{}}
}

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

// SetUpdatedAt sets a row's updated_at, backwards or into the future too; the zero time makes it null.
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

// BulkUpdate gives all rows with from <= id <= to the same updated_at, now, by one statement. It returns that
// instant and the number of rows. Like a database's, it waits for the transactions that hold one of the rows.
func (s *Store) BulkUpdate(ctx context.Context, resource string, from, to int64) (time.Time, int, error) {
	t, err := s.tables.table(resource)
	if err != nil {
		return time.Time{}, 0, err
	}
	release, err := s.locks.takeRange(ctx, resource, from, to)
	if err != nil {
		return time.Time{}, 0, err
	}
	defer release()
	at := s.clock.Now()
	if s.mirror != nil && t.res.table != "" {
		if err := s.mirror.bulkUpdate(ctx, t.res.table, from, to, cellOf(at)); err != nil {
			return at, 0, err
		}
	}
	n := 0
	s.replicas.make(func(ts *Tables) {
		if stamped := ts.stamp(t.res, from, to, cellOf(at)); ts == s.tables {
			n = stamped
		}
	})
	return at, n, nil
}

// StepClock moves the service's clock by d, backwards too, and with Database.OwnClock PostgreSQL's now().
// now() is never ahead of the stamps of rows.
func (s *Store) StepClock(ctx context.Context, d time.Duration) error {
	s.stepping.Lock()
	defer s.stepping.Unlock()
	if s.mirror == nil || !s.mirror.OwnClock {
		s.clock.Advance(d)
		return nil
	}
	if d > 0 {
		s.clock.Advance(d)
		return s.mirror.setClock(ctx, s.clock, 0)
	}
	if err := s.mirror.setClock(ctx, s.clock, d); err != nil {
		return err
	}
	s.clock.Advance(d)
	return nil
}

// ReaderDSN is the DSN for ReaderRole, "" without PostgreSQL.
func (s *Store) ReaderDSN() string {
	if s.mirror == nil {
		return ""
	}
	return s.mirror.readerDSN()
}

// RenameColumns renames the columns of these fields, such as "orders.status", to their name and
// RenamedColumn, and gives all others their name back: Readings.Without for PostgreSQL. Without PostgreSQL it
// does nothing, nor for a field of a resource that has no table.
func (s *Store) RenameColumns(ctx context.Context, fields []string) error {
	if s.mirror == nil {
		return nil
	}
	return s.mirror.renameColumns(ctx, fields)
}

// Exec runs one SQL statement as the administrator and then looks at the tables' columns again: for a test
// that alters them. Rows that it changes are not changed in memory. A column that it renames to its name and
// RenamedColumn is written on under that name.
func (s *Store) Exec(ctx context.Context, sql string) error {
	if s.mirror == nil {
		return errors.New("exec: this store has no PostgreSQL")
	}
	return s.mirror.exec(ctx, sql)
}
