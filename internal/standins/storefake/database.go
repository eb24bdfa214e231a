package storefake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ReaderRole is the role that the document names for reading orders and order_items directly.
const ReaderRole = "student_ro"

// Database says which PostgreSQL holds orders and order_items, and how.
type Database struct {
	// DSN names a role that may create roles and tables, in a database that storefake has to itself. If it is
	// empty, rows are only in memory.
	DSN      string
	Password string // of ReaderRole, "student" if empty
	Columns  Columns
	NoIndex  bool // none on (updated_at, id)
	// OwnClock makes now() the service's clock for ReaderRole, with its start, speed and steps
	// (Store.StepClock). All other roles keep the server's now(), and clock_timestamp() and the like stay
	// the server's for every role.
	OwnClock bool
	// StatementTimeout of ReaderRole. Zero is the document's 60 s.
	StatementTimeout time.Duration
}

// Columns are the types of the tables' columns, which the document leaves open. An empty string is the first
// of each.
type Columns struct {
	Int    string // int8, int4
	Money  string // numeric, float8, float4, text; a float loses digits, and REST shows the same loss
	Time   string // timestamptz, timestamp (UTC)
	Status string // text, varchar
}

func (c Columns) ofKind(k kind) string {
	switch k {
	case integer:
		return cmp.Or(c.Int, "int8")
	case money:
		return cmp.Or(c.Money, "numeric")
	case instant:
		return cmp.Or(c.Time, "timestamptz")
	default:
		return cmp.Or(c.Status, "text")
	}
}

// floatBits is the size of the floats that keep money, or 0 if money is exact.
func (c Columns) floatBits() int { return map[string]int{"float8": 64, "float4": 32}[c.Money] }

// Check reports every impossible setting of d, all at once.
func (d *Database) Check() error {
	errs := []error{
		known("int column", d.Columns.Int, "int8", "int8", "int4"),
		known("money column", d.Columns.Money, "numeric", "numeric", "float8", "float4", "text"),
		known("time column", d.Columns.Time, "timestamptz", "timestamptz", "timestamp"),
		known("status column", d.Columns.Status, "text", "text", "varchar"),
	}
	if d.StatementTimeout < 0 {
		errs = append(errs, fmt.Errorf("statement timeout %v: expected 0 for 60s, or more", d.StatementTimeout))
	}
	if d.DSN != "" {
		if _, err := pgxpool.ParseConfig(d.DSN); err != nil {
			errs = append(errs, fmt.Errorf("postgres DSN: expected postgres://user:password@host:port/database: %w",
				err))
		}
	}
	return errors.Join(errs...)
}

// maxWriters bounds the transactions open at once, traffic's and tests'.
const maxWriters = 24

// connect opens the database, or returns nil if there is none. It writes nothing.
func (d *Database) connect(ctx context.Context) (*pgxpool.Pool, error) {
	if d.DSN == "" {
		return nil, nil
	}
	config, err := pgxpool.ParseConfig(d.DSN)
	if err != nil {
		return nil, fmt.Errorf("postgres DSN: %w", err)
	}
	config.MaxConns = maxWriters
	// No cached statements: tests alter the tables.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach PostgreSQL: %w", err)
	}
	return pool, nil
}

func (d *Database) password() string { return cmp.Or(d.Password, "student") }

// mark is the comment on the tables that storefake created, and so may drop.
const mark = "made by storefake: synthetic rows, dropped and created anew when it starts"

// createTables drops the tables and creates empty ones.
func (d *Database) createTables(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, res := range mirroredResources() {
			if err := dropOwn(ctx, tx, res.table); err != nil {
				return err
			}
			var columns []string
			for _, f := range res.fields {
				columns = append(columns, f.name+" "+d.Columns.ofKind(f.kind))
			}
			// names and types from this package
			create := fmt.Sprintf("CREATE TABLE %s (%s)", res.table, strings.Join(columns, ", "))
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
	const sql = `SELECT to_regclass($1) IS NOT NULL,
coalesce(obj_description(to_regclass($1), 'pg_class') = $2, false)`
	err := tx.QueryRow(ctx, sql, table, mark).Scan(&exists, &own)
	if err != nil {
		return fmt.Errorf("look for table %s: %w", table, err)
	}
	if !exists {
		return nil
	}
	if !own {
		return fmt.Errorf("table %s is there and is not storefake's: give it a database of its own, "+
			"or drop the table yourself", table)
	}
	if _, err := tx.Exec(ctx, "DROP TABLE "+table); err != nil {
		return fmt.Errorf("drop table %s: %w", table, err)
	}
	return nil
}

// finishTables adds keys and indexes after the rows, which is several times faster than before them.
func (d *Database) finishTables(ctx context.Context, pool *pgxpool.Pool) error {
	for _, res := range mirroredResources() {
		statements := []string{"ALTER TABLE " + res.table + " ADD PRIMARY KEY (id)"}
		if !d.NoIndex {
			statements = append(statements, fmt.Sprintf("CREATE INDEX %[1]s_updated ON %[1]s (updated_at, id)",
				res.table))
		}
		for _, sql := range append(statements, "ANALYZE "+res.table) {
			if _, err := pool.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
	}
	return nil
}

// createReader makes the role that may read the two tables and nothing else, each statement within the time
// limit.
func (d *Database) createReader(ctx context.Context, pool *pgxpool.Pool) error {
	timeout := cmp.Or(d.StatementTimeout, 60*time.Second)
	var names []string
	for _, res := range mirroredResources() {
		names = append(names, res.table)
	}
	statements := []string{
		`DO $$ BEGIN CREATE ROLE ` + ReaderRole + `; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
		fmt.Sprintf("ALTER ROLE %s SET statement_timeout = %d", ReaderRole, timeout.Milliseconds()),
		"ALTER ROLE " + ReaderRole + " SET default_transaction_read_only = on",
		"GRANT USAGE ON SCHEMA public TO " + ReaderRole,
		"GRANT SELECT ON " + strings.Join(names, ", ") + " TO " + ReaderRole,
	}
	var password string
	const quoted = `SELECT format('ALTER ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)`
	err := pool.QueryRow(ctx, quoted, ReaderRole, d.password()).Scan(&password)
	if err != nil {
		return fmt.Errorf("quote the password of %s: %w", ReaderRole, err)
	}
	for _, sql := range append(statements, password) {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("set up role %s: %w", ReaderRole, err) // not the statement: it may hold the password
		}
	}
	return nil
}
