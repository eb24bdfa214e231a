package compare

import (
	"math"

	"github.com/storestream/storestream/internal/rowset"
)

// Range is the ids from First to Last, both included.
type Range struct{ First, Last int64 }

var everyID = Range{math.MinInt64, math.MaxInt64}

// Holds reports whether id is in r.
func (r Range) Holds(id int64) bool { return r.First <= id && id <= r.Last }

// All reports whether r is every possible id.
func (r Range) All() bool { return r == everyID }

// A part's rows take eleven sixteenths of a comparison's memory. The suspects take an eighth, at least 1 MiB.
// Readers of both sides take the rest.
func tableShare(memory int64) int64    { return memory / 16 * 11 }
func suspectsShare(memory int64) int64 { return max(memory/8, 1<<20) }

// Plan is the expected size of a comparison.
type Plan struct {
	Rows  int64 // of the topic
	Parts int64
	Bytes int64 // of memory
}

// NewPlan returns the plan for so many rows within memory bytes. Parts is 1 if the source cannot be read by
// id.
func NewPlan(rows, memory int64, byID bool) Plan {
	p := Plan{Rows: rows, Parts: 1, Bytes: memory/16*5 + rows*rowset.RowBytes}
	if room := tableShare(memory); byID && rows*rowset.RowBytes > room {
		// A part that ends early is full by seven eighths or more.
		p.Parts, p.Bytes = (rows*rowset.RowBytes-1)/(room*15/16)+1, memory
	}
	return p
}

// needs returns the memory that a comparison of so many rows in one part needs.
func needs(rows int64) int64 { return rows*rowset.RowBytes/11*16 + 1<<20 }
