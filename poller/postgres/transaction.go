package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// statement is one query with typed parameters in binary format.
type statement struct {
	sql    string
	values [][]byte
	oids   []uint32
}

func (s *statement) param(oid uint32, value []byte) {
	s.oids, s.values = append(s.oids, oid), append(s.values, value)
}

var binaryFormat = []int16{1}

// snapshot runs q (nil: nothing) in one short transaction, in one round trip, and returns the clock of the snapshot that q was read under. take
// gets q's rows as they come off the connection. What it has taken is good only if snapshot returns nil: rows arrive before the
// error that says they are not all.
func (db *DB) snapshot(ctx context.Context, deadline time.Duration, q *statement, take func(*pgconn.ResultReader) error) (clock, error) {
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	c, err := db.transaction(ctx, q, take)
	if err != nil && ctx.Err() != nil && asked.Err() == nil {
		err = &silentError{deadline, err}
	}
	return c, err
}

// silentError: nothing was answered in time.
type silentError struct {
	within time.Duration
	err    error
}

func (e *silentError) Error() string { return fmt.Sprintf("no answer in %v: %v", e.within, e.err) }
func (e *silentError) Unwrap() error { return e.err }

func (db *DB) transaction(ctx context.Context, q *statement, take func(*pgconn.ResultReader) error) (clock, error) {
	held, err := db.pool.Acquire(ctx)
	if err != nil {
		return clock{}, err
	}
	defer held.Release()
	conn := held.Conn().PgConn()

	var batch pgconn.Batch
	batch.ExecParams("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", nil, nil, nil, nil)
	batch.ExecParams(clockSQL, nil, nil, nil, binaryFormat)
	if q != nil {
		formats := make([]int16, len(q.values))
		for i := range formats {
			formats[i] = 1
		}
		batch.ExecParams(q.sql, q.values, q.oids, formats, binaryFormat)
	}
	batch.ExecParams("COMMIT", nil, nil, nil, nil)

	results := conn.ExecBatch(ctx, &batch)
	c, err := readResults(results, q != nil, take)
	if closed := results.Close(); closed != nil {
		err = closed // what the server says comes before what we made of its silence
	}
	if !conn.IsClosed() && conn.TxStatus() != 'I' {
		// The transaction failed before COMMIT. Given back as it is, the pooler would have to close its connection to the server.
		_, _ = conn.Exec(ctx, "ROLLBACK").ReadAll()
	}
	return c, err
}

var errShort = errors.New("the server answered fewer statements than it was sent")

// readResults reads the answers of snapshot's batch in order.
func readResults(results *pgconn.MultiResultReader, query bool, take func(*pgconn.ResultReader) error) (clock, error) {
	if !results.NextResult() { // BEGIN
		return clock{}, errShort
	}
	if !results.NextResult() {
		return clock{}, errShort
	}
	row := results.ResultReader()
	if !row.NextRow() {
		_, err := row.Close()
		return clock{}, errors.Join(errShort, err)
	}
	c, err := parseClock(row.Values())
	if err != nil {
		return clock{}, err
	}
	if _, err := row.Close(); err != nil {
		return clock{}, err
	}
	if query {
		if !results.NextResult() {
			return clock{}, errShort
		}
		rows := results.ResultReader()
		err := take(rows)
		if _, closed := rows.Close(); closed != nil {
			err = closed
		}
		if err != nil {
			return clock{}, err
		}
	}
	if !results.NextResult() { // COMMIT
		return clock{}, errShort
	}
	return c, nil
}
