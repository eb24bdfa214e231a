package schemas

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"
)

// doubleCodec is the codec of doubles.
var doubleCodec = &codec{
	kind:     "a double",
	avroType: `"double"`,
	expected: "a finite number",
	numbers:  true,
	null:     notANumber,
	columns:  numberTypes,
	fromText: func(b, text []byte) ([]byte, bool) {
		n, ok := parseDouble(text)
		return appendDouble(b, n), ok
	},
	fromColumn: func(b []byte, oid uint32, v []byte) ([]byte, bool) {
		if oid == pgtype.Float8OID && len(v) == 8 {
			n := math.Float64frombits(binary.BigEndian.Uint64(v))
			return appendDouble(b, n), finite(n)
		}
		var buf [maxFloatText]byte
		n, ok := parseDouble(columnText(buf[:0], oid, v))
		return appendDouble(b, n), ok
	},
	size: func(b []byte) int {
		if len(b) < 8 || !finite(readDouble(b)) {
			return 0
		}
		return 8
	},
	toJSON: func(dst, value []byte) []byte { return strconv.AppendFloat(dst, readDouble(value), 'g', -1, 64) },
}

func appendDouble(b []byte, n float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
}

func readDouble(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

func finite(n float64) bool { return !math.IsNaN(n) && !math.IsInf(n, 0) }

// parseDouble reads a number as the nearest double, as every JSON and SQL reader does. It fails if no double
// is near (1e999).
func parseDouble(text []byte) (float64, bool) {
	for _, c := range text { // ParseFloat takes Inf, NaN, hexadecimal and underscores too
		if c-'0' > 9 && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}
