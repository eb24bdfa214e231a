package watermark

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// Transaction is what one Kafka transaction writes: a read_committed consumer sees all of it, or nothing.
type Transaction struct {
	// Rows are upserts, in the order in which a consumer is to see them.
	Rows []schemas.Record
	// Deletes are the ids to write tombstones for.
	Deletes []int64
	// Strays are records of others in the data topic to write tombstones over.
	Strays []Stray
	// DeadLetters go to the dead-letter topic.
	DeadLetters []DeadLetter
	// Watermark is the state once this transaction is visible.
	Watermark Watermark
}

// Len is how many records t writes beside the watermark.
func (t *Transaction) Len() int {
	return len(t.Rows) + len(t.Deletes) + len(t.Strays) + len(t.DeadLetters)
}

// MaxDeadLetters limits the dead letters of one resource. Every owner keeps their keys, some 100 bytes each.
// If more rows cannot be published, settling is delayed.
const MaxDeadLetters = 100_000

// DeadLetter is a record of the dead-letter topic.
type DeadLetter struct {
	// Key is DeadLetterKey's.
	Key string
	// Row is the row as a JSON object. Nil removes the dead letter.
	Row []byte
	// The record's headers. Field may be empty; Err never holds a value of the row.
	Source, Field, Err string
	// The place and the Kafka time of a letter that was read.
	Partition int32
	Offset    int64
	Time      time.Time
}

// Stray is the newest record with a row's key in a partition to which that key does not belong. Another
// producer wrote it, because ours never write there. Compaction never removes it beside the row's own record,
// because it looks at one partition at a time.
type Stray struct {
	ID        int64
	Partition int32
}

// Published is a record found in the data topic: by a takeover, by a comparison, or for people.
type Published struct {
	ID int64
	// Partition and Offset are its place.
	Partition int32
	Offset    int64
	// UpdatedAt is floored to the millisecond: Avro keeps no more.
	UpdatedAt schemas.Instant
	// CreatedAt is there for comparisons only.
	CreatedAt schemas.Instant
	// Hash is schemas.Hash of the value as today's schema encodes it.
	Hash uint64
	// Size is the number of bytes of the value.
	Size int
	// Time is the Kafka record time.
	Time schemas.Instant
	// Tombstone is set if the row is deleted. The other fields but ID are then zero.
	Tombstone bool
	// Old is set if the record lies before the end offsets of the replay in hand. It then does not suppress an
	// equal row.
	Old bool
	// Beyond is set if the record lies behind Watermark.Ends. The watermark that was written with it was lost.
	Beyond bool
	// Stray is set if its key does not belong to Partition. It is then no state of the row. Only comparisons get
	// such records.
	Stray bool
	// Foreign is set if its key is no row's. ID then has no meaning. Only comparisons get such records.
	Foreign bool
	// Unread is set if a Foreign record stands for a batch of another program that was not read, so its keys
	// are not known.
	Unread bool
	// Value is the decoded value, for people. It is valid as long as the record that it was read from.
	Value schemas.Value
	// Err is the reason why another program must have written the record, or nil. UpdatedAt and CreatedAt are
	// then MinInstant.
	Err error
}
