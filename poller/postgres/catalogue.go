package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/poller"
	"go.uber.org/zap"
)

// errChanged means that a table is no longer as the catalogue had it: its name leads to another one, row
// security was switched on or off, or columns have other types.
var errChanged = errors.New("the table was replaced or altered while it was read")

// describe returns the resource's table, as it was when the server was last asked. Its error is a
// *poller.BlockedError if the table cannot be read as it is, or the server's.
func (r *chunkReader) describe(ctx context.Context) (*table, error) {
	if r.table != nil {
		return r.table, r.accept(r.table)
	}
	t := &table{bareName: pgx.Identifier{r.Resource.Table}.Sanitize()}
	q := statement{sql: catalogueSQL}
	q.param(pgtype.TextOID, t.bareName)
	var name, elsewhere string
	var children, privileged bool
	var readable, columns []string
	_, err := r.db.ask(ctx, nil, nil, &q, &t.schema, &name, &t.kind, &t.oid, &t.hidden, &children, &privileged,
		&elsewhere, &t.leadsTo, &t.lockable, &readable, &columns)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, &pgconn.PgError{Code: "42P01", Message: "it does not exist, or is a temporary table"}
	case err != nil:
		return nil, err
	}
	var unidentified *pgconn.PgError
	for _, t.history = range histories {
		_, err = r.db.ask(ctx, nil, nil, &statement{sql: "SELECT " + t.history}, nil, nil, nil)
		refusal, refused := errors.AsType[*pgconn.PgError](err)
		if step, _ := r.db.diagnose(r.Resource.Table, err, 0); !refused || step == again || step == smaller {
			break
		}
		unidentified = cmp.Or(unidentified, refusal) // another try does not help
	}
	if err != nil {
		return nil, err
	}
	t.alone = t.kind == "r" && !children && !t.hidden
	t.plainName = pgx.Identifier{t.schema, name}.Sanitize()
	t.name, t.noFloor = t.plainName, noFloor(t.kind, t.hidden, children, privileged, unidentified)
	if elsewhere != "" {
		return nil, isElsewhere(t.name, elsewhere)
	}
	t.selectFields(r.Resource, columns, readable)
	tx, err := r.db.begin(ctx, nil, nil, &statement{sql: "SELECT " + t.list + " FROM " + t.name + " LIMIT 0"})
	if err != nil {
		return nil, err
	}
	if err = tx.close(t.takeTypes(r.Resource, tx.rows.FieldDescriptions())); err != nil {
		return nil, err
	}
	if err = r.accept(t); err != nil {
		return nil, err
	}
	if missing := strings.Join(t.missing, ", "); missing != "" && missing != r.missing {
		r.missing = missing
		r.Log.Warn("the table lacks columns of the schema: null is published in their place until they are there "+
			"(a sweep repairs the rows)", zap.String("table", t.name), zap.String("columns", missing))
	}
	r.table = t
	return t, nil
}

// expect adds fields that the table has had.
func (r *chunkReader) expect(fields []string) {
	for _, f := range fields {
		if !slices.Contains(r.had, f) {
			r.had = append(r.had, f)
		}
	}
}

// accept returns a *poller.BlockedError if t is another table than before (isAnother), or lacks a column that
// the table had. Null in the column's place would erase its values in the topic for every row that is read
// again, and a sweep would spread that to all rows. Only the table's owner knows whether the column is meant
// to go.
//
// A field that the table never had is null. So is a field before the first complete pass.
func (r *chunkReader) accept(t *table) error {
	neverWas := func(field string) bool { return !slices.Contains(r.had, field) }
	gone := slices.DeleteFunc(slices.Clone(t.missing), neverWas)
	if len(gone) == 0 {
		if err := t.isAnother(r.before, r.Resource); err != nil {
			return err
		}
		r.expect(t.fields)
		return nil
	}
	return &poller.BlockedError{What: fmt.Sprintf("table %s has no column %s any more: renamed or dropped, or "+
		"the table was replaced by one without it. Null would replace the values of its rows, so the table is not "+
		"read. Put the column back under its name: reading continues by itself. If it is meant to be gone, take "+
		"the field out of the schema (schemas.dir) and restart", t.name, strings.Join(gone, ", "))}
}
