package storefake

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// databaseTx is a transaction's half in PostgreSQL.
type databaseTx struct {
	db   *database
	tx   pgx.Tx
	last proof
}

// proof is a query that is true when the last write of a transaction has come to stay. The transaction's number is not proof enough: a
// crash loses numbers that had left no trace on disk, and the server gives them out again.
type proof struct {
	sql    string
	values [][]byte
}

func (db *database) begin(ctx context.Context) (*databaseTx, error) {
	tx, err := db.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin in PostgreSQL: %w", err)
	}
	return &databaseTx{db: db, tx: tx}, nil
}

// appendSQL writes a value, not null, as PostgreSQL reads it from text.
func (s *Store) appendSQL(dst []byte, k kind, c cell) []byte {
	switch k {
	case integer:
		return strconv.AppendInt(dst, int64(c), 10)
	case instant:
		// With its zone: a timestamptz column must not depend on the session's, and a naive one ignores it.
		return c.time().AppendFormat(dst, "2006-01-02 15:04:05.999999+00")
	case money:
		return s.words.appendMoney(dst, c)
	default:
		return append(dst, s.words.text(c)...)
	}
}

// values are the columns that the table has now and a row's values for them, nil for null, the id first.
func (tx *Tx) values(res *resource, cells []cell) (columns []string, values [][]byte) {
	for i, f := range res.fields {
		if !tx.store.db.has(res, f.name) {
			continue
		}
		var value []byte
		if cells[i] != null {
			value = tx.store.appendSQL([]byte{}, f.kind, cells[i])
		}
		columns, values = append(columns, f.name), append(values, value)
	}
	return columns, values
}

// exec sends parameters as text, and lets the server say what they are: the columns' types are a matter of configuration.
func (tx *databaseTx) exec(ctx context.Context, sql string, values ...[]byte) error {
	result := tx.tx.Conn().PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err != nil {
		return fmt.Errorf("%s: %w", sql, result.Err)
	}
	if n := result.CommandTag.RowsAffected(); n != 1 {
		return fmt.Errorf("%s: %d rows, expected 1", sql, n)
	}
	return nil
}

func (tx *databaseTx) insert(ctx context.Context, table string, columns []string, values [][]byte) error {
	tx.last = proof{"SELECT count(*) = 1 FROM " + table + " WHERE id = $1", values[:1]}
	places := make([]string, len(columns))
	for i := range places {
		places[i] = "$" + strconv.Itoa(i+1)
	}
	return tx.exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(columns, ", "), strings.Join(places, ", ")), values...)
}

func (tx *databaseTx) update(ctx context.Context, table string, columns []string, values [][]byte) error {
	tx.last = proof{"SELECT count(*) = 1 FROM " + table + " WHERE id = $1 AND updated_at IS NOT DISTINCT FROM $2",
		[][]byte{values[0], values[len(values)-1]}}
	var sets []string
	for i, c := range columns[1:] {
		sets = append(sets, c+" = $"+strconv.Itoa(i+2))
	}
	return tx.exec(ctx, fmt.Sprintf("UPDATE %s SET %s WHERE id = $1", table, strings.Join(sets, ", ")), values...)
}

func (tx *databaseTx) delete(ctx context.Context, table string, id int64) error {
	key := strconv.AppendInt(nil, id, 10)
	tx.last = proof{"SELECT count(*) = 0 FROM " + table + " WHERE id = $1", [][]byte{key}}
	return tx.exec(ctx, "DELETE FROM "+table+" WHERE id = $1", key)
}

// maxCommit bounds the wait for a database that broke off while committing.
const maxCommit = time.Minute

// commit returns nil when the transaction has committed, whatever became of the connection meanwhile. It does not listen to ctx's
// cancellation: a commit half waited for would leave memory and database apart.
func (tx *databaseTx) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCommit)
	defer cancel()
	xid := tx.tx.Conn().PgConn().ExecParams(ctx, "SELECT txid_current()", nil, nil, nil, nil).Read()
	if xid.Err != nil {
		tx.rollback(ctx)
		return fmt.Errorf("commit in PostgreSQL: %w", xid.Err)
	}
	err := tx.tx.Commit(ctx)
	if err == nil {
		return nil
	}
	committed, unknown := tx.db.outcome(ctx, xid.Rows[0][0], tx.last)
	if unknown != nil {
		return fmt.Errorf("commit in PostgreSQL: the outcome is unknown, memory and database may differ: %w", errors.Join(err, unknown))
	}
	if !committed {
		return fmt.Errorf("commit in PostgreSQL: %w", err)
	}
	return nil
}

// outcome asks, again and again while the database is away, what became of a transaction.
func (db *database) outcome(ctx context.Context, xid []byte, last proof) (committed bool, err error) {
	const pause = 100 * time.Millisecond
	for {
		status, err := db.ask(ctx, "SELECT txid_status($1)", xid)
		if err == nil && status == "aborted" {
			return false, nil
		}
		if err == nil && status == "committed" {
			var stayed string
			if stayed, err = db.ask(ctx, last.sql, last.values...); err == nil {
				return stayed == "t", nil
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false, errors.Join(context.Cause(ctx), err)
		}
	}
}

// ask runs a query of one value on a connection of its own.
func (db *database) ask(ctx context.Context, sql string, values ...[]byte) (string, error) {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	result := conn.Conn().PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err != nil {
		return "", result.Err
	}
	return string(result.Rows[0][0]), nil
}

func (tx *databaseTx) rollback(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCommit)
	defer cancel()
	_ = tx.tx.Rollback(ctx) // if it cannot be told, the server finds out when the connection closes
}

// bulkUpdate stamps a range of ids by one statement.
func (db *database) bulkUpdate(ctx context.Context, table string, from, to int64, at []byte) error {
	sql := "UPDATE " + table + " SET updated_at = $3 WHERE id BETWEEN $1 AND $2"
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("bulk update: %w", err)
	}
	defer conn.Release()
	values := [][]byte{strconv.AppendInt(nil, from, 10), strconv.AppendInt(nil, to, 10), at}
	if result := conn.Conn().PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read(); result.Err != nil {
		return fmt.Errorf("bulk update of %s: %w", table, result.Err)
	}
	return nil
}
