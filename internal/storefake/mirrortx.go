package storefake

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/wait"
)

// mirrorTx is a transaction's half in PostgreSQL.
type mirrorTx struct {
	mirror *mirror
	tx     pgx.Tx
	last   proof
}

// proof is a query that is true when the last write of a transaction has come to stay. The transaction's
// number alone proves nothing: a crash loses numbers that had left no trace on disk, and the server gives
// them out again.
type proof struct {
	sql    string
	values [][]byte
}

// exec sends parameters as text, and lets the server say what they are: the columns' types are a matter of
// configuration.
func (tx *mirrorTx) exec(ctx context.Context, sql string, values ...[]byte) error {
	result := tx.tx.Conn().PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err != nil {
		return fmt.Errorf("%s: %w", sql, result.Err)
	}
	if n := result.CommandTag.RowsAffected(); n != 1 {
		return fmt.Errorf("%s: %d rows, expected 1", sql, n)
	}
	return nil
}

func (tx *mirrorTx) insert(ctx context.Context, res *resource, cells []cell) error {
	columns, values := tx.mirror.values(res, cells)
	tx.last = proof{"SELECT count(*) = 1 FROM " + res.table + " WHERE id = $1", values[:1]}
	places := make([]string, len(columns))
	for i := range places {
		places[i] = "$" + strconv.Itoa(i+1)
	}
	sql := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", res.table, strings.Join(columns, ", "),
		strings.Join(places, ", "))
	return tx.exec(ctx, sql, values...)
}

func (tx *mirrorTx) update(ctx context.Context, res *resource, cells []cell) error {
	columns, values := tx.mirror.values(res, cells)
	tx.last = proof{
		"SELECT count(*) = 1 FROM " + res.table + " WHERE id = $1 AND updated_at IS NOT DISTINCT FROM $2",
		[][]byte{values[0], values[len(values)-1]},
	}
	var sets []string
	for i, c := range columns[1:] {
		sets = append(sets, c+" = $"+strconv.Itoa(i+2))
	}
	sql := fmt.Sprintf("UPDATE %s SET %s WHERE id = $1", res.table, strings.Join(sets, ", "))
	return tx.exec(ctx, sql, values...)
}

func (tx *mirrorTx) delete(ctx context.Context, res *resource, id int64) error {
	key := strconv.AppendInt(nil, id, 10)
	tx.last = proof{"SELECT count(*) = 0 FROM " + res.table + " WHERE id = $1", [][]byte{key}}
	return tx.exec(ctx, "DELETE FROM "+res.table+" WHERE id = $1", key)
}

// maxCommit bounds the wait for a database that broke off while committing.
const maxCommit = time.Minute

// commit returns nil when the transaction has committed, whatever became of the connection meanwhile. It does
// not listen to ctx's cancellation: a commit half waited for would leave memory and database apart.
func (tx *mirrorTx) commit(ctx context.Context) error {
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
	committed, unknown := tx.outcome(ctx, xid.Rows[0][0])
	if unknown != nil {
		return fmt.Errorf("commit in PostgreSQL: the outcome is unknown, memory and database may differ: %w",
			errors.Join(err, unknown))
	}
	if !committed {
		return fmt.Errorf("commit in PostgreSQL: %w", err)
	}
	return nil
}

// outcome asks, again and again while the database is away, what became of a transaction.
func (tx *mirrorTx) outcome(ctx context.Context, xid []byte) (committed bool, err error) {
	const pause = 100 * time.Millisecond
	for {
		status, err := tx.mirror.ask(ctx, "SELECT txid_status($1)", xid)
		if err == nil && status == "aborted" {
			return false, nil
		}
		if err == nil && status == "committed" {
			var stayed string
			if stayed, err = tx.mirror.ask(ctx, tx.last.sql, tx.last.values...); err == nil {
				return stayed == "t", nil
			}
		}
		if ended := wait.For(ctx, pause); ended != nil {
			return false, errors.Join(ended, err)
		}
	}
}

func (tx *mirrorTx) rollback(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCommit)
	defer cancel()
	_ = tx.tx.Rollback(ctx) // the server rolls back by itself when the connection closes
}
