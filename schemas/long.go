package schemas

import (
	"encoding/binary"
	"strconv"
)

// longCodec is the codec of integers.
var longCodec = &codec{
	kind:     "an integer",
	avroType: `"long"`,
	expected: "an integer of 64 bits",
	numbers:  true,
	null:     notANumber,
	columns:  numberTypes,
	fromText: func(b, text []byte) ([]byte, bool) {
		n, ok := parseLong(text)
		return binary.AppendVarint(b, n), ok
	},
	fromColumn: func(b []byte, oid uint32, v []byte) ([]byte, bool) {
		n, ok := columnLong(oid, v)
		return binary.AppendVarint(b, n), ok
	},
	size:   sizeOfLong,
	toJSON: func(dst, value []byte) []byte { return strconv.AppendInt(dst, readLong(value), 10) },
}

// parseLong reads an integer of 64 bits. 12.0 and 1.2e1 are integers too, and 12.5 is none.
func parseLong(text []byte) (int64, bool) {
	if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return v, true
	}
	d, ok := parseDecimal(text, 19, 0)
	v := int64(d.lo)
	if d.neg {
		v = -v
	}
	return v, ok && (v == 0 || v < 0 == d.neg) // else it is beyond 64 bits
}
