package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// chunkDeadline limits a transaction that reads rows, including the wait for a connection. The service
	// cancels a statement after 60 s, so an answer that has not come by then never will. A half-open connection
	// answers nothing for hours.
	chunkDeadline = 75 * time.Second
	// catalogueDeadline limits a transaction with a small query.
	catalogueDeadline = 20 * time.Second
	// maxAnswer limits the rows of a small query. A table of PostgreSQL has at most 1,600 columns.
	maxAnswer = 1600
)

var (
	errShort  = errors.New("the server answered fewer statements than it was sent")
	errSilent = errors.New("no answer")
)

// transaction is one short read of the database, sent in one round trip: the settings, the clock, and one
// query. It holds a connection until close.
type transaction struct {
	clock *clock               // of its snapshot
	rows  *pgconn.ResultReader // of the query, as they come off the connection

	ctx     context.Context //nolint:containedctx // it ends with the transaction
	cancel  context.CancelFunc
	conn    *pgxpool.Conn
	results *pgconn.MultiResultReader
}

// begin starts a transaction with the query q and reads its clock. t is the table that the clock checks, or
// nil.
//
// If q asks for it, the transaction locks the table before it takes the snapshot. A TRUNCATE, an ALTER TABLE
// that rewrites the table, or another table that takes its name puts in other rows without a trace of the
// old ones, and locks readers out until it commits. A query with a snapshot would wait for that commit, and
// then read a table in which its snapshot shows nothing. A LOCK waits before there is a snapshot.
func (db *DB) begin(ctx context.Context, limit time.Duration, t *table, q *statement) (*transaction, error) {
	tx := &transaction{}
	tx.ctx, tx.cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w in %v", errSilent, limit))
	var err error
	if tx.conn, err = db.pool.Acquire(tx.ctx); err != nil {
		err = tx.late(err)
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
	clock, name := clockAloneSQL, []byte(nil)
	if t != nil {
		name = []byte(t.plainName)
		if t.identified {
			clock = clockTimelineSQL
		}
	}
	parameters := [][]byte{name, db.searchPath}
	batch.ExecParams(clock, parameters, []uint32{oidText, oidText}, binaryFormat, binaryFormat)
	batch.ExecParams(q.sql, q.values, q.oids, binaryFormat, binaryFormat)
	for _, sql := range endTransaction {
		batch.ExecParams(sql, nil, nil, nil, nil)
	}
	asked := time.Now()
	tx.results = tx.conn.Conn().PgConn().ExecBatch(tx.ctx, &batch)
	err = tx.skip(len(before) + 1)
	if err == nil {
		tx.clock, err = readClock(tx.results.ResultReader())
	}
	if err == nil {
		err = tx.skip(1)
	}
	if err != nil {
		return nil, tx.close(err)
	}
	tx.rows = tx.results.ResultReader()
	tx.clock.asked, tx.clock.answered = asked, time.Now()
	return tx, nil
}

// skip goes to the result of the nth next statement.
func (tx *transaction) skip(n int) error {
	for range n {
		if !tx.results.NextResult() {
			return errShort
		}
	}
	return nil
}

// close ends the transaction and frees its connection. It returns the error of the transaction, which is err
// if the server has reported none. The rows that came are all rows only if close returns nil.
func (tx *transaction) close(err error) error {
	defer tx.cancel()
	defer tx.conn.Release()
	if err == nil {
		_, err = tx.rows.Close()
	}
	if err == nil {
		err = tx.skip(len(endTransaction))
	}
	if closed := tx.results.Close(); closed != nil {
		err = closed // err may only say that an answer was missing
	}
	err = tx.late(err)
	if conn := tx.conn.Conn().PgConn(); !conn.IsClosed() && conn.TxStatus() != 'I' {
		// The transaction failed before COMMIT. A pooler that gets the connection back like that has to close its
		// own connection to the server.
		_ = conn.Exec(tx.ctx, "ROLLBACK").Close()
	}
	return err
}

// late adds to err that the transaction ran into its deadline, if it did.
func (tx *transaction) late(err error) error {
	if cause := context.Cause(tx.ctx); err != nil && errors.Is(cause, errSilent) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// answer reads the rows of a small query and ends the transaction.
func (tx *transaction) answer() (*pgconn.Result, error) {
	result := &pgconn.Result{FieldDescriptions: slices.Clone(tx.rows.FieldDescriptions())}
	length := 0
	for tx.rows.NextRow() {
		var row [][]byte
		for _, value := range tx.rows.Values() {
			row = append(row, bytes.Clone(value)) // the connection reuses value
			length += len(value)
		}
		if result.Rows = append(result.Rows, row); len(result.Rows) > maxAnswer || length > maxMessage {
			return nil, tx.close(fmt.Errorf("the server answered a small query with %d rows of %d bytes, and went on",
				len(result.Rows), length))
		}
	}
	return result, tx.close(nil)
}

// ask runs a small query.
func (db *DB) ask(ctx context.Context, limit time.Duration, q *statement) (*clock, *pgconn.Result, error) {
	tx, err := db.begin(ctx, limit, nil, q)
	if err != nil {
		return nil, nil, err
	}
	result, err := tx.answer()
	return tx.clock, result, err
}

// binaryFormat is the format of all parameters, and of all columns of a result.
var binaryFormat = []int16{1}
