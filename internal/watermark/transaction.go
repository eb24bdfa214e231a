package watermark

import "github.com/storestream/storestream/schemas"

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
	// Watermark is what is true once all this is visible.
	Watermark Watermark
}

// Len is how many records t writes beside the watermark.
func (t *Transaction) Len() int {
	return len(t.Rows) + len(t.Deletes) + len(t.Strays) + len(t.DeadLetters)
}

// MaxDeadLetters is how many dead letters one resource may have. Every owner keeps their keys, some 100 bytes
// each. Where there are more rows that cannot be published, the resource holds.
const MaxDeadLetters = 100_000

// DeadLetter is a record of the dead-letter topic.
type DeadLetter struct {
	// Key is DeadLetterKey's.
	Key string
	// Row is the row as a JSON object; nil takes the dead letter out.
	Row []byte
	// The record's headers. Field may be empty; Err never holds a value of the row.
	Source, Field, Err string
}

// Stray is the newest record with a row's key in a partition where that key does not belong. Another producer
// wrote it, for ours never write there. It stands beside the row's own record for ever, because compaction
// looks at one partition at a time.
type Stray struct {
	ID        int64
	Partition int32
}

// Published is a record found in the data topic: by a takeover, or by a comparison.
type Published struct {
	ID int64
	// UpdatedAt is floored to the millisecond: Avro keeps no more.
	UpdatedAt schemas.Instant
	// CreatedAt is there for comparisons only.
	CreatedAt schemas.Instant
	// Hash is schemas.Hash of the value as today's schema encodes it.
	Hash uint64
	// Time is the Kafka record time.
	Time schemas.Instant
	// Tombstone: the row is deleted. The other fields but ID are 0.
	Tombstone bool
	// Old: it stands before the end offsets of the replay in hand, so it does not suppress an equal row.
	Old bool
	// Beyond: it stands behind Watermark.Ends, so the watermark that spoke of it was lost.
	Beyond bool
	// Stray: it lies in Partition, where its key does not belong, and says nothing of the row. Only comparisons
	// get such records.
	Stray     bool
	Partition int32
	// Foreign: its key is no row's, and ID means nothing. Only comparisons get such records.
	Foreign bool
	// Unread is set if a Foreign record stands for a batch of another program that was not read, so its keys
	// are not known.
	Unread bool
}
