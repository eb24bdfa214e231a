package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// missingAgain is how often the server is asked for columns that the schema has and the table had not.
// Nothing else would notice: a SELECT of the other columns goes on working when such a column is added.
const missingAgain = time.Minute

// catalogue knows the table of a resource, and asks the server for it again when that may have changed.
type catalogue struct {
	db       *DB
	resource *schemas.Resource
	log      *zap.Logger

	table   *table // nil: ask
	asked   time.Time
	missing string // the columns that the log named last
}

func (c *catalogue) get(ctx context.Context) (*table, error) {
	if t := c.table; t != nil && (len(t.missing) == 0 || time.Since(c.asked) <= missingAgain) {
		return t, nil
	}
	t, err := readTable(ctx, c.db, c.resource)
	if err != nil {
		return nil, err
	}
	c.table, c.asked = t, time.Now()
	c.logMissing()
	return t, nil
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
