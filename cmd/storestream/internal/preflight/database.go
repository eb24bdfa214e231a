package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

const (
	// shortTimeout is a statement_timeout under which reads become many and small: a chunk aims at a few
	// seconds.
	shortTimeout = 5 * time.Second
	readOnly     = "use a role that may only SELECT, such as student_ro"
)

// database looks at PostgreSQL, and at each table that is polled there.
type database struct {
	found *findings
	db    *postgres.DB
	marks map[string]watermark.Watermark
}

func tryDatabase(ctx context.Context, c Config, f *findings) {
	d := database{found: f}
	tables := c.over(config.Postgres)
	if len(tables) == 0 {
		return
	}
	var err error
	d.db, err = postgres.Open(postgres.Config{DSN: c.Settings.Postgres.DSN, MaxConnections: 1})
	if err != nil {
		d.found.fail("", err, "")
		return
	}
	defer d.db.Close()
	server, err := postgres.CheckServer(ctx, d.db)
	if err != nil {
		d.found.fail("", err, databaseRemedy(err))
		return
	}
	d.server(server)
	d.clock(server)
	d.role(server)
	d.marks = c.marks()
	for _, r := range tables {
		if settings := c.Settings.Resources[r.Name]; d.table(ctx, r) {
			d.overlap(ctx, r, settings.Overlap, settings.Interval)
		}
	}
}

// databaseRemedy returns a remedy if the error has none.
func databaseRemedy(err error) string {
	if errors.As(err, new(*poller.BlockedError)) {
		return "" // it says what to do
	}
	return "start the database or its pooler; `run` waits for it"
}

func (d *database) server(s postgres.Server) {
	kind, timeout := "primary", "no statement_timeout"
	if s.Standby {
		kind = "standby"
	}
	if s.StatementTimeout > 0 {
		timeout = "statement_timeout " + s.StatementTimeout.String()
	}
	d.found.ok("", "PostgreSQL %s at %s, a %s: role %s, database %s, %s",
		strings.Fields(s.Version + " ?")[0], s.Where, kind, s.Role, s.Database, timeout)
	if s.Encoding == "SQL_ASCII" {
		d.found.add(Note, "encoding", "", "database %s has encoding SQL_ASCII, which takes any bytes: rows whose "+
			"texts are not UTF-8 become dead letters", s.Database)
	}
}

func (d *database) clock(s postgres.Server) {
	switch {
	case s.Standby && s.Clock.IsZero():
		d.found.add(Warning, "standby", "wait for the primary to commit something, or read from the primary",
			"it has replayed no transaction since it started, so nothing can settle")
	case s.Standby:
		d.found.add(Note, "standby", "", "it has replayed what was committed until %s ago: settled follows that",
			terminal.Duration(time.Since(s.Clock)))
	}
	if s.Ahead.Abs() > skewLimit {
		d.found.add(Warning, "clock", "find out which clock is wrong (NTP); rows are settled by the database's, "+
			"lag is measured by this machine's", "the database's clock is %s this machine's", beside(s.Ahead))
	}
}

func (d *database) role(s postgres.Server) {
	if s.StatementTimeout > 0 && s.StatementTimeout < shortTimeout {
		d.found.add(Warning, "timeout",
			fmt.Sprintf("ask for a longer one: ALTER ROLE %s SET statement_timeout = '60s'", s.Role),
			"statement_timeout is %s: reads are cut into small ones, and a table without an index may not be "+
				"readable at all", s.StatementTimeout)
	}
	if s.Superuser {
		d.found.add(Warning, "role", readOnly, "role %s is a superuser, and storestream only reads", s.Role)
	}
}

// table looks at a table, and says whether it can be read.
func (d *database) table(ctx context.Context, r *schemas.Resource) bool {
	t, err := postgres.CheckTable(ctx, d.db, r, d.marks[r.Name].Fields...)
	if err != nil {
		d.found.fail(r.Name, err, databaseRemedy(err))
		return false
	}
	rows := "rows not counted by ANALYZE yet"
	if t.Rows >= 0 {
		rows = "about " + terminal.Count(t.Rows) + " rows"
	}
	before := len(d.found.all)
	if !t.Index && t.CreateIndex != "" {
		d.found.add(Warning, r.Name, "give this to the owner of the database: "+t.CreateIndex,
			"%s has no index on (updated_at, id): each poll reads the whole table (%s)", t.Name, rows)
	}
	if len(t.Missing) > 0 {
		d.found.add(Note, r.Name, "", "%s has no column for %s: published as null",
			t.Name, strings.Join(t.Missing, ", "))
	}
	if n := len(t.Unknown); n > 0 {
		are := "column %s of %s is not in the schema: not published"
		if n > 1 {
			are = "columns %s of %s are not in the schema: not published"
		}
		d.found.add(Note, r.Name, addFields(r), are, strings.Join(t.Unknown, ", "), r.Table)
	}
	if t.Hidden {
		d.found.add(Warning, r.Name, "ask the owner for a policy that shows all rows, or for BYPASSRLS",
			"%s has row security: rows that its policies hide from this role are missing in the topic", t.Name)
	}
	if t.Writable {
		d.found.add(Warning, r.Name, readOnly,
			"this role may change rows of %s, and storestream only reads", t.Name)
	}
	if len(d.found.all) == before {
		d.found.ok(r.Name, "%s can be read, has the types and the index that reads go by, %s", t.Name, rows)
	}
	return true
}

// busyShare is the share of the interval above which looking through the overlap is worth a warning.
const busyShare = .25

// overlap says what polls cost the server: each looks at the rows of the whole overlap.
func (d *database) overlap(ctx context.Context, r *schemas.Resource, overlap, interval time.Duration) {
	o, err := postgres.CheckOverlap(ctx, d.db, r, overlap)
	if err != nil {
		d.found.fail(r.Name, err, databaseRemedy(err))
		return
	}
	if o.NoFloor != "" {
		d.found.add(Note, r.Name, "", "each poll reads all rows of the overlap (%s now), not only what has "+
			"changed: %s", terminal.Count(o.Rows), o.NoFloor)
	}
	share := o.Took.Seconds() / max(interval, time.Millisecond).Seconds()
	cost := fmt.Sprintf("a poll looks through %s of the overlap in %s: %.0f %% of a core of PostgreSQL at "+
		"an interval of %s", terminal.Plural(o.Rows, "row"), o.Took.Round(time.Millisecond), 100*share, interval)
	if share > busyShare {
		d.found.add(Warning, r.Name, "shorten the overlap to the longest time from a row's stamp to its "+
			"transaction's first write, lengthen the interval, or read from a standby", "%s", cost)
		return
	}
	d.found.ok(r.Name, "%s", cost)
}
