package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// shortTimeout is a statement_timeout under which reads become many and small: a chunk aims at a few seconds.
const shortTimeout = 5 * time.Second

// database looks at PostgreSQL and at each table that is polled there.
func (c *checker) database(ctx context.Context) []finding {
	f := &findings{part: "database"}
	tables := c.over(config.Postgres)
	if len(tables) == 0 {
		return nil
	}
	db, err := postgres.Open(postgres.Config{DSN: string(c.cfg.Postgres.DSN), MaxConnections: 1})
	if err != nil {
		f.fail("", err, "")
		return f.all
	}
	defer db.Close()
	server, err := postgres.CheckServer(ctx, db)
	if err != nil {
		f.fail("", err, databaseRemedy(err))
		return f.all
	}
	f.server(server, c.cfg.Postgres.MaxConnections)
	for _, r := range tables {
		f.table(ctx, db, r)
	}
	return f.all
}

// databaseRemedy is what to do where the error does not say it.
func databaseRemedy(err error) string {
	var held *poller.HoldError
	if errors.As(err, &held) {
		return "" // it says what to do
	}
	return "start the database or its pooler; `run` waits for it"
}

func (f *findings) server(s postgres.Server, connections int) {
	kind, timeout := "primary", "no statement_timeout"
	if s.Standby {
		kind = "standby"
	}
	if s.StatementTimeout > 0 {
		timeout = "statement_timeout " + s.StatementTimeout.String()
	}
	f.ok("", "PostgreSQL %s at %s, a %s: role %s, database %s, %s", strings.Fields(s.Version + " ?")[0], s.Where, kind, s.Role, s.Database, timeout)
	switch s.Pooling {
	case postgres.SessionPooling:
		f.add(warning, "pooler", "ask for the address of the pooler in transaction mode, or set pool_mode=transaction",
			"%s: each connection of storestream keeps one of the server's for itself, up to %d (postgres.max_connections), also while idle", s.Pooling, connections)
	case postgres.PoolingUnknown:
		f.add(note, "pooler", "", "cannot tell the pooler's mode: it gave no second connection in time, or is of another kind; every mode works")
	default:
		f.ok("pooler", "%s", s.Pooling)
	}
	if s.Standby && s.Clock.IsZero() {
		f.add(warning, "standby", "wait for the primary to commit something, or read from the primary", "it has replayed no transaction since it started, so nothing can settle")
	} else if s.Standby {
		f.add(note, "standby", "", "it has replayed what was committed until %s ago: settled follows that", terminal.Duration(time.Since(s.Clock)))
	}
	if s.Ahead.Abs() > skewLimit {
		f.add(warning, "clock", "find out which clock is wrong (NTP); rows are settled by the database's, lag is told by this machine's",
			"the database's clock is %s this machine's", beside(s.Ahead))
	}
	if s.StatementTimeout > 0 && s.StatementTimeout < shortTimeout {
		f.add(warning, "timeout", fmt.Sprintf("ask for a longer one: ALTER ROLE %s SET statement_timeout = '60s'", s.Role),
			"statement_timeout is %s: reads are cut into small ones, and a table without an index may not be readable at all", s.StatementTimeout)
	}
	if s.Superuser {
		f.add(warning, "role", "use a role that may only SELECT, such as student_ro", "role %s is a superuser, and storestream only reads", s.Role)
	}
}

func (f *findings) table(ctx context.Context, db *postgres.DB, r *schemas.Resource) {
	t, err := postgres.CheckTable(ctx, db, r)
	if err != nil {
		f.fail(r.Name, err, databaseRemedy(err))
		return
	}
	rows := "rows not counted by ANALYZE yet"
	if t.Rows >= 0 {
		rows = "about " + terminal.Count(t.Rows) + " rows"
	}
	bad := len(f.all)
	if !t.Index && t.CreateIndex != "" {
		f.add(warning, r.Name, "give this to the owner of the database: "+t.CreateIndex,
			"%s has no index on (updated_at, id): each poll reads the whole table (%s)", t.Name, rows)
	}
	if len(t.Missing) > 0 {
		f.add(note, r.Name, "", "%s has no column for %s: published as null", t.Name, strings.Join(t.Missing, ", "))
	}
	if t.Hidden {
		f.add(warning, r.Name, "ask the owner for a policy that shows all rows, or for BYPASSRLS", "%s has row security: rows that its policies hide from this role are missing in the topic", t.Name)
	}
	if t.Writable {
		f.add(warning, r.Name, "use a role that may only SELECT, such as student_ro", "this role may change rows of %s, and storestream only reads", t.Name)
	}
	if bad == len(f.all) {
		f.ok(r.Name, "%s can be read, has the types and the index that reads go by, %s", t.Name, rows)
	}
}
