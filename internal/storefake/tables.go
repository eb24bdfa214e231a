package storefake

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// mark is the comment on the tables that storefake created, and so may drop.
const mark = "made by storefake: synthetic rows, dropped and created anew when it starts"

// load makes the tables and the role, and copies the store's rows into them. The role can read them only when they are complete.
func (s *Store) load(ctx context.Context) error {
	if s.db == nil {
		return nil
	}
	if err := s.db.createTables(ctx); err != nil {
		return err
	}
	for _, res := range resources {
		if res.table == "" {
			continue
		}
		if err := s.copyRows(ctx, res); err != nil {
			return err
		}
	}
	if err := s.db.finishTables(ctx); err != nil {
		return err
	}
	if err := s.db.createReader(ctx); err != nil {
		return err
	}
	return s.db.look(ctx)
}

func (db *database) createTables(ctx context.Context) error {
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		for _, res := range resources {
			if res.table == "" {
				continue
			}
			if err := dropOwn(ctx, tx, res.table); err != nil {
				return err
			}
			var columns []string
			for _, f := range res.fields {
				columns = append(columns, f.name+" "+db.columns.ofKind(f.kind))
			}
			create := fmt.Sprintf("CREATE TABLE %s (%s)", res.table, strings.Join(columns, ", ")) // names and types from this package
			if _, err := tx.Exec(ctx, create); err != nil {
				return fmt.Errorf("create table %s: %w", res.table, err)
			}
			if _, err := tx.Exec(ctx, "COMMENT ON TABLE "+res.table+" IS '"+mark+"'"); err != nil {
				return fmt.Errorf("comment on table %s: %w", res.table, err)
			}
		}
		return nil
	})
}

// dropOwn drops a table that storefake made, and refuses to touch another's.
func dropOwn(ctx context.Context, tx pgx.Tx, table string) error {
	var exists, own bool
	err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL, coalesce(obj_description(to_regclass($1), 'pg_class') = $2, false)`,
		table, mark).Scan(&exists, &own)
	if err != nil {
		return fmt.Errorf("look for table %s: %w", table, err)
	}
	if !exists {
		return nil
	}
	if !own {
		return fmt.Errorf("table %s is there and is not storefake's: give it a database of its own, or drop the table yourself", table)
	}
	if _, err := tx.Exec(ctx, "DROP TABLE "+table); err != nil {
		return fmt.Errorf("drop table %s: %w", table, err)
	}
	return nil
}

// finishTables adds keys and indexes after the rows, which is several times faster than before them.
func (db *database) finishTables(ctx context.Context) error {
	for _, res := range resources {
		if res.table == "" {
			continue
		}
		statements := []string{"ALTER TABLE " + res.table + " ADD PRIMARY KEY (id)"}
		if !db.NoIndex {
			statements = append(statements, fmt.Sprintf("CREATE INDEX %[1]s_updated ON %[1]s (updated_at, id)", res.table))
		}
		for _, sql := range append(statements, "ANALYZE "+res.table) {
			if _, err := db.pool.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
	}
	return nil
}

// createReader makes the role that may read the two tables and nothing else, each statement within the time limit.
func (db *database) createReader(ctx context.Context) error {
	timeout := db.StatementTimeout
	if timeout == 0 {
		timeout = 60 * time.Second
	}
	statements := []string{
		`DO $$ BEGIN CREATE ROLE ` + ReaderRole + `; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
		fmt.Sprintf("ALTER ROLE %s SET statement_timeout = %d", ReaderRole, timeout.Milliseconds()),
		"ALTER ROLE " + ReaderRole + " SET default_transaction_read_only = on",
		"GRANT USAGE ON SCHEMA public TO " + ReaderRole,
		"GRANT SELECT ON orders, order_items TO " + ReaderRole,
	}
	var password string
	err := db.pool.QueryRow(ctx, `SELECT format('ALTER ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)`, ReaderRole, db.Password).Scan(&password)
	if err != nil {
		return fmt.Errorf("quote the password of %s: %w", ReaderRole, err)
	}
	for _, sql := range append(statements, password) {
		if _, err := db.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("set up role %s: %w", ReaderRole, err) // not the statement: it may hold the password
		}
	}
	return nil
}

func (s *Store) copyRows(ctx context.Context, res *resource) error {
	conn, err := s.db.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("copy %s: %w", res.table, err)
	}
	defer conn.Release()
	rows := &rowReader{store: s, table: s.tables[res.name]}
	if _, err := conn.Conn().PgConn().CopyFrom(ctx, rows, "COPY "+res.table+" FROM STDIN"); err != nil {
		return fmt.Errorf("copy %s: %w", res.table, err)
	}
	return nil
}

// rowReader is a table in COPY's text format.
type rowReader struct {
	store *Store
	table *table
	next  place
	rest  []byte
	buf   []byte
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
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
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
			r.buf = r.store.appendSQL(r.buf, f.kind, row[i]) // states and numbers: nothing that COPY would want escaped
		}
		r.buf = append(r.buf, '\n')
	}
	r.rest = r.buf
}
