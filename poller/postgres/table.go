package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// OIDs of the built-in types that matter here, the same in every PostgreSQL.
const (
	oidInt8        uint32 = 20
	oidInt2        uint32 = 21
	oidInt4        uint32 = 23
	oidText        uint32 = 25
	oidOid         uint32 = 26
	oidXid         uint32 = 28
	oidTimestamp   uint32 = 1114
	oidTimestamptz uint32 = 1184
	oidInt8Array   uint32 = 1016
)

// table describes a resource's table, as the server's catalogue had it at one moment. It never changes.
type table struct {
	// name is schema-qualified and quoted: search_path belongs to the session, and sessions to the pooler.
	// plainName is the same without the additions of cutLong.
	name      string
	plainName string
	// bareName has no schema, as in the resource.
	bareName string
	list     string // the SELECT list
	columns  []schemas.Column
	decoder  *schemas.ColumnDecoder
	// The places of the key's columns in list, and the types of parameters.
	id, updatedAt int
	updatedOID    uint32
	createdOID    uint32   // zero if created_at is not a timestamp
	cuts          bool     // list leaves out values that are too long, and its last column names them
	fields        []string // the schema's fields that the table has, in the schema's order
	missing       []string // the schema's fields that it does not have: they are null
	unknown       []string // columns that the role may read and the schema does not know, sorted
	// oid and hidden (row security may hide rows from the role) are compared with every chunk's clock.
	// schema and kind (its relkind) are compared with the watermark's.
	oid          uint32
	hidden       bool
	schema, kind string
	// identified is set if the role may ask for the identity of the database (historySQL). alone is set for
	// an ordinary table without children and row security.
	identified, alone bool
	// lockable is set if the role may take the lightest lock on the table and on all relations that it leads
	// to. That needs the right to all columns; below a view, the view's owner needs it.
	lockable bool
	// noFloor is why its rows' transaction ids do not show which rows were met before, or "" if they do.
	noFloor string
}

const catalogueSQL = belowSQL + `SELECT n.nspname, c.relname, c.relkind::text, a.attname,
	has_column_privilege(c.oid, a.attnum, 'SELECT'), c.oid, row_security_active(c.oid), c.relhassubclass,
	has_column_privilege(c.oid, (-2)::int2, 'SELECT') -- xmin
		AND has_column_privilege(c.oid, (-6)::int2, 'SELECT'), -- tableoid
	has_function_privilege('pg_control_system()', 'EXECUTE')
		AND has_function_privilege('pg_control_checkpoint()', 'EXECUTE')
		AND has_function_privilege('pg_control_recovery()', 'EXECUTE')
		AND has_function_privilege('pg_walfile_name(pg_lsn)', 'EXECUTE'),
	` + elsewhereSQL + `,
	(SELECT bool_and(lockable OR kind NOT IN ('r', 'p', 'v')) FROM below)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = to_regclass($1) AND c.relpersistence <> 't'`

// belowSQL lists all relations that the one named $1 leads to: itself, its partitions and children, and the
// relations below a view. Every role may ask, even about relations that it may not read. A LOCK of a view
// locks all of them with the rights of the column role, and needs no right to a child.
//
// The catalogues do not show which tables a function reads.
const belowSQL = `WITH RECURSIVE below(oid, kind, role, lockable) AS (
	SELECT oid, relkind, (SELECT oid FROM pg_roles WHERE rolname = current_user),
		has_table_privilege(oid, 'SELECT')
	FROM pg_class WHERE oid = to_regclass($1)
	UNION
	SELECT c.oid, c.relkind, x.role, x.child OR has_table_privilege(x.role, c.oid, 'SELECT')
	FROM below b CROSS JOIN LATERAL (
		SELECT inhrelid, b.role, true FROM pg_inherits WHERE inhparent = b.oid
		UNION ALL
		SELECT d.refobjid, CASE WHEN (SELECT option_value::boolean FROM pg_options_to_table(v.reloptions)
			WHERE option_name = 'security_invoker') THEN b.role ELSE v.relowner END, false
		FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
			AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> b.oid
		JOIN pg_class v ON v.oid = b.oid
		WHERE r.ev_class = b.oid AND r.ev_type = '1' AND b.kind = 'v' -- ON SELECT
	) AS x(oid, role, child) JOIN pg_class c ON c.oid = x.oid)
`

// rulesSQL lists the rules that decide which rows they show: the definition of each view, the policies that
// apply to the role, and the functions that these call. (The catalogues do not show which functions a
// function calls.)
const rulesSQL = `(WITH rules AS (
	SELECT r.oid, r.tableoid, r.xmin, pg_get_viewdef(b.oid) AS definition
	FROM below b JOIN pg_rewrite r ON r.ev_class = b.oid AND r.ev_type = '1' WHERE b.kind = 'v'
	UNION ALL
	SELECT p.oid, p.tableoid, p.xmin, pg_get_expr(p.polqual, p.polrelid)
	FROM below b JOIN pg_class c ON c.oid = b.oid JOIN pg_policy p ON p.polrelid = b.oid
	WHERE c.relrowsecurity AND (c.relforcerowsecurity OR c.relowner <> b.role)
		AND (0 = ANY (p.polroles) OR EXISTS (SELECT FROM unnest(p.polroles) AS u(role)
			WHERE pg_has_role(b.role, u.role, 'USAGE')))
), all_rules AS (
	SELECT oid, xmin, definition FROM rules
	UNION ALL
	SELECT f.oid, f.xmin, pg_get_functiondef(f.oid)
	FROM rules r JOIN pg_depend d ON d.classid = r.tableoid AND d.objid = r.oid
		AND d.refclassid = 'pg_proc'::regclass JOIN pg_proc f ON f.oid = d.refobjid
	WHERE f.prokind = 'f')`

// elsewhereSQL finds a reason not to read the table. It returns a letter and a name, or NULL: the kind and
// name of a relation whose rows do not come and go with this server's transactions, or s and a custom
// setting that the rules use and that has no value.
const elsewhereSQL = `coalesce(
	(SELECT kind::text || oid::regclass::text FROM below WHERE kind IN ('f', 'm') ORDER BY oid LIMIT 1),
	` + rulesSQL + ` SELECT 's' || min(s[1]) FROM all_rules, regexp_matches(definition,
		'current_setting[[:space:]]*[(][[:space:]]*''([^'']+[.][^'']+)''', 'gi') AS s
		WHERE coalesce(current_setting(s[1], true), '') = ''))`

// leadsToSQL names all of them, and for each rule the transaction that defined it: CREATE OR REPLACE VIEW or
// ALTER POLICY may show other rows of the same tables.
const leadsToSQL = `concat_ws(',', (SELECT string_agg(concat(oid, kind), ',' ORDER BY oid) FROM below),
	` + rulesSQL + ` SELECT string_agg(concat(oid, '/', xmin), ',' ORDER BY oid) FROM all_rules))`

// isElsewhere returns the *poller.BlockedError for an answer to elsewhereSQL, or nil for NULL.
//
// The clock belongs to this server. Rows of a foreign table belong to another one, whose open transactions
// this server's snapshot does not list, so settled would pass its rows. A materialized view gets its rows at
// a REFRESH, with earlier stamps.
//
// A setting without a value is unknown in a new session. If another client of the pooler has set it, it is
// empty after RESET ALL, because PostgreSQL cannot forget it. So two reads may see different rows, and a
// sweep would delete the difference.
func isElsewhere(table string, found []byte) error {
	if len(found) == 0 {
		return nil
	}
	kind, why, remedy := "a foreign table", "its rows are on another server, whose open transactions "+
		"this server does not list", "Let postgres.dsn lead to the server that has the rows"
	switch found[0] {
	case 's':
		return &poller.BlockedError{What: fmt.Sprintf("a view or policy of %s asks for the setting %s, which has "+
			"no value for the role. Another client of the pooler may leave it empty in its session, which would show "+
			"other rows, so the table is not read. Give it the value to read with: ALTER ROLE ... SET %[2]s = "+
			"'...' (not empty), and let the pooler open its connections anew (RECONNECT)", table, found[1:])}
	case 'm':
		kind, why, remedy = "a materialized view", "a REFRESH brings rows long after the time that they are "+
			"stamped with", "Make it a plain view, or let a view of this name lead to the tables below it"
	}
	return &poller.BlockedError{What: fmt.Sprintf("%s leads to %s, %s: %s. Rows would be missed, so the table "+
		"is not read. %s, or read the resource over REST (source: rest)", table, found[1:], kind, why, remedy)}
}

// readTable asks the server for the table of r. Its error is a *poller.BlockedError if the table cannot be
// read as it is, or the server's.
func readTable(ctx context.Context, db *DB, r *schemas.Resource) (*table, error) {
	readable := map[string]bool{} // by column
	t := &table{bareName: pgx.Identifier{r.Table}.Sanitize()}
	var elsewhere error
	q := statement{sql: catalogueSQL}
	q.param(oidText, []byte(t.bareName))
	_, answer, err := db.ask(ctx, catalogueDeadline, &q)
	if err != nil {
		return nil, err
	}
	for _, v := range answer.Rows {
		t.plainName = pgx.Identifier{string(v[0]), string(v[1])}.Sanitize()
		t.name = t.plainName
		readable[string(v[3])] = isTrue(v[4])
		t.schema, t.kind = string(v[0]), string(v[2])
		t.oid, t.hidden = binary.BigEndian.Uint32(v[5]), isTrue(v[6])
		t.identified = isTrue(v[9])
		t.noFloor = noFloor(t.kind, t.hidden, isTrue(v[7]), isTrue(v[8]), t.identified)
		t.alone = t.kind == "r" && !isTrue(v[7]) && !t.hidden
		elsewhere = isElsewhere(t.name, v[10])
		t.lockable = isTrue(v[11])
	}
	if t.name == "" {
		message := fmt.Sprintf("relation %q does not exist", r.Table)
		return nil, &pgconn.PgError{Severity: "ERROR", Code: codeNoTable, Message: message}
	}
	if !slices.Contains(slices.Collect(maps.Values(readable)), true) {
		message := "permission denied for table " + r.Table
		return nil, &pgconn.PgError{Severity: "ERROR", Code: codeNoPrivilege, Message: message}
	}
	if elsewhere != nil {
		return nil, elsewhere
	}
	if err := t.selectFields(r, readable); err != nil {
		return nil, err
	}
	return t, t.describe(ctx, db, r)
}

// noFloor returns why a relation of this kind has no floor, or "". If a transaction that wrote no row of the
// relation can make rows of it visible, or the role may not read a row's xmin, each pass reads everything
// from settled on.
func noFloor(kind string, hidden, children, privileged, identified bool) string {
	switch {
	case kind == "p":
		return "it is partitioned"
	case kind == "v":
		return "it is a view"
	case kind != "r":
		return "it is not an ordinary table"
	case children:
		return "other tables inherit from it"
	case hidden:
		return "row security is active for the role"
	case !privileged:
		return "the role has SELECT on single columns only, and not on xmin: GRANT SELECT on the whole table"
	case !identified:
		return "the role may not ask which database this is: GRANT EXECUTE ON FUNCTION pg_control_system(), " +
			"pg_control_checkpoint(), pg_control_recovery(), pg_walfile_name(pg_lsn)"
	}
	return ""
}

// selectFields makes the SELECT list: the schema's fields that the table has, in the schema's order. The
// decoder complains about a required field that is missing.
func (t *table) selectFields(r *schemas.Resource, readable map[string]bool) error {
	var list []string
	for _, f := range r.Fields {
		switch may, found := readable[f.Name]; {
		case !found:
			t.missing = append(t.missing, f.Name)
		case !may:
			return &poller.BlockedError{What: fmt.Sprintf("the role may not read column %s of %s: GRANT SELECT ON %s",
				f.Name, t.name, t.name)}
		default:
			t.fields = append(t.fields, f.Name)
			list = append(list, pgx.Identifier{f.Name}.Sanitize())
		}
	}
	t.list = strings.Join(list, ", ")
	for column, may := range readable {
		if may && !slices.ContainsFunc(r.Fields, func(f schemas.Field) bool { return f.Name == column }) {
			t.unknown = append(t.unknown, column)
		}
	}
	slices.Sort(t.unknown)
	return nil
}

// describe asks the server for the types of the list's result. For a domain it gives the type beneath.
func (t *table) describe(ctx context.Context, db *DB, r *schemas.Resource) error {
	q := statement{sql: "SELECT " + t.list + " FROM " + t.name + " LIMIT 0"}
	_, answer, err := db.ask(ctx, catalogueDeadline, &q)
	if err != nil {
		return err
	}
	for _, f := range answer.FieldDescriptions {
		t.columns = append(t.columns, schemas.Column{Name: f.Name, OID: f.DataTypeOID})
	}
	if t.decoder, err = schemas.NewColumnDecoder(r, t.columns); err != nil {
		return &poller.BlockedError{What: "read " + t.name, Err: err}
	}
	return t.findKey()
}

// findKey finds the columns of the key. The decoder has made sure that updated_at is a timestamp.
func (t *table) findKey() error {
	for i, c := range t.columns {
		switch c.Name {
		case "id":
			t.id = i
			if c.OID != oidInt8 && c.OID != oidInt4 && c.OID != oidInt2 {
				return &poller.BlockedError{What: fmt.Sprintf(
					"column id of %s is of type OID %d: expected bigint, integer or smallint", t.name, c.OID)}
			}
		case "updated_at":
			t.updatedAt, t.updatedOID = i, c.OID
		case "created_at":
			if c.OID == oidTimestamp || c.OID == oidTimestamptz {
				t.createdOID = c.OID
			}
		}
	}
	return nil
}

// matches returns true if a result still has the types that the server described. It may have one column
// more: see filter.final.
func (t *table) matches(fields []pgconn.FieldDescription) bool {
	fields = fields[:min(len(fields), len(t.columns))]
	return slices.EqualFunc(fields, t.columns, func(f pgconn.FieldDescription, c schemas.Column) bool {
		return f.DataTypeOID == c.OID
	})
}

// isTrue reads a boolean; NULL is false.
func isTrue(v []byte) bool { return len(v) == 1 && v[0] != 0 }
