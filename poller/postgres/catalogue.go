package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// missingAgain is the interval at which the server is asked for columns that the schema has and the table
// does not. A SELECT of the other columns still works when such a column is added, so no error would show
// it.
const missingAgain = time.Minute

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
	asked   time.Time
	missing string // the missing columns that were logged last
	// before identifies the table that was read before. Nil means that it is not known.
	before *watermark.Identity
	// had are the schema's fields that the table has had, according to this process and the watermark.
	had []string
}

func (c *catalogue) get(ctx context.Context) (*table, error) {
	t := c.table
	if t != nil && (len(t.missing) == 0 || time.Since(c.asked) <= missingAgain) {
		return t, c.accept(t)
	}
	t, err := readTable(ctx, c.db, c.resource)
	if err == nil {
		err = c.accept(t)
	}
	if err != nil {
		return nil, err
	}
	c.table, c.asked = t, time.Now()
	c.logMissing()
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
		"read. Put the column back under its name: reading continues within a minute. If it is meant to be "+
		"gone, take the field out of the schema (schemas.dir) and restart", t.name, names)}
}

// forget makes the next get ask the server.
func (c *catalogue) forget() { c.table = nil }

// logMissing logs the columns that the table lacks, when they have changed.
func (c *catalogue) logMissing() {
	before := c.missing
	c.missing = strings.Join(c.table.missing, ", ")
	table := zap.String("table", c.table.name)
	switch c.missing {
	case before:
	case "":
		c.log.Info("the table has all columns again", table)
	default:
		c.log.Warn("the table lacks columns of the schema: null is published in their place until they are there "+
			"(noticed within a minute; a sweep repairs the rows)", table, zap.String("columns", c.missing))
	}
}
