package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// table describes a resource's table, as the server's catalogue had it at one moment. It never changes.
type table struct {
	// name is schema-qualified and quoted: search_path belongs to the session, and sessions to the pooler.
	// plainName is the same without the additions of cutLong.
	name      string
	plainName string
	// bareName has no schema, as in the resource.
	bareName  string
	list      string // the SELECT list
	columns   []pgconn.FieldDescription
	decoder   *schemas.ColumnDecoder
	updatedAt int // the place of updated_at in list
	// createdIsTime is set if created_at is a timestamp. Sweeps then take rows that were created later, too.
	createdIsTime bool
	cuts          bool     // list leaves out values that are too long, and its last column names them
	fields        []string // the schema's fields that the table has, in the schema's order
	missing       []string // the schema's fields that it does not have: they are null
	unknown       []string // columns that the role may read and the schema does not know, sorted
	// oid and hidden (row security may hide rows from the role) are compared with every chunk's clock.
	// schema and kind (its relkind) are compared with the watermark's.
	oid          uint32
	hidden       bool
	schema, kind string
	// history is the one of histories that the server answers to the role.
	history string
	// alone is set for an ordinary table without children and row security.
	alone   bool
	leadsTo string // the answer to leadsToSQL
	// lockable is set if the role may take the lightest lock on the table and on all relations that it leads
	// to. That needs the right to all columns; below a view, the view's owner needs it.
	lockable bool
	// noFloor is why its rows' transaction ids do not show which rows were met before, or "" if they do.
	noFloor string
}

const catalogueSQL = belowSQL + `SELECT n.nspname::text, c.relname::text, c.relkind::text, c.oid,
	row_security_active(c.oid), c.relhassubclass,
	coalesce(has_column_privilege(c.oid, (-2)::int2, 'SELECT') -- xmin
		AND has_column_privilege(c.oid, (-6)::int2, 'SELECT'), false), -- tableoid
	` + elsewhereSQL + `, ` + leadsToSQL + `,
	coalesce((SELECT bool_and(lockable OR kind NOT IN ('r', 'p', 'v')) FROM below), false),
	a.readable, a.columns
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL (
	SELECT array_agg(attname::text) FILTER (WHERE has_column_privilege(c.oid, attnum, 'SELECT')) AS readable,
		array_agg(attname::text) AS columns
	FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a
WHERE c.oid = to_regclass($1) AND c.relpersistence <> 't'`

// belowSQL lists all relations that the one named $1 leads to: itself, its partitions and children, and the
// relations below a view. Every role may ask, even about relations that it may not read. A LOCK of a view
// locks all of them with the rights of the column role, and needs no right to a child.
//
// rules are those that decide which rows they show: the definition of each view, and the policies that apply
// to the role. all_rules has the functions too that these call. The catalogues do not show which tables a
// function reads, and which functions it calls.
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
	) AS x(oid, role, child) JOIN pg_class c ON c.oid = x.oid
), rules AS (
	SELECT r.oid, r.tableoid, r.xmin, pg_get_viewdef(b.oid) AS definition
	FROM below b JOIN pg_rewrite r ON r.ev_class = b.oid AND r.ev_type = '1' WHERE b.kind = 'v'
	UNION ALL
	SELECT p.oid, p.tableoid, p.xmin, pg_get_expr(p.polqual, p.polrelid)
	FROM below b JOIN pg_class c ON c.oid = b.oid JOIN pg_policy p ON p.polrelid = b.oid
	WHERE c.relrowsecurity AND (c.relforcerowsecurity OR NOT pg_has_role(b.role, c.relowner, 'USAGE'))
		AND NOT (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE oid = b.role) -- as row_security_active
		AND (0 = ANY (p.polroles) OR EXISTS (SELECT FROM unnest(p.polroles) AS u(role)
			WHERE pg_has_role(b.role, u.role, 'USAGE')))
), all_rules AS (
	SELECT oid, xmin, definition FROM rules
	UNION ALL
	SELECT f.oid, f.xmin, pg_get_functiondef(f.oid)
	FROM rules r JOIN pg_depend d ON d.classid = r.tableoid AND d.objid = r.oid
		AND d.refclassid = 'pg_proc'::regclass JOIN pg_proc f ON f.oid = d.refobjid
	WHERE f.prokind = 'f')
`

// elsewhereSQL finds a reason not to read the table. It returns a letter and a name, or "": the kind and
// name of a relation whose rows do not come and go with this server's transactions, or s and a custom
// setting that the rules use and that has no value.
const elsewhereSQL = `coalesce(
	(SELECT kind::text || oid::regclass::text FROM below WHERE kind IN ('f', 'm') ORDER BY oid LIMIT 1),
	(SELECT 's' || min(s[1]) FROM all_rules, regexp_matches(definition,
		'current_setting[[:space:]]*[(][[:space:]]*''([^'']+[.][^'']+)''', 'gi') AS s
		WHERE coalesce(current_setting(s[1], true), '') = ''), '')`

// leadsToSQL names all relations below, and for each rule the transaction that defined it: CREATE OR REPLACE
// VIEW or ALTER POLICY may show other rows of the same tables. It begins with the number of the column
// updated_at: if that is dropped and added again with a default, all rows get a stamp, and no transaction has
// written them.
const leadsToSQL = `concat_ws(',', ` + updatedAtSQL + `,
	(SELECT string_agg(concat(oid, kind), ',' ORDER BY oid) FROM below),
	(SELECT string_agg(concat(oid, '/', xmin), ',' ORDER BY oid) FROM all_rules))`

const updatedAtSQL = `(SELECT attnum FROM pg_attribute
	WHERE attrelid = to_regclass($1) AND attname = 'updated_at')`

// aloneSQL gives the answers of elsewhereSQL and leadsToSQL for a table that was alone, and maybe is not any
// more. It is cheaper: with those a pass took 18 ms in place of 3.
const aloneSQL = `'', coalesce((SELECT concat_ws(',', ` + updatedAtSQL + `, concat(oid, relkind),
	CASE WHEN relhassubclass THEN 'children' END) FROM pg_class WHERE oid = to_regclass($1)), '')`

// isElsewhere returns the *poller.BlockedError for an answer to elsewhereSQL that is not "".
//
// The clock belongs to this server. Rows of a foreign table belong to another one, whose open transactions
// this server's snapshot does not list, so settled would pass its rows. A materialized view gets its rows at
// a REFRESH, with earlier stamps.
//
// A setting without a value is unknown in a new session. If another client of the pooler has set it, it is
// empty after RESET ALL, because PostgreSQL cannot forget it. So two reads may see different rows, and a
// sweep would delete the difference.
func isElsewhere(table, found string) error {
	if found[0] == 's' {
		return &poller.BlockedError{What: fmt.Sprintf("a view or policy of %s asks for the setting %s, which has "+
			"no value for the role. Another client of the pooler may leave it empty in its session, which would show "+
			"other rows, so the table is not read. Give it the value to read with: ALTER ROLE ... SET %[2]s = "+
			"'...' (not empty), and let the pooler open its connections anew (RECONNECT)", table, found[1:])}
	}
	return &poller.BlockedError{What: fmt.Sprintf("%s leads to %s, %s, whose rows may appear long after the "+
		"time that they are stamped with. Rows would be missed, so the table is not read. Let the name lead to "+
		"plain tables, and postgres.dsn to their server, or read the resource over REST (source: rest)",
		table, found[1:], kinds[found[:1]])}
}

// noFloor returns why a relation of this kind has no floor, or "". If a transaction that wrote no row of the
// relation can make rows of it visible, or the role may not read a row's xmin, each pass reads everything
// from settled on.
//
// unidentified is the error of the first of histories, or nil. Some servers have these functions, and raise
// an error.
func noFloor(kind string, hidden, children, privileged bool, unidentified *pgconn.PgError) string {
	switch {
	case kind != "r":
		return "it is " + kinds[kind]
	case children:
		return "other tables inherit from it"
	case hidden:
		return "row security is active for the role"
	case !privileged:
		return "the role has SELECT on single columns only, and not on xmin: GRANT SELECT on the whole table"
	case unidentified != nil:
		return fmt.Sprintf("the server does not say which database this is: %s (SQLSTATE %s). Perhaps the role "+
			"lacks a right: GRANT EXECUTE ON FUNCTION pg_control_system(), pg_control_checkpoint(), "+
			"pg_control_recovery(), pg_walfile_name(pg_lsn), pg_stat_get_archiver(), pg_stat_get_slru()",
			unidentified.Message, unidentified.Code)
	}
	return ""
}

// selectFields makes the SELECT list: the schema's fields that the table has, in the schema's order. readable
// are the columns that the role may read. If a field is not readable, the server refuses the query. If a
// required field is missing, the decoder refuses the row.
func (t *table) selectFields(r *schemas.Resource, columns, readable []string) {
	var list []string
	for _, f := range r.Fields {
		if slices.Contains(columns, f.Name) {
			t.fields = append(t.fields, f.Name)
			list = append(list, pgx.Identifier{f.Name}.Sanitize())
		} else {
			t.missing = append(t.missing, f.Name)
		}
	}
	t.list = strings.Join(list, ", ")
	for _, column := range readable {
		if !slices.ContainsFunc(r.Fields, func(f schemas.Field) bool { return f.Name == column }) {
			t.unknown = append(t.unknown, column)
		}
	}
	slices.Sort(t.unknown)
}

// takeTypes takes over the types of the list's result. For a domain they are the types beneath.
func (t *table) takeTypes(r *schemas.Resource, result []pgconn.FieldDescription) (err error) {
	t.columns = slices.Clone(result)
	for i, f := range result {
		switch f.Name {
		case "updated_at":
			t.updatedAt = i
		case "created_at":
			t.createdIsTime = f.DataTypeOID == pgtype.TimestampOID || f.DataTypeOID == pgtype.TimestamptzOID
		}
	}
	if t.decoder, err = schemas.NewColumnDecoder(r, t.columns); err != nil {
		return &poller.BlockedError{What: "the columns of " + t.name + " do not fit the schema", Err: err}
	}
	return nil
}

// matches returns true if a result still has the types that the server described. It may have one column
// more: see pass.final.
func (t *table) matches(fields []pgconn.FieldDescription) bool {
	fields = fields[:min(len(fields), len(t.columns))]
	return slices.EqualFunc(fields, t.columns, func(a, b pgconn.FieldDescription) bool {
		return a.DataTypeOID == b.DataTypeOID
	})
}
