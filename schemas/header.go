package schemas

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"
)

// HeaderSize is the length of the header that the Confluent wire format puts before keys and values: a zero
// byte, and the schema id in four bytes, big-endian.
const HeaderSize = 5

var errHeader = errors.New("not in the Confluent wire format: expected a byte 0 and four bytes of schema id")

// appendHeader appends room for a header.
func appendHeader(b []byte) []byte { return append(b, 0, 0, 0, 0, 0) }

// SetSchemaID writes the header into the room at the start of a key or a value.
func SetSchemaID(b []byte, id int) {
	b[0] = 0
	binary.BigEndian.PutUint32(b[1:HeaderSize], uint32(id))
}

// SchemaID reads the header of a key or a value. It fails on what storestream has not written, such as the
// empty value of a tombstone.
func SchemaID(b []byte) (int, error) {
	if len(b) < HeaderSize || b[0] != 0 {
		return 0, errHeader
	}
	return int(binary.BigEndian.Uint32(b[1:HeaderSize])), nil
}

// Hash identifies the content of an encoded row. It leaves the header out: two rows are equal when their
// bodies are, whatever schema id each was written under.
func Hash(value []byte) uint64 { return hashBody(value[HeaderSize:]) }

func hashBody(body []byte) uint64 { return xxhash.Sum64(body) }
