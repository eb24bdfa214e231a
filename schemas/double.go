package schemas

import (
	"encoding/binary"
	"math"
	"strconv"
)

// doubleCodec is the codec of doubles.
var doubleCodec = &codec{
	kind:     "a double",
	avroType: `"double"`,
	expected: "a finite number",
	numbers:  true,
	columns:  numberTypes,
	fromText: func(b, text []byte) ([]byte, bool) {
		n, ok := parseDouble(text)
		return appendDouble(b, n), ok
	},
	fromColumn: func(b []byte, v columnValue) ([]byte, bool) {
		n, ok := v.double()
		return appendDouble(b, n), ok
	},
	converts: func(t *avroType) bool {
		return t.kind == "double" || t.kind == "float" || t.kind == "int" || t.kind == "long"
	},
	fromAvro: func(b []byte, t *avroType, c *cursor) ([]byte, bool) {
		switch t.kind {
		case "int", "long":
			n := c.long()
			return appendDouble(b, float64(n)), n >= -1<<53 && n <= 1<<53 // beyond that not every integer is a double
		case "float":
			return appendDouble(b, float64(c.float())), true
		default:
			return appendDouble(b, c.double()), true
		}
	},
	toJSON: func(dst []byte, c *cursor) []byte {
		n := c.double()
		if math.IsNaN(n) || math.IsInf(n, 0) { // not written by storestream
			return strconv.AppendQuote(dst, strconv.FormatFloat(n, 'g', -1, 64))
		}
		return strconv.AppendFloat(dst, n, 'g', -1, 64)
	},
	skip: func(c *cursor) { c.take(8) },
}

func appendDouble(b []byte, n float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
}

// parseDouble reads a number as the nearest double, as every JSON and SQL reader does. It fails if no double
// is near (1e999).
func parseDouble(text []byte) (float64, bool) {
	if _, ok := scanNumber(text); !ok { // ParseFloat takes Inf, NaN, hexadecimal and underscores too
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}
