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
	columns:  numberTypes,
	fromText: func(b, text []byte) ([]byte, bool) {
		n, ok := parseLong(text)
		return binary.AppendVarint(b, n), ok
	},
	fromColumn: func(b []byte, v columnValue) ([]byte, bool) {
		n, ok := v.long()
		return binary.AppendVarint(b, n), ok
	},
	size:   sizeOfLong,
	toJSON: func(dst, value []byte) []byte { return strconv.AppendInt(dst, readLong(value), 10) },
}

// parseLong reads an integer of 64 bits: also 12.0 and 1.2e1, which are integers, and not 12.5.
func parseLong(text []byte) (int64, bool) {
	if v, ok := parseShortLong(text); ok {
		return v, true
	}
	d, ok := parseDecimal(text, 19, 0, false)
	if !ok {
		return 0, false
	}
	return d.long()
}

// parseShortLong reads up to 18 digits, which cannot overflow. Nearly every integer is of this form.
func parseShortLong(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	var v int64
	for _, c := range text {
		if c-'0' > 9 {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}
