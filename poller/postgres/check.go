package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/schemas"
)

// CheckServer describes the database server, and returns the certificates that it or its pooler has shown. A
// connection without TLS has none. Its errors are those of Source.Read.
func CheckServer(ctx context.Context, db *DB) (server string, shown []*x509.Certificate, err error) {
	version := ""
	tx, err := db.begin(ctx, nil, nil, &statement{sql: "SELECT current_setting('server_version')"})
	if err == nil {
		if conn, ok := tx.conn.Conn().PgConn().Conn().(*tls.Conn); ok {
			shown = conn.ConnectionState().PeerCertificates
		}
		err = tx.close(tx.scan(&version))
	}
	if err != nil {
		return "", nil, db.explain("the server's version", err)
	}
	login := db.login.Get()
	return fmt.Sprintf("PostgreSQL %s at %s: role %s, database %s", version, db.address(), login.User,
		login.Database), shown, nil
}

// Table has the facts that a person should know about a resource's table, although storestream can read it.
type Table struct {
	Name    string   // qualified and quoted
	Missing []string // fields of the schema that the table does not have: they are null
	Unknown []string // columns that the role may read and the schema does not know: they are not published
	// CreateIndex is the statement for the owner of a table that has no index in the order of reads, or "".
	CreateIndex string
	// NoFloor is the reason why a poll reads all rows of the overlap and not only the changed ones, or "".
	NoFloor string
	// Writable is set if the role may change rows, which it never needs. Hidden is set if row security may hide
	// rows from the role: they would be missing in the topic without a sign.
	Writable, Hidden bool
}

// tableSQL asks, among others, for an index that begins with updated_at and id, both in the same direction: a
// scan can follow it either way. It must be valid, whole and a B-tree. A view cannot have an index, and a
// partitioned table cannot get one CONCURRENTLY.
const tableSQL = `SELECT coalesce(CASE WHEN c.relkind IN ('r', 'p') AND NOT EXISTS (
		SELECT FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
		WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND am.amname = 'btree'
		AND i.indnkeyatts >= 2
		AND i.indkey[0] = u.attnum AND i.indkey[1] = k.attnum AND i.indoption[0] = i.indoption[1])
	THEN concat('CREATE INDEX ', CASE c.relkind WHEN 'r' THEN 'CONCURRENTLY ' END) END, ''),
	has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE')
		OR has_table_privilege(c.oid, 'DELETE')
FROM pg_class c
JOIN pg_attribute u ON u.attrelid = c.oid AND u.attname = 'updated_at'
JOIN pg_attribute k ON k.attrelid = c.oid AND k.attname = 'id'
WHERE c.oid = to_regclass($1)`

// CheckTable describes r's table. Its errors are those of Source.Read.
func CheckTable(ctx context.Context, db *DB, r *schemas.Resource) (Table, error) {
	t, err := newChunkReader(db, SourceConfig{Resource: r}).describe(ctx)
	if err != nil {
		return Table{}, db.explain(r.Table, err)
	}
	found := Table{Name: t.name, Missing: t.missing, Unknown: t.unknown, NoFloor: t.noFloor,
		Hidden: t.hidden}
	q := statement{sql: tableSQL}
	q.param(pgtype.TextOID, t.name)
	_, err = db.ask(ctx, nil, nil, &q, &found.CreateIndex, &found.Writable)
	if err != nil {
		return found, db.explain(r.Table, err)
	}
	if found.CreateIndex != "" {
		found.CreateIndex += "ON " + t.name + " (updated_at, id);"
	}
	return found, nil
}
