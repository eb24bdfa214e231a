package schemas

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// Values of columns are in PostgreSQL's binary format, and not NULL.

// maxFloatText is enough for the shortest text of any float: -2.2250738585072014e-308.
const maxFloatText = 32

// columnInteger reads the integer types.
func columnInteger(v []byte) (int64, bool) {
	switch len(v) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v))), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v))), true
	case 8:
		return int64(binary.BigEndian.Uint64(v)), true
	}
	return 0, false
}

// columnLong reads a number as an integer of 64 bits.
func columnLong(oid uint32, v []byte) (int64, bool) {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		return columnInteger(v)
	default:
		var buf [maxFloatText]byte
		return parseLong(columnText(buf[:0], oid, v))
	}
}

// columnDecimal reads a number as an unscaled decimal, as parseDecimal does.
func columnDecimal(oid uint32, v []byte, precision, scale int) (decimal, bool) {
	if oid == pgtype.NumericOID {
		return numericDecimal(v, precision, scale)
	}
	var buf [64]byte
	return parseDecimal(columnText(buf[:0], oid, v), precision, scale)
}

// columnText returns the value of a number or text column as text, nil if it is not well formed. It appends
// the text to buf, or returns v. A float becomes the shortest decimal that reads back as that float.
// PostgreSQL prints the same decimal, so the service's JSON has it too. So a row gives the same bytes from
// either source.
func columnText(buf []byte, oid uint32, v []byte) []byte {
	switch {
	case oid == pgtype.NumericOID:
		return numericText(v)
	case oid == pgtype.Float8OID && len(v) == 8:
		return strconv.AppendFloat(buf, math.Float64frombits(binary.BigEndian.Uint64(v)), 'e', -1, 64)
	case oid == pgtype.Float4OID && len(v) == 4:
		return strconv.AppendFloat(buf, float64(math.Float32frombits(binary.BigEndian.Uint32(v))), 'e', -1, 32)
	case oid == pgtype.Float8OID || oid == pgtype.Float4OID:
		return nil
	case oid == pgtype.Int2OID || oid == pgtype.Int4OID || oid == pgtype.Int8OID:
		n, ok := columnInteger(v)
		if !ok {
			return nil
		}
		return strconv.AppendInt(buf, n, 10)
	default:
		return v
	}
}

// infinities are the infinite times, by their binary form.
var infinities = map[int64]string{math.MaxInt64: "infinity", math.MinInt64: "-infinity"}

// columnLegible returns the value for a person to read. Bytes that are not well formed are shown like a
// bytea, in hexadecimal.
func columnLegible(oid uint32, v []byte) []byte {
	if oid == pgtype.TimestampOID || oid == pgtype.TimestamptzOID {
		if t, ok := readTimestamp(v); ok {
			return []byte(t.String())
		}
		if n, ok := columnInteger(v); ok { // infinity, or a time outside the years 1 to 9999
			return []byte(cmp.Or(infinities[n], strconv.FormatInt(n, 10)))
		}
	} else if text := columnText([]byte{}, oid, v); text != nil && utf8.Valid(text) {
		return text
	}
	return append([]byte(`\x`), hex.EncodeToString(v)...)
}
