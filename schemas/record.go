package schemas

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// HeaderSize is the length of the Confluent wire format's header: magic byte 0 and a four-byte, big-endian schema id.
const HeaderSize = 5

// Record is one row as it is published, and all of it that anything above a source needs to know.
type Record struct {
	ID int64
	// UpdatedAt is the row's updated_at at the full precision of its source.
	UpdatedAt Instant
	// Value is HeaderSize bytes left for the schema id, then the Avro body. The producer stamps the header (SetSchemaID) just
	// before it writes: which id the registry gave is no business of a source. Hash leaves the header out.
	Value []byte
}

// Reject is a row that cannot be published as it stands: it breaks the contract of its schema.
type Reject struct {
	// ID is the row's id if it has a usable one (HasID).
	ID    int64
	HasID bool
	// UpdatedAt is the row's updated_at, or MinInstant where it has no usable one.
	UpdatedAt Instant
	// Row is the row as a JSON object: from REST as it came, from Postgres column to text. It holds personal data: it goes to the
	// dead-letter topic and nowhere else.
	Row []byte
	// Field is the first field that breaks the contract ("" where the row is not an object).
	Field string
	// Err says what was expected of Field, never its value.
	Err string
}

// Hash identifies the content of an encoded row: of value without its header, so that two rows are equal when their bodies are,
// whatever schema id they were written under.
func Hash(value []byte) uint64 { return hashBody(value[HeaderSize:]) }

func hashBody(body []byte) uint64 { return xxhash.Sum64(body) }

// SetSchemaID writes the Confluent header into the room left at the start of value.
func SetSchemaID(value []byte, id int) {
	value[0] = 0
	binary.BigEndian.PutUint32(value[1:HeaderSize], uint32(id))
}
