package storefake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ReaderRole is the role that the document names for reading orders and order_items directly.
const ReaderRole = "student_ro"

// Database says which PostgreSQL holds orders and order_items, and how.
type Database struct {
	// DSN of a role that may create roles and tables, in a database of storefake's own; empty: none, rows are in memory only.
	DSN      string
	Password string // of ReaderRole; empty: "student"
	Columns  Columns
	NoIndex  bool // none on (updated_at, id)
	// StatementTimeout of ReaderRole; 0: the document's 60 s.
	StatementTimeout time.Duration
}

// Columns are the types of the tables' columns, which the document leaves open. Empty strings: the first of each.
type Columns struct {
	Int    string // int8, int4
	Money  string // numeric, float8, float4, text; a float keeps less, and REST then shows what it kept
	Time   string // timestamptz, timestamp (UTC)
	Status string // text, varchar
}

func (c Columns) ofKind(k kind) string {
	switch k {
	case integer:
		return orElse(c.Int, "int8")
	case money:
		return orElse(c.Money, "numeric")
	case instant:
		return orElse(c.Time, "timestamptz")
	default:
		return orElse(c.Status, "text")
	}
}

// floatBits is the size of the floats that money is kept in, 0 where it is exact.
func (c Columns) floatBits() int { return map[string]int{"float8": 64, "float4": 32}[c.Money] }

// Check names everything in d that cannot be.
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
			errs = append(errs, fmt.Errorf("postgres DSN: expected postgres://user:password@host:port/database: %w", err))
		}
	}
	return errors.Join(errs...)
}

// database is PostgreSQL as its administrator sees it.
type database struct {
	Database
	columns Columns
	pool    *pgxpool.Pool
	// present are the columns that each table has now, by the resource's name.
	present atomic.Pointer[map[string][]string]
}

// maxWriters bounds the transactions open at once, traffic's and tests'.
const maxWriters = 24

// connect opens the database, if there is one. Nothing is written yet.
func (s *Store) connect(ctx context.Context, d Database) error {
	if d.DSN == "" {
		return nil
	}
	config, err := pgxpool.ParseConfig(d.DSN)
	if err != nil {
		return fmt.Errorf("postgres DSN: %w", err)
	}
	config.MaxConns = maxWriters
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // no cached statements: tests alter the tables
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("open PostgreSQL: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return fmt.Errorf("reach PostgreSQL: %w", err)
	}
	d.Password = orElse(d.Password, "student")
	s.db = &database{Database: d, columns: d.Columns, pool: pool}
	return nil
}

// ReaderDSN is where ReaderRole reads, "" without PostgreSQL.
func (s *Store) ReaderDSN() string {
	if s.db == nil {
		return ""
	}
	c := s.db.pool.Config().ConnConfig
	u := url.URL{Scheme: "postgres", User: url.UserPassword(ReaderRole, s.db.Password), Path: "/" + c.Database, RawQuery: "sslmode=disable"}
	if strings.HasPrefix(c.Host, "/") {
		u.RawQuery += "&host=" + url.QueryEscape(c.Host) + "&port=" + strconv.Itoa(int(c.Port))
	} else {
		u.Host = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	}
	return u.String()
}

// Exec runs one SQL statement as the administrator and then looks at the tables' columns again: for a test that alters them. Rows that it
// changes are not changed in memory.
func (s *Store) Exec(ctx context.Context, sql string) error {
	if s.db == nil {
		return errors.New("exec: this store has no PostgreSQL")
	}
	if _, err := s.db.pool.Exec(ctx, sql); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return s.db.look(ctx)
}

// look notes which columns the tables have.
func (db *database) look(ctx context.Context) error {
	present := map[string][]string{}
	for _, res := range resources {
		if res.table == "" {
			continue
		}
		rows, err := db.pool.Query(ctx, `SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`, res.table)
		if err != nil {
			return fmt.Errorf("look at the columns of %s: %w", res.table, err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("look at the columns of %s: %w", res.table, err)
		}
		present[res.name] = names
	}
	db.present.Store(&present)
	return nil
}

// has says whether the table has that column now.
func (db *database) has(res *resource, column string) bool {
	return slices.Contains((*db.present.Load())[res.name], column)
}

// Close stops traffic and closes the connections to PostgreSQL.
func (s *Store) Close() {
	s.Quiesce()
	if s.db != nil {
		s.db.pool.Close()
	}
}
