package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// Server describes the database server.
type Server struct {
	Where, Database, Role, Version string
	Standby                        bool
	// Clock is the clock that settling uses: now on a primary, the last replayed commit on a standby. It is zero
	// on a standby that has replayed none since it started: nothing can settle there.
	Clock time.Time
	// Ahead is the server's clock minus ours, with an error of half of the query's time. It is zero for a
	// standby.
	Ahead time.Duration
	// StatementTimeout is the role's. Zero means no limit.
	StatementTimeout time.Duration
	Superuser        bool
	// Encoding is the database's. All encodings but SQL_ASCII are converted to UTF-8.
	Encoding string
}

// Table describes a resource's table.
type Table struct {
	Name    string   // qualified and quoted
	Rows    int64    // the planner's estimate, or -1 if the table was never analysed
	Missing []string // fields of the schema that the table does not have: they are null
	Unknown []string // columns that the role may read and the schema does not know: they are not published
	// Index is set if an index has the order of reads. If not, CreateIndex is the statement for the owner of the
	// table. It is "" for a view, which cannot have an index.
	Index       bool
	CreateIndex string
	// Writable is set if the role may change rows, which it never needs. Hidden is set if row security may hide
	// rows from the role: they would be missing in the topic without a sign.
	Writable, Hidden bool
}

const serverSQL = `SELECT current_setting('server_version'),
	(extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::bigint,
	(SELECT rolsuper FROM pg_roles WHERE rolname = current_user), current_setting('server_encoding')`

// CheckServer asks the server once for the settings that matter for polling. Its errors are those of
// Source.Read.
func CheckServer(ctx context.Context, db *DB) (Server, error) {
	login := db.login.Get()
	s := Server{Where: db.address(), Database: login.Database, Role: login.User}
	var timeout int64
	c, err := db.ask(ctx, nil, nil, &statement{sql: serverSQL}, &s.Version, &timeout, &s.Superuser, &s.Encoding)
	if err != nil {
		return s, db.explain("the server's settings", err)
	}
	s.StatementTimeout, s.Standby = time.Duration(timeout)*time.Millisecond, c.standby
	if c.known {
		s.Clock = c.time.Time()
	}
	if !c.standby {
		s.Ahead = s.Clock.Sub(c.asked.Add(c.answered.Sub(c.asked) / 2))
	}
	return s, nil
}

// CheckTable checks that r's table can be read. had are the fields that the table had before. Its errors are
// those of Source.Read: the role may not SELECT, a column cannot hold its field, or a field of had is gone. A
// condition that only costs time is no error, but in the Table.
func CheckTable(ctx context.Context, db *DB, r *schemas.Resource, had ...string) (Table, error) {
	reader := newChunkReader(db, SourceConfig{Resource: r, Metrics: &metrics.Resource{}})
	reader.had = had
	t, err := reader.describe(ctx)
	if err != nil {
		return Table{}, db.explain(r.Table, err)
	}
	found := Table{Name: t.name, Missing: t.missing, Unknown: t.unknown}
	q := statement{sql: tableSQL}
	q.param(pgtype.TextOID, t.name)
	_, err = db.ask(ctx, nil, nil, &q, &found.Rows, &found.Index, &found.Writable, &found.Hidden)
	if err != nil {
		return found, db.explain(r.Table, err)
	}
	switch {
	case found.Index:
	case t.kind == "r":
		found.CreateIndex = "CREATE INDEX CONCURRENTLY ON " + t.name + " (updated_at, id);"
	case t.kind == "p": // no CONCURRENTLY on a partitioned table
		found.CreateIndex = "CREATE INDEX ON " + t.name + " (updated_at, id);"
	}
	// Reading may fail although the role has SELECT: a view over a table that it may not read, a policy.
	for c, err := range reader.chunks(ctx, anyRow, beforeAll, nil) {
		switch {
		case err != nil:
			return found, err
		case len(c.rejects) > 0:
			return found, &poller.BlockedError{What: fmt.Sprintf("the first row of %s that came breaks the contract "+
				"in %q: %s", found.Name, c.rejects[0].Field, c.rejects[0].Err)}
		}
		break
	}
	return found, nil
}

// tableSQL asks, among others, for an index that begins with updated_at and id, both in the same direction: a
// scan can follow it either way. It must be valid, whole and a B-tree.
const tableSQL = `SELECT c.reltuples::bigint,
	EXISTS (SELECT FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
		WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND am.amname = 'btree'
		AND i.indnkeyatts >= 2
		AND i.indkey[0] = u.attnum AND i.indkey[1] = k.attnum AND i.indoption[0] = i.indoption[1]),
	has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE')
		OR has_table_privilege(c.oid, 'DELETE'),
	c.relrowsecurity AND row_security_active(c.oid)
FROM pg_class c
JOIN pg_attribute u ON u.attrelid = c.oid AND u.attname = 'updated_at'
JOIN pg_attribute k ON k.attrelid = c.oid AND k.attname = 'id'
WHERE c.oid = to_regclass($1)`

// Overlap is the cost of a poll of a table now.
type Overlap struct {
	Rows int64         // stamped within the overlap
	Took time.Duration // the server's time to read them
	// NoFloor is why a poll reads all of them and not only the changed ones, or "".
	NoFloor string
}

// CheckOverlap counts the rows that a poll of r has to read in the heap, as a poll does. Its errors are
// those of Source.Read.
func CheckOverlap(ctx context.Context, db *DB, r *schemas.Resource, overlap time.Duration) (Overlap, error) {
	t, err := newChunkReader(db, SourceConfig{Resource: r, Metrics: &metrics.Resource{}}).describe(ctx)
	if err != nil {
		return Overlap{}, db.explain(r.Table, err)
	}
	found, read := Overlap{NoFloor: t.noFloor}, "row("+t.list+")"
	if t.noFloor == "" {
		read = "age(xmin)"
	}
	q := statement{sql: fmt.Sprintf(`SELECT count(*),
		(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1e6)::bigint, count(%s)
		FROM %s WHERE updated_at >= $1`, read, t.name)}
	q.param(0, microsOf(schemas.InstantOf(time.Now().Add(-overlap))))
	var micros, met int64
	if _, err = db.ask(ctx, nil, nil, &q, &found.Rows, &micros, &met); err != nil {
		return found, db.explain(r.Table, err)
	}
	found.Took = time.Duration(micros) * time.Microsecond
	return found, nil
}
