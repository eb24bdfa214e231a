package watermark

import "github.com/storestream/storestream/schemas"

// Load is the place of a load that reads a PostgreSQL table in the order of its blocks. All rows stamped
// earlier than Before in the blocks before Block are published. It never changes: the next place is another
// Load.
type Load struct {
	// File identifies the file that holds the table, and its cluster and database.
	File string `json:"file"`
	// Block is the first block that is not read to its end. Blocks is the number of blocks to read.
	Block  int64 `json:"block"`
	Blocks int64 `json:"blocks"`
	// Before is where the passes begin that follow the load.
	Before schemas.Instant `json:"before"`
	// After is the last row that was read of Block, in the order (updated_at, id): its updated_at in
	// PostgreSQL's microseconds, and its id. Nil means none.
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
