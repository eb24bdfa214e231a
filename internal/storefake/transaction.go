package storefake

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Tx is one transaction. What it writes goes to PostgreSQL at once, as uncommitted as it is, and to memory when PostgreSQL has committed;
// the rows that it writes stay locked until then, so both see the versions of a row in the same order. Like a database's, it stamps with the
// instant at which it began: one that is held open commits rows with an updated_at long past. Not safe for concurrent use; end it by Commit
// or Rollback.
type Tx struct {
	store *Store
	// At is the service's clock when the transaction began: the updated_at of what it writes, unless the row says another.
	At time.Time

	held   map[rowKey]bool
	writes map[rowKey][]cell // nil: deleted
	order  []rowKey          // of writes, each once
	db     *databaseTx       // nil until it first writes what PostgreSQL has
	ended  bool
}

// Begin starts a transaction and reads the clock.
func (s *Store) Begin() *Tx {
	return &Tx{store: s, At: s.clock.Now(), held: map[rowKey]bool{}, writes: map[rowKey][]cell{}}
}

// Get is the row as this transaction sees it, locked from now on; false if there is none.
func (tx *Tx) Get(ctx context.Context, resource string, id int64) (Row, bool, error) {
	t, err := tx.store.table(resource)
	if err != nil {
		return nil, false, err
	}
	cells, err := tx.cells(ctx, t, id)
	if err != nil || cells == nil {
		return nil, false, err
	}
	return tx.store.words.rowOf(t.res, cells), true, nil
}

// cells locks the row and copies it; nil if there is none.
func (tx *Tx) cells(ctx context.Context, t *table, id int64) ([]cell, error) {
	k := rowKey{t.res.name, id}
	if cells, written := tx.writes[k]; written {
		return cells, nil
	}
	if !tx.held[k] {
		if err := tx.lock(ctx, k); err != nil {
			return nil, err
		}
	}
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	if p, ok := t.find(id); ok {
		return append([]cell(nil), t.at(p)...), nil
	}
	return nil, nil
}

// Update changes a row. change may set fields; updated_at becomes tx.At unless change set it itself. A row that is not there is an error.
func (tx *Tx) Update(ctx context.Context, resource string, id int64, change func(Row)) error {
	row, ok, err := tx.Get(ctx, resource, id)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("update %s %d: no such row", resource, id)
	}
	before := row["updated_at"]
	change(row)
	if row["updated_at"] == before {
		row["updated_at"] = tx.At
	}
	return tx.write(ctx, resource, id, row)
}

// write is an update that stamps nothing.
func (tx *Tx) write(ctx context.Context, resource string, id int64, row Row) error {
	cells, err := tx.pack(resource, row)
	if err != nil {
		return err
	}
	if int64(cells[0]) != id {
		return fmt.Errorf("update %s %d: an id cannot change", resource, id)
	}
	if res := tx.store.tables[resource].res; res.table != "" {
		if err := tx.sql(ctx, func(db *databaseTx) error {
			columns, values := tx.values(res, cells)
			return db.update(ctx, res.table, columns, values)
		}); err != nil {
			return err
		}
	}
	tx.note(rowKey{resource, id}, cells)
	return nil
}

// Insert adds a row and returns its id. A row without an id gets the next one, without created_at or updated_at tx.At; what else it lacks is
// null.
func (tx *Tx) Insert(ctx context.Context, resource string, row Row) (int64, error) {
	t, err := tx.store.table(resource)
	if err != nil {
		return 0, err
	}
	if row["id"] == nil {
		row["id"] = tx.store.nextID(t)
	}
	for _, stamp := range []string{"created_at", "updated_at"} {
		if _, set := row[stamp]; !set {
			row[stamp] = tx.At
		}
	}
	cells, err := tx.pack(resource, row)
	if err != nil {
		return 0, err
	}
	id := int64(cells[0])
	if old, err := tx.cells(ctx, t, id); err != nil {
		return 0, err
	} else if old != nil {
		return 0, fmt.Errorf("insert %s %d: there is such a row", resource, id)
	}
	if t.res.table != "" {
		if err := tx.sql(ctx, func(db *databaseTx) error {
			columns, values := tx.values(t.res, cells)
			return db.insert(ctx, t.res.table, columns, values)
		}); err != nil {
			return 0, err
		}
	}
	tx.note(rowKey{resource, id}, cells)
	return id, nil
}

// Delete removes a row; one that is not there is an error. Rows that belong to it stay.
func (tx *Tx) Delete(ctx context.Context, resource string, id int64) error {
	t, err := tx.store.table(resource)
	if err != nil {
		return err
	}
	if cells, err := tx.cells(ctx, t, id); err != nil {
		return err
	} else if cells == nil {
		return fmt.Errorf("delete %s %d: no such row", resource, id)
	}
	if t.res.table != "" {
		if err := tx.sql(ctx, func(db *databaseTx) error { return db.delete(ctx, t.res.table, id) }); err != nil {
			return err
		}
	}
	tx.note(rowKey{resource, id}, nil)
	return nil
}

// Commit makes the transaction's writes visible, in PostgreSQL and then over REST. If PostgreSQL breaks off while committing it waits,
// up to a minute and whatever becomes of ctx, until it can ask what became of them: memory must not differ from the database.
func (tx *Tx) Commit(ctx context.Context) error {
	if tx.ended {
		return errors.New("commit: the transaction has ended")
	}
	defer tx.release()
	if tx.db != nil {
		if err := tx.db.commit(ctx); err != nil {
			return err
		}
	}
	tx.store.apply(tx.order, tx.writes)
	return nil
}

// Rollback forgets the transaction. After Commit it does nothing, so it may be deferred.
func (tx *Tx) Rollback(ctx context.Context) {
	if tx.ended {
		return
	}
	if tx.db != nil {
		tx.db.rollback(ctx)
	}
	tx.release()
}

func (tx *Tx) note(k rowKey, cells []cell) {
	if _, again := tx.writes[k]; !again {
		tx.order = append(tx.order, k)
	}
	tx.writes[k] = cells
}

func (tx *Tx) pack(resource string, row Row) ([]cell, error) {
	t, err := tx.store.table(resource)
	if err != nil {
		return nil, err
	}
	cells, err := tx.store.words.cellsOf(t.res, row)
	if err != nil {
		return nil, err
	}
	if cells[0] == null {
		return nil, fmt.Errorf("%s: a row needs an id", resource)
	}
	tx.store.conform(t.res, cells)
	return cells, nil
}

// sql runs f in the transaction's half in PostgreSQL, where there is one.
func (tx *Tx) sql(ctx context.Context, f func(*databaseTx) error) error {
	if tx.store.db == nil {
		return nil
	}
	if tx.db == nil {
		db, err := tx.store.db.begin(ctx)
		if err != nil {
			return err
		}
		tx.db = db
	}
	return f(tx.db)
}

// apply makes a transaction's writes visible over REST, all at once.
func (s *Store) apply(order []rowKey, writes map[rowKey][]cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range order {
		t := s.tables[k.resource]
		if cells := writes[k]; cells != nil {
			t.put(cells)
		} else {
			t.remove(k.id)
		}
	}
}

func (s *Store) nextID(t *table) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.nextID++
	return t.nextID - 1
}

// conform rounds money to what the database's columns keep, so that both paths show the same row.
func (s *Store) conform(res *resource, cells []cell) {
	if s.db == nil || res.table == "" || s.db.columns.floatBits() == 0 {
		return
	}
	for i, f := range res.fields {
		if f.kind == money && cells[i] != null {
			cells[i] = s.words.toFloat(cells[i], s.db.columns.floatBits())
		}
	}
}
