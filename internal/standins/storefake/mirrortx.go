package storefake

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// exec sends parameters as text and lets the server choose their types, because the columns' types are
// configured.
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

// restore brings a table back to its copy, and notes the effect on the rows in did.
func (tx *mirrorTx) restore(ctx context.Context, res *resource, tag string, did *Restored) error {
	now, err := tx.mirror.columns(ctx, res.table)
	if err != nil {
		return err
	}
	then, err := tx.mirror.columns(ctx, res.table+tag)
	if err != nil {
		return err
	}
	both := slices.DeleteFunc(then, func(c string) bool { return !slices.Contains(now, c) })
	list := strings.Join(both, ", ")
	rows, err := tx.tx.Query(ctx, fmt.Sprintf(`WITH now AS (DELETE FROM %[1]s RETURNING %[2]s)
SELECT "then".id, "then".updated_at, now.id FROM %[1]s%[3]s "then" FULL JOIN now USING (id)
WHERE ("then".%[4]s) IS DISTINCT FROM (now.%[5]s)`, res.table, list, tag, strings.Join(both, `, "then".`),
		strings.Join(both, ", now.")))
	if err != nil {
		return err
	}
	var back, gone *int64
	var at *time.Time
	_, err = pgx.ForEachRow(rows, []any{&back, &at, &gone}, func() error {
		switch {
		case back == nil:
			did.Gone[res.name] = append(did.Gone[res.name], *gone)
		case at == nil:
			did.back(res.name, *back, time.Time{})
		default:
			did.back(res.name, *back, *at)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = tx.tx.Exec(ctx, fmt.Sprintf("INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM %[1]s%[3]s", res.table,
		list, tag))
	if err != nil {
		return err
	}
	// A backup may be restored twice, so the content of the table would prove nothing.
	note := fmt.Sprintf("restored %d", tx.mirror.restores.Add(1))
	tx.last = proof{"SELECT obj_description($1::text::regclass) = $2",
		[][]byte{[]byte(res.table + tag), []byte(note)}}
	_, err = tx.tx.Exec(ctx, fmt.Sprintf("COMMENT ON TABLE %s%s IS '%s'", res.table, tag, note))
	return err
}

// maxCommit bounds the wait for a database that broke off while committing.
const maxCommit = time.Minute

// commit returns nil when the transaction has committed, even if the connection broke meanwhile. It ignores
// ctx's cancellation, because otherwise memory and database might differ.
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

// outcome asks for the outcome of a transaction, again and again while the database is away.
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
