package schemas

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"
)

// HeaderSize is the length of the header that the Confluent wire format puts before keys and values: a zero
// byte, and the schema id in four bytes, big-endian.
const HeaderSize = 5

// appendHeader appends room for a header.
func appendHeader(b []byte) []byte { return append(b, 0, 0, 0, 0, 0) }

// SetSchemaID writes the header at the start of a key or a value.
func SetSchemaID(b []byte, id int) {
	b[0] = 0
	binary.BigEndian.PutUint32(b[1:HeaderSize], uint32(id))
}

// SchemaID reads the header of a key or a value. It fails if there is none, as in the empty value of a
// tombstone.
func SchemaID(b []byte) (int, error) {
	if len(b) < HeaderSize || b[0] != 0 {
		return 0, errors.New("not in the Confluent wire format: expected a byte 0 and four bytes of schema id")
	}
	return int(binary.BigEndian.Uint32(b[1:HeaderSize])), nil
}

// AppendKey appends HeaderSize bytes of room for the header (SetSchemaID), and the key of the row id.
func AppendKey(dst []byte, id int64) []byte {
	return binary.AppendVarint(appendHeader(dst), id)
}

// ReadKey reads a record's key: the id of the schema it was written under, and the row's id.
func ReadKey(key []byte) (schemaID int, id int64, err error) {
	if schemaID, err = SchemaID(key); err != nil {
		return 0, 0, err
	}
	id, n := binary.Varint(key[HeaderSize:])
	if n <= 0 || HeaderSize+n != len(key) {
		return 0, 0, errors.New("not a key of storestream: expected one Avro long after the header")
	}
	return schemaID, id, nil
}

// Hash identifies the content of an encoded row. It leaves the header out: two rows are equal if their bodies
// are, also under different schema ids.
func Hash(value []byte) uint64 { return xxhash.Sum64(value[HeaderSize:]) }
