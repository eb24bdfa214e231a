package storefake

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RenamedColumn at the end of a column's name says that Store.Exec has renamed the field's column.
const RenamedColumn = "_renamed"

// mirror is the tables of PostgreSQL that hold the same rows as Tables, as their administrator sees them.
type mirror struct {
	Database
	pool     *pgxpool.Pool
	words    *dictionary
	restores atomic.Int64 // made so far
	// present are the columns that each table has now, by the resource's name. Tests alter the tables.
	present atomic.Pointer[map[string][]string]
}

// newMirror makes the tables and the role, and copies the rows into them. The role can read the tables only
// when they are complete.
func newMirror(ctx context.Context, d Database, pool *pgxpool.Pool, tables *Tables,
	clock *Clock) (*mirror, error) {
	m := &mirror{Database: d, pool: pool, words: tables.words}
	if err := d.createTables(ctx, pool); err != nil {
		return nil, err
	}
	for _, res := range mirroredResources() {
		if err := m.copyRows(ctx, res, tables); err != nil {
			return nil, err
		}
	}
	if err := d.finishTables(ctx, pool); err != nil {
		return nil, err
	}
	if err := d.createReader(ctx, pool); err != nil {
		return nil, err
	}
	if d.OwnClock {
		if err := m.createClock(ctx, clock); err != nil {
			return nil, err
		}
	}
	return m, m.look(ctx)
}

func (m *mirror) copyRows(ctx context.Context, res *resource, tables *Tables) error {
	conn, err := m.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("copy %s: %w", res.table, err)
	}
	defer conn.Release()
	rows := &rowReader{tables: tables, table: tables.byName[res.name]}
	if _, err := conn.Conn().PgConn().CopyFrom(ctx, rows, "COPY "+res.table+" FROM STDIN"); err != nil {
		return fmt.Errorf("copy %s: %w", res.table, err)
	}
	return nil
}

// look finds out which columns the tables have.
func (m *mirror) look(ctx context.Context) error {
	present := map[string][]string{}
	for _, res := range mirroredResources() {
		names, err := m.columns(ctx, res.table)
		if err != nil {
			return err
		}
		present[res.name] = names
	}
	m.present.Store(&present)
	return nil
}

// columns of a table.
func (m *mirror) columns(ctx context.Context, table string) ([]string, error) {
	const sql = `SELECT attname FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`
	rows, err := m.pool.Query(ctx, sql, table)
	if err != nil {
		return nil, fmt.Errorf("look at the columns of %s: %w", table, err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look at the columns of %s: %w", table, err)
	}
	return names, nil
}

// backup copies the tables to others whose names end in tag.
func (m *mirror) backup(ctx context.Context, tag string) error {
	var statements []string
	for _, res := range mirroredResources() {
		statements = append(statements, "DROP TABLE IF EXISTS "+res.table+tag,
			fmt.Sprintf("CREATE TABLE %[1]s%[2]s AS TABLE %[1]s", res.table, tag))
	}
	// both tables as they are at one moment
	err := pgx.BeginTxFunc(ctx, m.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		return run(ctx, tx, statements)
	})
	if err != nil {
		return fmt.Errorf("back the tables up: %w", err)
	}
	return nil
}

// restore makes the tables equal to their copies, in the columns that both have, and returns the changes,
// including those to rows that others write and that are not in memory. Others may write while it works. It
// deletes every row that it finds, even one that was committed a moment ago.
func (m *mirror) restore(ctx context.Context, tag string) (*Restored, error) {
	tx, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.rollback(ctx)
	did := newRestored()
	for _, res := range mirroredResources() {
		if err := tx.restore(ctx, res, tag, did); err != nil {
			return nil, fmt.Errorf("restore table %s: %w", res.table, err)
		}
	}
	return did, tx.commit(ctx)
}

func run(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// values are the columns that the table has now and a row's values for them, nil for null, the id first.
func (m *mirror) values(res *resource, cells []cell) (columns []string, values [][]byte) {
	present := (*m.present.Load())[res.name]
	for i, f := range res.fields {
		name := f.name
		if !slices.Contains(present, name) {
			name += RenamedColumn
		}
		if !slices.Contains(present, name) {
			continue
		}
		var value []byte
		if cells[i] != null {
			value = m.words.appendSQL([]byte{}, f.kind, cells[i])
		}
		columns, values = append(columns, name), append(values, value)
	}
	return columns, values
}

// readerDSN is the DSN for ReaderRole.
func (m *mirror) readerDSN() string {
	c := m.pool.Config().ConnConfig
	u := url.URL{Scheme: "postgres", User: url.UserPassword(ReaderRole, m.password()), Path: "/" + c.Database,
		RawQuery: "sslmode=disable"}
	if strings.HasPrefix(c.Host, "/") {
		u.RawQuery += "&host=" + url.QueryEscape(c.Host) + "&port=" + strconv.Itoa(int(c.Port))
	} else {
		u.Host = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	}
	return u.String()
}

// renameColumns renames the columns of these fields, and gives all others their name back.
func (m *mirror) renameColumns(ctx context.Context, fields []string) error {
	for _, res := range mirroredResources() {
		for _, f := range res.fields {
			from, to := f.name+RenamedColumn, f.name
			if slices.Contains(fields, res.name+"."+f.name) {
				from, to = to, from
			}
			if !slices.Contains((*m.present.Load())[res.name], from) {
				continue
			}
			err := m.exec(ctx, fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", res.table, from, to))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mirror) exec(ctx context.Context, sql string) error {
	if _, err := m.pool.Exec(ctx, sql); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return m.look(ctx)
}

func (m *mirror) begin(ctx context.Context) (*mirrorTx, error) {
	tx, err := m.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin in PostgreSQL: %w", err)
	}
	return &mirrorTx{mirror: m, tx: tx}, nil
}

// ask runs a query of one value on a connection of its own. Parameters are text.
func (m *mirror) ask(ctx context.Context, sql string, values ...[]byte) (string, error) {
	conn, err := m.pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	result := conn.Conn().PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err != nil || len(result.Rows) == 0 {
		return "", result.Err
	}
	return string(result.Rows[0][0]), nil
}

// bulkUpdate stamps a range of ids by one statement.
func (m *mirror) bulkUpdate(ctx context.Context, table string, from, to int64, at cell) error {
	sql := "UPDATE " + table + " SET updated_at = $3 WHERE id BETWEEN $1 AND $2"
	_, err := m.ask(ctx, sql, strconv.AppendInt(nil, from, 10), strconv.AppendInt(nil, to, 10),
		m.words.appendSQL(nil, instant, at))
	if err != nil {
		return fmt.Errorf("bulk update of %s: %w", table, err)
	}
	return nil
}

// rowReader is a table in COPY's text format.
type rowReader struct {
	tables *Tables
	table  *table
	next   place
	rest   []byte
	buf    []byte
}

func (r *rowReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.fill()
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill writes the next block of rows.
func (r *rowReader) fill() {
	r.tables.mu.Lock()
	defer r.tables.mu.Unlock()
	r.buf = r.buf[:0]
	for end := min(r.next+blockRows, r.table.size); r.next < end; r.next++ {
		row := r.table.at(r.next)
		if row[0] == null {
			continue
		}
		for i, f := range r.table.res.fields {
			if i > 0 {
				r.buf = append(r.buf, '\t')
			}
			if row[i] == null {
				r.buf = append(r.buf, `\N`...)
				continue
			}
			// States and numbers: COPY needs no escapes for them.
			r.buf = r.tables.words.appendSQL(r.buf, f.kind, row[i])
		}
		r.buf = append(r.buf, '\n')
	}
	r.rest = r.buf
}
