package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// Errors of a table that is no longer as the catalogue has it.
var (
	// errSwapped means that the table's name leads to another table, or that row security was switched on or
	// off.
	errSwapped = errors.New("the table was replaced while it was read")
	// errRetyped means that the columns have other types: ALTER TABLE in the middle of a read.
	errRetyped = errors.New("the table's columns changed while it was read")
)

// catalogue has the description of a resource's table, and asks the server again when the table may have
// changed.
type catalogue struct {
	db       *DB
	resource *schemas.Resource
	log      *zap.Logger

	table   *table // nil makes the next get ask the server
	missing string // the missing columns that were logged last
	// before identifies the table that was read before. Nil means that it is not known.
	before *watermark.Identity
	// had are the schema's fields that the table has had, according to this process and the watermark.
	had []string
}

// get returns the table. Its error is a *poller.BlockedError if the table cannot be read as it is, or the
// server's.
func (c *catalogue) get(ctx context.Context) (*table, error) {
	if c.table != nil {
		return c.table, c.accept(c.table)
	}
	t := &table{bareName: pgx.Identifier{c.resource.Table}.Sanitize()}
	q := statement{sql: catalogueSQL}
	q.param(pgtype.TextOID, t.bareName)
	var name, elsewhere string
	var children, privileged bool
	var readable, columns []string
	_, err := c.db.ask(ctx, nil, nil, &q, &t.schema, &name, &t.kind, &t.oid, &t.hidden, &children, &privileged,
		&t.identified, &elsewhere, &t.leadsTo, &t.lockable, &readable, &columns)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, &pgconn.PgError{Code: "42P01", Message: "it does not exist, or is a temporary table"}
	case err != nil:
		return nil, err
	case len(readable) == 0:
		return nil, &pgconn.PgError{Code: "42501", Message: "permission denied for all of its columns"}
	}
	t.plainName = pgx.Identifier{t.schema, name}.Sanitize()
	t.name, t.noFloor = t.plainName, noFloor(t.kind, t.hidden, children, privileged, t.identified)
	if elsewhere != "" {
		return nil, isElsewhere(t.name, elsewhere)
	}
	if err = t.selectFields(c.resource, columns, readable); err != nil {
		return nil, err
	}
	tx, err := c.db.begin(ctx, nil, nil, &statement{sql: "SELECT " + t.list + " FROM " + t.name + " LIMIT 0"})
	if err != nil {
		return nil, err
	}
	if err = tx.close(t.takeTypes(c.resource, tx.rows.FieldDescriptions())); err != nil {
		return nil, err
	}
	if err = c.accept(t); err != nil {
		return nil, err
	}
	if missing := strings.Join(t.missing, ", "); missing != "" && missing != c.missing {
		c.missing = missing
		c.log.Warn("the table lacks columns of the schema: null is published in their place until they are there "+
			"(a sweep repairs the rows)", zap.String("table", t.name), zap.String("columns", missing))
	}
	c.table = t
	return t, nil
}

// expect adds fields that the table has had.
func (c *catalogue) expect(fields []string) {
	for _, f := range fields {
		if !slices.Contains(c.had, f) {
			c.had = append(c.had, f)
		}
	}
}

// accept returns a *poller.BlockedError if t is another table than before (isAnother), or lacks a column that
// the table had. Null in the column's place would erase its values in the topic for every row that is read
// again, and a sweep would spread that to all rows. Only the table's owner knows whether the column is meant
// to go.
//
// A field that the table never had is null. So is a field before the first complete pass.
func (c *catalogue) accept(t *table) error {
	var gone []string
	for _, f := range t.missing {
		if slices.Contains(c.had, f) {
			gone = append(gone, f)
		}
	}
	if gone == nil {
		if err := t.isAnother(c.before, c.resource); err != nil {
			return err
		}
		c.expect(t.fields)
		return nil
	}
	names := strings.Join(gone, ", ")
	return &poller.BlockedError{What: fmt.Sprintf("table %s has no column %s any more: renamed or dropped, or "+
		"the table was replaced by one without it. Null would replace the values of its rows, so the table is not "+
		"read. Put the column back under its name: reading continues by itself. If it is meant to be "+
		"gone, take the field out of the schema (schemas.dir) and restart", t.name, names)}
}
