package watermark

import (
	"encoding/binary"

	"github.com/storestream/storestream/schemas"
)

const (
	// MaxKeySize is the most bytes that a row's key takes.
	MaxKeySize = schemas.HeaderSize + binary.MaxVarintLen64

	// batchOverhead is the most bytes that a batch of one record takes beside the record's key, value and
	// headers: 61 of the batch, 4 that the client counts with it, and 36 of the record's lengths and deltas.
	batchOverhead = 61 + 4 + 36
	// headerOverhead is the most bytes that the two lengths of a record's header take.
	headerOverhead = 2 * binary.MaxVarintLen32
)

// RowOverhead is RecordSize of a row of r, less the size of its value.
func RowOverhead(r *schemas.Resource) int {
	if id := r.KeyID(); id != "" {
		return RecordSize(MaxKeySize+len(schemas.HeaderKeyID)+len(id), 1)
	}
	return RecordSize(MaxKeySize, 0)
}

// RecordSize is the most bytes that a record takes in a batch of its own, before compression. Brokers compare
// it with a topic's max.message.bytes. payload is the number of bytes of key, value and headers.
func RecordSize(payload, headers int) int { return payload + batchOverhead + headers*headerOverhead }
