package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

const readerPassword = "student"

// database is PostgreSQL with the role that may only read. If options ask for it, PgBouncer stands in front.
type database struct {
	server *servers.Postgres
	pid    int
	pooler *servers.PgBouncer // nil if clients connect directly
}

func startDatabase(ctx context.Context, pooler bool, buffers string) (_ *database, err error) {
	settings := map[string]string{"shared_buffers": buffers, "autovacuum": "off"}
	db := &database{}
	if db.server, err = servers.StartPostgres(ctx, servers.PostgresConfig{Settings: settings}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.stop())
		}
	}()
	if err := db.findPID(ctx); err != nil {
		return nil, err
	}
	// As the service's own is: storefake finds it there and sets the same.
	err = db.exec(ctx, "postgres", "CREATE ROLE "+storefake.ReaderRole+" LOGIN PASSWORD '"+readerPassword+"'",
		"ALTER ROLE "+storefake.ReaderRole+" SET statement_timeout = '60s'",
		"ALTER ROLE "+storefake.ReaderRole+" SET default_transaction_read_only = on")
	if err != nil || !pooler {
		return db, err
	}
	users := map[string]string{storefake.ReaderRole: readerPassword}
	db.pooler, err = servers.StartPgBouncer(ctx, servers.PgBouncerConfig{Postgres: db.server, Users: users})
	return db, err
}

func (db *database) findPID(ctx context.Context) error {
	var folder string
	err := db.query(ctx, "SHOW data_directory", &folder)
	if err != nil {
		return err
	}
	db.pid, err = strconv.Atoi(firstLine(filepath.Join(folder, "postmaster.pid")))
	return err
}

func (db *database) stop() error {
	var err error
	if db.pooler != nil {
		err = db.pooler.Stop()
	}
	return errors.Join(err, db.server.Stop())
}

// reader is the DSN by which storestream reads a database of the server.
func (db *database) reader(name string) string {
	if db.pooler != nil && name == "postgres" {
		return db.pooler.DSN(storefake.ReaderRole, readerPassword, name)
	}
	return db.server.DSN(storefake.ReaderRole, readerPassword, name)
}

// exec runs statements as the administrator.
func (db *database) exec(ctx context.Context, name string, statements ...string) error {
	conn, err := pgx.Connect(ctx, db.server.AdminDSN(name))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (db *database) query(ctx context.Context, sql string, into any) error {
	conn, err := pgx.Connect(ctx, db.server.AdminDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql).Scan(into)
}

// Statements that make a table of orders, and n rows in it that changed over three years up to eight days
// ago. The stand-in service could not hold so many.
const (
	createSQL = `CREATE TABLE orders (id int8, user_id int8, status text, total_amount numeric,
  created_at timestamptz, updated_at timestamptz)`
	fillSQL = `INSERT INTO orders SELECT n, n %% 100000,
  (ARRAY['Shipped','Complete','Processing','Cancelled','Returned'])[1 + n %% 5], (n %% 100000) / 100.0,
  now() - interval '1104 days' + n * (interval '1095 days' / %[1]d),
  now() - interval '1103 days' + n * (interval '1095 days' / %[1]d)
FROM generate_series(1, %[1]d) n`
)

// tableOf makes a database that holds n orders, once, and returns its name. Nobody changes it.
func (db *database) tableOf(ctx context.Context, n int) (name string, err error) {
	name = fmt.Sprintf("rows_%d", n)
	var there bool
	err = db.query(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = '"+name+"')", &there)
	if err != nil || there {
		return name, err
	}
	return name, db.freshTable(ctx, name, n)
}

// freshTable makes a database of that name with n orders in place of the one that is there. Statements that
// add to the orders follow.
func (db *database) freshTable(ctx context.Context, name string, n int, further ...string) error {
	err := db.exec(ctx, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "CREATE DATABASE "+name)
	if err != nil {
		return err
	}
	return db.exec(ctx, name, append([]string{createSQL, fmt.Sprintf(fillSQL, n),
		"ALTER TABLE orders ADD PRIMARY KEY (id)", "CREATE INDEX ON orders (updated_at, id)",
		"GRANT SELECT ON orders TO " + storefake.ReaderRole, "VACUUM (FREEZE, ANALYZE) orders", "CHECKPOINT"},
		further...)...)
}

// drop takes a database of freshTable away.
func (db *database) drop(ctx context.Context, name string) error {
	return db.exec(ctx, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "CHECKPOINT")
}

// readersCPU is the CPU time of the sessions of storestream's role, by their processes.
func (db *database) readersCPU(ctx context.Context) (map[int]time.Duration, error) {
	conn, err := pgx.Connect(ctx, db.server.AdminDSN("postgres"))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE usename = $1", storefake.ReaderRole)
	if err != nil {
		return nil, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	spent := map[int]time.Duration{}
	for _, pid := range pids {
		spent[pid] = used(pid)
	}
	return spent, err
}

// copyQuery reads the same rows as storestream, in one statement.
const copyQuery = "COPY (SELECT %s FROM %s WHERE updated_at IS NOT NULL ORDER BY updated_at, id) " +
	"TO STDOUT (FORMAT binary)"

// copyAnyhow reads them in the order in which they lie.
const copyAnyhow = "COPY (SELECT %s FROM %s WHERE updated_at IS NOT NULL) TO STDOUT (FORMAT binary)"

var copyColumns = map[string]string{
	storefake.Orders:     "id, user_id, status, total_amount, created_at, updated_at",
	storefake.OrderItems: "id, order_id, product_id, sale_price, quantity, amount, created_at, updated_at",
}

// copied is one psql COPY of a table to nowhere.
type copied struct{ elapsed, cpu, pgCPU time.Duration }

func (db *database) copyOut(ctx context.Context, name, table string) (copied, error) {
	return db.copyBy(ctx, name, table, copyQuery)
}

func (db *database) copyBy(ctx context.Context, name, table, query string) (c copied, err error) {
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return c, err
	}
	defer nowhere.Close()
	before := used(db.pid)
	sql := fmt.Sprintf(query, copyColumns[table], table)
	cmd := exec.CommandContext(ctx, "psql", "-X", "-q", "-d", db.reader(name), "-c", sql)
	cmd.Stdout, cmd.Stderr = nowhere, os.Stderr
	if db.pooler == nil {
		// On a shared machine, one statement for all rows takes longer than the reader's limit of a minute.
		cmd.Env = append(os.Environ(), "PGOPTIONS=-c statement_timeout=0")
	}
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return c, fmt.Errorf("psql: %w", err)
	}
	c.elapsed = time.Since(began)
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	c.cpu, c.pgCPU = time.Duration(u.Utime.Nano()+u.Stime.Nano()), used(db.pid)-before
	return c, nil
}

// touchOrder changes one order.
func touchOrder(ctx context.Context, conn *pgx.Conn, id int64) error {
	_, err := conn.Exec(ctx, "UPDATE orders SET user_id = user_id + 1, updated_at = now() WHERE id = $1", id)
	return err
}

// firstLine returns the first line of a file, or "" if it cannot be read.
func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	l, _, _ := strings.Cut(string(text), "\n")
	return l
}
