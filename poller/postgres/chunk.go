package postgres

import (
	"fmt"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// leastBad is the number of consecutive rows that cannot be published which is no accident any more.
const leastBad = 20

// chunk is a part of the rows of one transaction, in memory.
type chunk struct {
	clock   *clock
	table   *table
	rows    []schemas.Record
	final   []bool // for each row, if the query asked for it: see pass.final
	rejects []schemas.Reject
	// from is the place where the chunk begins, end that of its last row. last is set if no row of the query
	// comes after it.
	from, end key
	last      bool
	bytes     int // of its rows, encoded
}

// count returns the number of rows, bad ones included.
func (c *chunk) count() int { return len(c.rows) + len(c.rejects) }

// bad returns true if none of leastBad rows or more can be published: something bigger is wrong than those
// rows.
func (c *chunk) bad() bool { return len(c.rows) == 0 && len(c.rejects) >= leastBad }

// blocked returns the error with which a bad chunk stops the resource.
func (c *chunk) blocked(table string) *poller.BlockedError {
	reject := c.rejects[0]
	return &poller.BlockedError{What: fmt.Sprintf("table %s: none of %d rows read together can be published, "+
		"the first because of %s (%s). Something bigger is wrong than those rows. They stay unpublished, "+
		"and reading continues by itself once they are good", table, len(c.rejects), reject.Field, reject.Err)}
}

// batch returns the chunk's rows as a batch that settles nothing.
func (c *chunk) batch() poller.Batch {
	return poller.Batch{Rows: c.rows, Rejects: c.rejects, Final: c.final, Settled: schemas.MinInstant}
}
