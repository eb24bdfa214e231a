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

// Server is what CheckServer found of the database server.
type Server struct {
	Where, Database, Role, Version string
	Standby                        bool
	// Clock is the clock that settles: now on a primary, the commit of the last transaction replayed on a
	// standby. Zero on a standby that has replayed none since it started: nothing can settle there.
	Clock time.Time
	// Ahead is the server's clock minus ours, give or take half of what the question took; 0 for a standby.
	Ahead time.Duration
	// StatementTimeout is the role's; 0: none.
	StatementTimeout time.Duration
	Superuser        bool
	// Encoding is the database's. All but SQL_ASCII are converted to UTF-8.
	Encoding string
}

// Table is what CheckTable found of a resource's table.
type Table struct {
	Name    string   // qualified and quoted
	Rows    int64    // the planner's estimate, -1: never analysed
	Missing []string // fields of the schema that it does not have, so null
	Unknown []string // columns that the role may read and the schema does not know, so not published
	// Index says whether an index has the order that reads go by. If not, CreateIndex is the statement for the
	// owner of the table, "" for a view, which can have none.
	Index       bool
	CreateIndex string
	// Writable: the role may change rows, which it never needs. Hidden: row security may hide rows from the
	// role, and they would be missing in the topic without a sign.
	Writable, Hidden bool
}

const serverSQL = `SELECT current_setting('server_version'),
	(extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::bigint,
	(SELECT rolsuper FROM pg_roles WHERE rolname = current_user), current_setting('server_encoding')`

// CheckServer asks the server once what matters for polling. Its errors are those of Source.Read.
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

// CheckTable checks what reading r needs of its table. had are the fields that the table had. Its errors are
// those of Source.Read: the role may not SELECT, a column cannot hold its field, or a field of had is gone.
// Conditions that only cost time are in the Table.
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
	// Rows may fail although the role has SELECT: a view over what it may not read, a policy.
	t = t.cutLong()
	one := statement{sql: fmt.Sprintf("SELECT %s FROM %s LIMIT 1", t.list, t.name)}
	_, answer, err := db.ask(ctx, catalogueDeadline, &one)
	if err != nil {
		return found, db.explain(r.Table, err)
	}
	for _, v := range answer.Rows {
		if _, reject, _ := t.decode(v); reject != nil {
			return found, &poller.HoldError{What: fmt.Sprintf("the first row of %s that came breaks the contract in "+
				"%q: %s", found.Name, reject.Field, reject.Err)}
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

// Overlap is what a poll of a table looks at now.
type Overlap struct {
	Rows int64         // stamped within the overlap
	Took time.Duration // of the server, to look at them
	// NoFloor says why a poll reads all of them and not only what has changed, "" if it does not.
	NoFloor string
}

// CheckOverlap counts what a poll of r has to look at, as a poll does: in the heap, not in the index alone.
// Its errors are those of Source.Read.
func CheckOverlap(ctx context.Context, db *DB, r *schemas.Resource, overlap time.Duration) (Overlap, error) {
	t, err := readTable(ctx, db, r)
	if err != nil {
		return Overlap{}, db.explain(r.Table, err)
	}
	found := Overlap{NoFloor: t.noFloor}
	look := "row(" + t.list + ")"
	if t.noFloor == "" {
		look = "age(xmin)"
	}
	q := statement{sql: fmt.Sprintf(`SELECT count(*), count(%s),
		(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1e6)::bigint
		FROM %s WHERE updated_at >= $1`, look, t.name)}
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
