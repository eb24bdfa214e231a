package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

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
	q := statement{sql: serverSQL}
	asked := time.Now()
	c, answer, err := db.ask(ctx, catalogueDeadline, &q)
	if err != nil {
		return s, db.explain("the server's settings", err)
	}
	for _, v := range answer.Rows {
		if len(v[1]) == 8 {
			s.StatementTimeout = time.Duration(binary.BigEndian.Uint64(v[1])) * time.Millisecond
		}
		s.Version, s.Superuser, s.Encoding = string(v[0]), isTrue(v[2]), string(v[3])
	}
	s.Standby = c.standby
	if c.known {
		s.Clock = c.time.Time()
	}
	if !c.standby {
		s.Ahead = s.Clock.Sub(asked.Add(time.Since(asked) / 2))
	}
	return s, nil
}

// CheckTable checks that r's table can be read. had are the fields that the table had before. Its errors are
// those of Source.Read: the role may not SELECT, a column cannot hold its field, or a field of had is gone. A
// condition that only costs time is no error, but in the Table.
func CheckTable(ctx context.Context, db *DB, r *schemas.Resource, had ...string) (Table, error) {
	t, err := readTable(ctx, db, r)
	if err == nil {
		err = (&catalogue{had: had}).accept(t)
	}
	if err != nil {
		return Table{}, db.explain(r.Table, err)
	}
	found := Table{Name: t.name, Missing: t.missing, Unknown: t.unknown}
	if err := found.checkIndex(ctx, db); err != nil {
		return found, db.explain(r.Table, err)
	}
	// Reading may fail although the role has SELECT: a view over a table that it may not read, a policy.
	t = t.cutLong()
	one := statement{sql: fmt.Sprintf("SELECT %s FROM %s LIMIT 1", t.list, t.name)}
	_, answer, err := db.ask(ctx, catalogueDeadline, &one)
	if err != nil {
		return found, db.explain(r.Table, err)
	}
	for _, v := range answer.Rows {
		if _, reject, _ := t.decode(v); reject != nil {
			return found, &poller.BlockedError{What: fmt.Sprintf("the first row of %s that came breaks the contract "+
				"in %q: %s", found.Name, reject.Field, reject.Err)}
		}
	}
	return found, nil
}

// tableSQL asks, among others, for an index that begins with updated_at and id, both in the same direction: a
// scan can follow it either way. It must be valid, whole and a B-tree.
const tableSQL = `SELECT c.relkind::text, c.reltuples::bigint,
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

func (t *Table) checkIndex(ctx context.Context, db *DB) error {
	q := statement{sql: tableSQL}
	q.param(oidText, []byte(t.Name))
	_, answer, err := db.ask(ctx, catalogueDeadline, &q)
	if err != nil {
		return err
	}
	kind := ""
	for _, v := range answer.Rows {
		if len(v) != 5 || len(v[1]) != 8 {
			return errors.New("read the catalogue: an answer of another shape than PostgreSQL's")
		}
		kind, t.Rows = string(v[0]), int64(binary.BigEndian.Uint64(v[1]))
		t.Index, t.Writable, t.Hidden = isTrue(v[2]), isTrue(v[3]), isTrue(v[4])
	}
	switch {
	case t.Index:
	case kind == "r":
		t.CreateIndex = "CREATE INDEX CONCURRENTLY ON " + t.Name + " (updated_at, id);"
	case kind == "p": // no CONCURRENTLY on a partitioned table
		t.CreateIndex = "CREATE INDEX ON " + t.Name + " (updated_at, id);"
	}
	return nil
}

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
	t, err := readTable(ctx, db, r)
	if err != nil {
		return Overlap{}, db.explain(r.Table, err)
	}
	found := Overlap{NoFloor: t.noFloor}
	read := "row(" + t.list + ")"
	if t.noFloor == "" {
		read = "age(xmin)"
	}
	q := statement{sql: fmt.Sprintf(`SELECT count(*), count(%s),
		(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1e6)::bigint
		FROM %s WHERE updated_at >= $1`, read, t.name)}
	q.param(t.updatedOID, int8Param(microsOf(schemas.InstantOf(time.Now().Add(-overlap)))))
	_, answer, err := db.ask(ctx, chunkDeadline, &q)
	if err != nil {
		return found, db.explain(r.Table, err)
	}
	for _, v := range answer.Rows {
		if len(v) == 3 && len(v[2]) == 8 {
			found.Rows = int64(binary.BigEndian.Uint64(v[0]))
			found.Took = time.Duration(binary.BigEndian.Uint64(v[2])) * time.Microsecond
		}
	}
	return found, nil
}
