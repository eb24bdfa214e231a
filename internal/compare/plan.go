package compare

import "math"

// Range is the ids from First to Last, both included.
type Range struct{ First, Last int64 }

var everyID = Range{math.MinInt64, math.MaxInt64}

// Holds says whether id is in r.
func (r Range) Holds(id int64) bool { return r.First <= id && id <= r.Last }

// All says whether r is every id there is.
func (r Range) All() bool { return r == everyID }

// Of a comparison's memory five eighths are for the rows of a part, and an eighth for the suspects (or a
// MiB). The rest is for what both sides hold while they are read.
func tableShare(memory int64) int64    { return memory / 8 * 5 }
func suspectsShare(memory int64) int64 { return max(memory/8, 1<<20) }

// Plan is what a comparison is expected to take.
type Plan struct {
	Rows  int64 // of the topic
	Parts int64
	Bytes int64 // of memory
}

// NewPlan says what comparing so many rows is expected to take within memory bytes. Parts is 1 where the
// source cannot be read by id.
func NewPlan(rows, memory int64, byID bool) Plan {
	p := Plan{Rows: rows, Parts: 1, Bytes: memory/8*3 + rows*rowBytes}
	if room := tableShare(memory); byID && rows*rowBytes > room {
		// A part that ends early is full by seven eighths or more.
		p.Parts, p.Bytes = (rows*rowBytes-1)/(room*15/16)+1, memory
	}
	return p
}

// needs is how much memory a comparison of so many rows in one part needs.
func needs(rows int64) int64 { return rows*rowBytes/5*8 + 1<<20 }
