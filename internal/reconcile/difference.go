package reconcile

import (
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Kind is how a row differs.
type Kind string

// The kinds of differences. verify reports the first four.
const (
	Missing Kind = "missing" // the source has the row, the topic has not
	Stale   Kind = "stale"   // both have it, with another content
	Extra   Kind = "extra"   // the topic has it, the source has not
	Unknown Kind = "unknown" // the source showed it in one reading and not in another
	// Unpublishable rows of the source have no dead letter, or another one.
	Unpublishable Kind = "unpublishable"
	// Leftover dead letters are of rows that are well, or that neither side has.
	Leftover Kind = "leftover"
	// Replayed is a row that a replay wants, and that a look has shown as the topic has it. It counts at once.
	Replayed Kind = "replayed"
)

// Kinds returns the kinds of differences between topic and source, in the order in which people read them.
func Kinds() []Kind { return []Kind{Missing, Stale, Extra, Unknown} }

// Difference is one row that differs.
type Difference struct {
	Kind Kind
	ID   int64
	// Counts is set if the difference was confirmed. An Unknown one never is.
	Counts bool
	// Row is the row as the source shows it, Reject the same of a row that cannot be published. Both are nil if
	// the source does not show it. An Unknown row that the first reading did not show has a Row.
	Row    *schemas.Record
	Reject *schemas.Reject
	// InTopic is set if the topic has a record of the row that is no tombstone. Newest is the newest record, a
	// tombstone too. It is nil if there is none, or if the row is not named.
	InTopic bool
	Newest  *watermark.Published
	// Letter is set if the row had a dead letter when the comparison began.
	Letter bool
	// Strays are the newest records of the row in partitions of other keys (watermark.Stray). They make the
	// row differ even if its own record is right.
	Strays []watermark.Published
}
