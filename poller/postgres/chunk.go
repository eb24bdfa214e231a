package postgres

import (
	"fmt"

	"github.com/storestream/storestream/poller"
)

// leastBad is the number of consecutive rows that cannot be published which is no accident any more.
const leastBad = 20

// chunk is a part of the rows of one transaction, in memory.
type chunk struct {
	poller.Batch // of its rows, which settles nothing. Final is there if the query asked for it: see pass.final

	clock *clock
	table *table
	// from is the place at which the chunk begins, and end that of its last row. last is set if no row of the
	// query comes after it.
	from, end key
	last      bool
	size      int // of its rows, encoded, in bytes
	// doubtful is set if the server fails because of its rows, and of another row too. They may not be the
	// cause.
	doubtful bool
}

// count returns the number of rows, bad ones included.
func (c *chunk) count() int { return len(c.Rows) + len(c.Rejects) }

// bad returns true if all rows are rejects, and they are leastBad or more, or doubtful. Then something bigger
// is wrong than those rows.
func (c *chunk) bad() bool {
	return len(c.Rows) == 0 && (len(c.Rejects) >= leastBad || c.doubtful && len(c.Rejects) > 0)
}

// blocked returns the error with which a bad chunk stops the resource.
func (c *chunk) blocked(table string) *poller.BlockedError {
	reject := c.Rejects[0]
	return &poller.BlockedError{What: fmt.Sprintf("table %s: none of %d rows read together can be published, "+
		"the first because of %s (%s). Something bigger is wrong than those rows. They stay unpublished, "+
		"and reading continues by itself once they are good", table, len(c.Rejects), reject.Field, reject.Err)}
}
