package watermark

import "github.com/storestream/storestream/schemas"

// Load is the place of a load that reads a PostgreSQL table in the order of its blocks. All rows stamped
// earlier than Before in the blocks before Block are published. It never changes: the next place is another
// Load.
type Load struct {
	// File identifies the table's file. It has the cluster and the database, too.
	File string `json:"file"`
	// Block and Blocks are the next block, and the number of blocks. Block may be read in part.
	Block  int64 `json:"block"`
	Blocks int64 `json:"blocks"`
	// Before is the updated_at from which polls read the rows.
	Before schemas.Instant `json:"before"`
	// After holds updated_at and id of the last row. It is the last one read of Block, in the order (updated_at,
	// id). The updated_at is in PostgreSQL's microseconds. Nil means none.
	After *[2]int64 `json:"after,omitempty"`
}

// Back returns the load that leaves rows stamped from or later to the passes, or nil if that leaves no row
// after settled.
func (l *Load) Back(from, settled schemas.Instant) *Load {
	if l == nil || from <= settled {
		return nil
	}
	back := *l
	back.Before = min(from, l.Before)
	return &back
}
