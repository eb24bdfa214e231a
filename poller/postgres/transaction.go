package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// deadline limits a transaction, including the wait for a connection. The service cancels a statement after
// 60 s, so an answer that has not come by then never will. A half-open connection answers nothing for hours.
const deadline = 75 * time.Second

var errShort = errors.New("the server answered fewer statements than it was sent")

// transaction is one short read of the database, sent in one round trip: the settings, the clock, and one
// query. It holds a connection until close.
type transaction struct {
	clock *clock               // of its snapshot
	rows  *pgconn.ResultReader // of the query, as they come off the connection

	cancel  context.CancelFunc
	conn    *pgxpool.Conn // nil once it has ended
	results *pgconn.MultiResultReader

	// The others are for a transaction whose rows chunkReader.next cuts into chunks.

	table *table
	begun time.Time
	limit int  // of its rows
	until *key // the place of the last row that it asks for, or nil
	more  bool // a row has come, and belongs to the next chunk
	count int  // rows so far
	end   key  // the place of the last row
}

// begin starts a transaction with the query q and reads its clock. If t is not nil, its name has to lead to
// the table that the catalogue knows. If l is not nil, the transaction has to show no less than those before
// it.
//
// If q asks for it, the transaction locks the table before it takes the snapshot. A TRUNCATE, an ALTER TABLE
// that rewrites the table, or another table that takes its name puts in other rows without a trace of the
// old ones, and locks readers out until it commits. A query with a snapshot would wait for that commit, and
// then read a table in which its snapshot shows nothing. A LOCK waits before there is a snapshot.
func (db *DB) begin(ctx context.Context, t *table, l *lineage, q *statement) (*transaction, error) {
	tx := &transaction{}
	ctx, tx.cancel = context.WithTimeout(ctx, deadline)
	var err error
	if tx.conn, err = db.pool.Acquire(ctx); err != nil {
		tx.cancel()
		return nil, err
	}
	var batch pgconn.Batch
	before := db.settings
	if q.locks {
		before = append(slices.Clip(before), "LOCK TABLE "+t.plainName+" IN ACCESS SHARE MODE")
	}
	for _, sql := range before {
		batch.ExecParams(sql, nil, nil, nil, nil)
	}
	types := tx.conn.Conn().TypeMap()
	if err = cmp.Or(clockQuery(t, db.searchPath).add(&batch, types), q.add(&batch, types)); err != nil {
		return nil, tx.close(err)
	}
	for _, sql := range endTransaction {
		batch.ExecParams(sql, nil, nil, nil, nil)
	}
	asked := time.Now()
	tx.results = tx.conn.Conn().PgConn().ExecBatch(ctx, &batch)
	for range before {
		tx.results.NextResult() // if it fails, so does scan
	}
	if tx.clock, err = readClock(tx); err != nil {
		return nil, tx.close(err)
	}
	tx.clock.asked, tx.clock.answered = asked, time.Now()
	if t != nil && (tx.clock.relation != t.oid || tx.clock.hidden != t.hidden) {
		return nil, tx.close(errChanged)
	}
	if l != nil {
		if err := l.follow(tx.clock); err != nil {
			return nil, tx.close(err)
		}
	}
	if !tx.results.NextResult() {
		return nil, tx.close(errShort)
	}
	tx.rows = tx.results.ResultReader()
	return tx, nil
}

// scan reads the next result, of one row, into dest. It does not keep further rows: they may have no end.
func (tx *transaction) scan(dest ...any) error {
	if tx.rows == nil && !tx.results.NextResult() {
		return errShort
	}
	rows := pgx.RowsFromResultReader(tx.conn.Conn().TypeMap(), tx.results.ResultReader())
	_, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (*transaction, error) {
		return tx, row.Scan(dest...)
	})
	return err
}

// close ends the transaction, if it has not ended, and frees its connection. It returns the error of the
// transaction, which is err if the server has reported none. The rows that came are all rows only if close
// returns nil.
func (tx *transaction) close(err error) error {
	if tx == nil || tx.conn == nil {
		return err
	}
	if tx.results != nil {
		err = cmp.Or(tx.results.Close(), err) // err may only say that an answer was missing
	}
	if conn := tx.conn.Conn().PgConn(); conn.TxStatus() == 'E' { // the pool would drop the connection
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		_ = conn.Exec(ctx, "ROLLBACK").Close()
		cancel()
	}
	tx.conn.Release()
	tx.conn = nil
	tx.cancel()
	return err
}

// ask runs a small query, whose answer is one row, and reads that row into dest. It returns pgx.ErrNoRows if
// there is none. t and l are those of begin.
func (db *DB) ask(ctx context.Context, t *table, l *lineage, q *statement, dest ...any) (*clock, error) {
	tx, err := db.begin(ctx, t, l, q)
	if err != nil {
		return nil, err
	}
	err = tx.scan(dest...)
	return tx.clock, tx.close(err)
}
