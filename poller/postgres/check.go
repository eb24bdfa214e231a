package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// Server is what CheckServer found of the database server.
type Server struct {
	Where, Database, Role, Version string
	Standby                        bool
	// Clock is the clock that settles: now on a primary, the commit of the last transaction replayed on a standby. Zero on a standby that has
	// replayed none since it started: nothing can settle there.
	Clock time.Time
	// Ahead is the server's clock minus ours, to half of what the question took. Nothing is known of a standby's (0).
	Ahead time.Duration
	// StatementTimeout is the role's; 0: none.
	StatementTimeout time.Duration
	Superuser        bool
	Pooling          Pooling
}

// Table is what CheckTable found of a resource's table.
type Table struct {
	Name    string   // qualified and quoted
	Rows    int64    // the planner's estimate, -1: never analysed
	Missing []string // fields of the schema that it does not have, so null
	// Index: there is one that reads go by. Where not, CreateIndex is the statement for the owner of the table, "" for a view, which has none.
	Index       bool
	CreateIndex string
	// Writable: the role may change rows, which it never needs. Hidden: row security may keep rows from the role, and what it hides is
	// missing in the topic without a sign.
	Writable, Hidden bool
}

const serverSQL = `SELECT current_setting('server_version'), (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::bigint,
	(SELECT rolsuper FROM pg_roles WHERE rolname = current_user)`

// CheckServer asks the server what matters for polling, once and without retries. It changes nothing. The error is explained like those of Source.Read.
func CheckServer(ctx context.Context, db *DB) (Server, error) {
	s := Server{Where: db.where, Database: db.database, Role: db.user}
	q := statement{sql: serverSQL}
	asked := time.Now()
	c, err := db.snapshot(ctx, catalogueDeadline, &q, func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			v := rows.Values()
			if len(v[1]) == 8 {
				s.StatementTimeout = time.Duration(binary.BigEndian.Uint64(v[1])) * time.Millisecond
			}
			s.Version, s.Superuser = string(v[0]), isTrue(v[2])
		}
		return nil
	})
	if err != nil {
		return s, db.explain("the server's settings", err)
	}
	s.Standby = c.standby
	if c.known {
		s.Clock = c.time.Time()
	}
	if !c.standby {
		s.Ahead = s.Clock.Sub(asked.Add(time.Since(asked) / 2))
	}
	s.Pooling = db.pooling(ctx)
	return s, nil
}

// tableSQL tells of the table whether an index leads with updated_at and then has id, both in the same direction, which a scan can follow either way.
// A partial index does not do, nor does one that is invalid, or that another access method made.
const tableSQL = `SELECT c.relkind::text, c.reltuples::bigint,
	EXISTS (SELECT FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
		WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND am.amname = 'btree' AND i.indnkeyatts >= 2
		AND i.indkey[0] = u.attnum AND i.indkey[1] = k.attnum AND i.indoption[0] = i.indoption[1]),
	has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE') OR has_table_privilege(c.oid, 'DELETE'),
	c.relrowsecurity AND row_security_active(c.oid)
FROM pg_class c
JOIN pg_attribute u ON u.attrelid = c.oid AND u.attname = 'updated_at'
JOIN pg_attribute k ON k.attrelid = c.oid AND k.attname = 'id'
WHERE c.oid = to_regclass($1)`

// CheckTable looks at what reading r needs of its table: that the role may SELECT it, and that its columns can hold the fields, which are errors as those
// of Source.Read; and at what only costs time. It changes nothing.
func CheckTable(ctx context.Context, db *DB, r *schemas.Resource) (Table, error) {
	t, err := db.look(ctx, r)
	if err != nil {
		return Table{}, db.explain(r.Table, err)
	}
	found := Table{Name: t.name, Missing: t.missing}
	if err := db.examineIndex(ctx, t, &found); err != nil {
		return found, db.explain(r.Table, err)
	}
	// The role may have SELECT on the table and yet no rows come: a view over what it may not read, a policy that fails.
	one := statement{sql: fmt.Sprintf("SELECT %s FROM %s LIMIT 1", t.list, t.name)}
	_, err = db.snapshot(ctx, catalogueDeadline, &one, func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			if _, reject := t.decoder.Decode(rows.Values()); reject != nil {
				return &poller.HoldError{What: fmt.Sprintf("the first row of %s that came breaks the contract in %q: %s", t.name, reject.Field, reject.Err)}
			}
		}
		return nil
	})
	if err != nil {
		return found, db.explain(r.Table, err)
	}
	return found, nil
}

func (db *DB) examineIndex(ctx context.Context, t *table, found *Table) error {
	q := statement{sql: tableSQL}
	q.param(oidText, []byte(t.name))
	kind := ""
	_, err := db.snapshot(ctx, catalogueDeadline, &q, func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			v := rows.Values()
			if len(v) != 5 || len(v[1]) != 8 {
				return errors.New("read the catalogue: an answer of another shape than PostgreSQL's")
			}
			kind, found.Rows = string(v[0]), int64(binary.BigEndian.Uint64(v[1]))
			found.Index, found.Writable, found.Hidden = isTrue(v[2]), isTrue(v[3]), isTrue(v[4])
		}
		return nil
	})
	switch {
	case err != nil || found.Index:
		return err
	case kind == "r" || kind == "m":
		found.CreateIndex = "CREATE INDEX CONCURRENTLY ON " + t.name + " (updated_at, id);"
	case kind == "p": // no CONCURRENTLY on a partitioned table
		found.CreateIndex = "CREATE INDEX ON " + t.name + " (updated_at, id);"
	}
	return nil
}

func isTrue(v []byte) bool { return len(v) == 1 && v[0] != 0 }
