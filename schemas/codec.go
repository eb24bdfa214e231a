package schemas

import (
	"encoding/binary"
	"regexp"

	"github.com/twmb/avro"
)

// codec is everything that storestream does with the values of one kind of field. The kinds are in long.go,
// instant.go, decimal.go, double.go and text.go. The rest of the package is loops over codecs.
//
// A function that encodes appends the Avro value, without the branch of a union. It returns false if the
// field cannot hold the value exactly. The bytes that it has appended then mean nothing.
type codec struct {
	kind     string // the kind's name with its article, for people
	avroType string // the Avro type, in the form in which it is registered
	expected string // the values that a field can hold, for people

	// fromText encodes the text of a JSON number, a JSON string or a text column. It fails on nil.
	fromText func(b, text []byte) ([]byte, bool)
	// numbers is set if a JSON number can be a value. Otherwise values are JSON strings.
	numbers bool
	// null matches the texts that are null in a field that may be null (null.go).
	null *regexp.Regexp

	// fromColumn encodes a value of a PostgreSQL column, whose type is one of columns.
	fromColumn func(b []byte, oid uint32, v []byte) ([]byte, bool)
	columns    []uint32

	// size returns the number of bytes of the Avro value that b begins with, 0 if b does not begin with a value
	// of this kind.
	size func(b []byte) int
	// toJSON appends an Avro value as JSON. size has measured it.
	toJSON func(dst, value []byte) []byte
}

// fieldTypes lists the types that a field may have, for people.
const fieldTypes = `"long", "double", "string", {"type": "long", "logicalType": "timestamp-millis"} or ` +
	`{"type": "bytes", "logicalType": "decimal", "precision": P up to 38, "scale": S}, or ["null", one of these]`

// codecOf returns the codec of an Avro type, nil if fieldTypes does not have it. nullable is set if it is a
// union of null and that type.
func codecOf(n *avro.SchemaNode) (c *codec, nullable bool) {
	if n.Type == "union" && len(n.Branches) == 2 && n.Branches[0].Type == "null" {
		n, nullable = &n.Branches[1], true
	}
	switch n.Type + " " + n.LogicalType {
	case "long ":
		return longCodec, nullable
	case "long timestamp-millis":
		return timeCodec, nullable
	case "double ":
		return doubleCodec, nullable
	case "string ":
		return textCodec, nullable
	case "bytes decimal":
		if n.Precision <= maxPrecision {
			return decimalCodec(n.Precision, n.Scale), nullable
		}
	}
	return nil, nullable
}

// becomes returns whether values of c can be read as values of today's codec: another precision and scale
// of a decimal, and a long as a double, which Avro calls compatible. Some values may not fit.
func (c *codec) becomes(today *codec) bool {
	return c.kind == today.kind || c == longCodec && today == doubleCodec
}

// sizeOfLong is the size of a long.
func sizeOfLong(b []byte) int {
	_, n := binary.Varint(b)
	return max(n, 0)
}

// readLong reads a long that sizeOfLong has measured.
func readLong(b []byte) int64 {
	n, _ := binary.Varint(b)
	return n
}

// sizeOfBytes is the size of bytes or a string: a length and as many bytes.
func sizeOfBytes(b []byte) int {
	length, n := binary.Varint(b)
	if n <= 0 || length < 0 || length > int64(len(b)-n) {
		return 0
	}
	return n + int(length)
}

// readBytes reads bytes that sizeOfBytes has measured.
func readBytes(b []byte) []byte {
	_, n := binary.Varint(b)
	return b[n:]
}
