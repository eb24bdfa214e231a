package reconcile

import (
	"context"
	"iter"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Config says what to compare, and how. All of it is needed unless it says otherwise.
type Config struct {
	Topic  TopicReader
	Source SourceReader
	// ByID is set if the source finds a row by its id. Otherwise it finds one by its days (Suspect).
	ByID bool
	// CatchesUp is set if no read of the source shows an older state of a row than a read before it.
	CatchesUp bool
	// From is the first id to compare. IDs, if not nil, are the rows to compare instead, all of them in one
	// part.
	From int64
	IDs  []int64
	// Again, if not nil, makes the comparison one for a replay (package comment). Letters are then nil.
	Again *Again
	// Start is the earliest updated_at of the topic's rows. MinInstant means that the topic holds all rows.
	Start schemas.Instant
	// CreatedAt returns the created_at in a row's value, or MinInstant if it cannot be read.
	CreatedAt func(value []byte) schemas.Instant
	// MaxValueBytes limits the value of a record of the topic. A larger row counts as a dead letter if it
	// differs. Zero means that each row fits.
	MaxValueBytes int
	// Letters has watermark.DeadLetterHash of the row of each dead letter, by the row's id. If it is nil, dead
	// letters are not compared.
	Letters map[int64]uint64
	Now     func() time.Time
	// Overlap is the time between two looks that confirm a difference.
	Overlap time.Duration
	// MaxSuspects limits the differences of a part. Zero means 100,000.
	MaxSuspects int
	// Memory limits the comparison's memory in bytes, including a batch of the source. Zero means 128 MiB.
	Memory int64
	// Scratch limits the bytes of the file, which has the notes beyond Memory. Zero means that there is none.
	Scratch int64
	// Before, if not nil, is a comparison of ids before From. Its notes are used, so no side is read again.
	Before *Comparison
}

// TopicReader folds the newest committed records of the topic and returns the topic's end offsets, which it
// notes before it folds the first record. It begins at the offsets from, or at the start if from is nil. It
// passes over ids that are not wanted. If wanted is nil, all are.
type TopicReader func(ctx context.Context, from []int64, wanted func(id int64) bool,
	fold func(watermark.Published) error) (ends []int64, err error)

// SourceReader yields rows of the source, and maybe other rows too: if rows is nil, every row, otherwise
// those of the named rows that exist. The last error says that it cannot be sure to have met every row. An
// answer is valid until the next one.
type SourceReader func(ctx context.Context, rows []Suspect) iter.Seq2[Answer, error]

// Answer is a batch of a source's rows.
type Answer struct {
	Rows    []schemas.Record
	Rejects []schemas.Reject
	// Empty is set if the source shows no row at all, of any id or day.
	Empty bool
}

// Suspect is a row to look at again. A source that is read by day finds it on one of these days; MinInstant:
// unknown.
type Suspect struct {
	ID                   int64
	UpdatedAt, CreatedAt schemas.Instant
}
