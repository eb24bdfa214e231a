package storefake

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Tx is one transaction. Its writes go to PostgreSQL at once, uncommitted, and to memory when PostgreSQL has
// committed. The rows that it writes stay locked until then, so both see the versions of a row in the same
// order. Like a database's, it stamps with the instant at which it began: one that is held open commits rows
// with an updated_at long past. Not safe for concurrent use; end it by Commit or Rollback.
type Tx struct {
	store *Store
	// At is the service's clock when the transaction began: the updated_at of its rows, unless a row has
	// another.
	At time.Time

	held   map[rowKey]bool
	writes map[rowKey][]cell // nil for a deleted row
	order  []rowKey          // of writes, each once
	mirror *mirrorTx         // nil until it first writes a row of PostgreSQL's
	ended  bool
}

// Get is the row as this transaction sees it, locked from now on; false if there is none.
func (tx *Tx) Get(ctx context.Context, resource string, id int64) (Row, bool, error) {
	t, err := tx.store.tables.table(resource)
	if err != nil {
		return nil, false, err
	}
	cells, err := tx.cells(ctx, t, id)
	if err != nil || cells == nil {
		return nil, false, err
	}
	return tx.store.tables.words.rowOf(t.res, cells), true, nil
}

// cells locks the row and copies it. It returns nil if there is none.
func (tx *Tx) cells(ctx context.Context, t *table, id int64) ([]cell, error) {
	k := rowKey{t.res.name, id}
	if cells, written := tx.writes[k]; written {
		return cells, nil
	}
	if !tx.held[k] {
		if err := tx.store.locks.take(ctx, k, tx.held); err != nil {
			return nil, err
		}
	}
	return tx.store.tables.cells(t, id), nil
}

// Update changes a row. change may set fields; updated_at becomes tx.At unless change set it itself. A row
// that is not there is an error.
func (tx *Tx) Update(ctx context.Context, resource string, id int64, change func(Row)) error {
	row, ok, err := tx.Get(ctx, resource, id)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("update %s %d: the row does not exist", resource, id)
	}
	before := row["updated_at"]
	change(row)
	if row["updated_at"] == before {
		row["updated_at"] = tx.At
	}
	return tx.write(ctx, resource, id, row)
}

// Alter is Update without a new updated_at: a change that the service does not announce.
func (tx *Tx) Alter(ctx context.Context, resource string, id int64, change func(Row)) error {
	row, ok, err := tx.Get(ctx, resource, id)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("alter %s %d: the row does not exist", resource, id)
	}
	change(row)
	return tx.write(ctx, resource, id, row)
}

// write is an update that stamps nothing.
func (tx *Tx) write(ctx context.Context, resource string, id int64, row Row) error {
	res, cells, err := tx.pack(resource, row)
	if err != nil {
		return err
	}
	if int64(cells[0]) != id {
		return fmt.Errorf("update %s %d: an id cannot change", resource, id)
	}
	return tx.put(ctx, res, id, cells, func(m *mirrorTx) error { return m.update(ctx, res, cells) })
}

// Insert adds a row and returns its id. A row without an id gets the next one. A missing created_at or
// updated_at is tx.At, and every other missing field is null.
func (tx *Tx) Insert(ctx context.Context, resource string, row Row) (int64, error) {
	t, err := tx.store.tables.table(resource)
	if err != nil {
		return 0, err
	}
	if row["id"] == nil {
		row["id"] = tx.store.tables.newID(resource)
	}
	for _, stamp := range []string{"created_at", "updated_at"} {
		if _, set := row[stamp]; !set {
			row[stamp] = tx.At
		}
	}
	res, cells, err := tx.pack(resource, row)
	if err != nil {
		return 0, err
	}
	id := int64(cells[0])
	if old, err := tx.cells(ctx, t, id); err != nil {
		return 0, err
	} else if old != nil {
		return 0, fmt.Errorf("insert %s %d: there is such a row", resource, id)
	}
	return id, tx.put(ctx, res, id, cells, func(m *mirrorTx) error { return m.insert(ctx, res, cells) })
}

// Delete removes a row; one that is not there is an error. Rows that belong to it stay.
func (tx *Tx) Delete(ctx context.Context, resource string, id int64) error {
	t, err := tx.store.tables.table(resource)
	if err != nil {
		return err
	}
	if cells, err := tx.cells(ctx, t, id); err != nil {
		return err
	} else if cells == nil {
		return fmt.Errorf("delete %s %d: the row does not exist", resource, id)
	}
	return tx.put(ctx, t.res, id, nil, func(m *mirrorTx) error { return m.delete(ctx, t.res, id) })
}

// Commit makes the transaction's writes visible, in PostgreSQL and then over REST. If PostgreSQL breaks off
// while it commits, Commit waits up to a minute until it can ask whether they were committed. It ignores ctx
// meanwhile, because memory must not differ from the database.
func (tx *Tx) Commit(ctx context.Context) error {
	if tx.ended {
		return errors.New("commit: the transaction has ended")
	}
	defer tx.release()
	if tx.mirror != nil {
		if err := tx.mirror.commit(ctx); err != nil {
			return err
		}
	}
	tx.store.replicas.make(func(ts *Tables) { ts.apply(tx.order, tx.writes) })
	return nil
}

// Rollback forgets the transaction. After Commit it does nothing, so it may be deferred.
func (tx *Tx) Rollback(ctx context.Context) {
	if tx.ended {
		return
	}
	if tx.mirror != nil {
		tx.mirror.rollback(ctx)
	}
	tx.release()
}

func (tx *Tx) release() {
	tx.ended = true
	tx.store.locks.release(tx.held)
}

func (tx *Tx) pack(name string, row Row) (*resource, []cell, error) {
	t, err := tx.store.tables.table(name)
	if err != nil {
		return nil, nil, err
	}
	cells, err := tx.store.tables.words.cellsOf(t.res, row)
	if err != nil {
		return nil, nil, err
	}
	if cells[0] == null {
		return nil, nil, fmt.Errorf("%s: a row needs an id", name)
	}
	if m := tx.store.mirror; m != nil {
		tx.store.tables.words.conform(t.res, cells, m.Columns.floatBits())
	}
	return t.res, cells, nil
}

// put writes a row, or deletes it if it is nil. It uses mirrored in PostgreSQL's half of the transaction, if
// there is one that has such rows.
func (tx *Tx) put(ctx context.Context, res *resource, id int64, cells []cell,
	mirrored func(*mirrorTx) error) error {
	if m := tx.store.mirror; m != nil && res.table != "" {
		var err error
		if tx.mirror == nil {
			tx.mirror, err = m.begin(ctx)
		}
		if err == nil {
			err = mirrored(tx.mirror)
		}
		if err != nil {
			return err
		}
	}
	k := rowKey{res.name, id}
	if _, again := tx.writes[k]; !again {
		tx.order = append(tx.order, k)
	}
	tx.writes[k] = cells
	return nil
}
