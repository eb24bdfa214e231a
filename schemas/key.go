package schemas

import (
	"encoding/binary"
	"errors"
)

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
