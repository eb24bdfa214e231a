package schemas

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"
)

// columnValue is one value of a column in PostgreSQL's binary format. It is not NULL.
type columnValue struct {
	oid uint32
	b   []byte
}

// maxFloatText is enough for the shortest text of any float: -2.2250738585072014e-308.
const maxFloatText = 32

// integer reads the integer types.
func (v columnValue) integer() (int64, bool) {
	switch len(v.b) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v.b))), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v.b))), true
	case 8:
		return int64(binary.BigEndian.Uint64(v.b)), true
	}
	return 0, false
}

// long reads a number as an integer of 64 bits.
func (v columnValue) long() (int64, bool) {
	switch v.oid {
	case oidInt2, oidInt4, oidInt8:
		return v.integer()
	case oidNumeric:
		d, ok := v.decimal(19, 0, false)
		if !ok {
			return 0, false
		}
		return d.long()
	default:
		var buf [maxFloatText]byte
		return parseLong(v.text(buf[:0]))
	}
}

// decimal reads a number as an unscaled decimal.
func (v columnValue) decimal(precision, scale int, halfEven bool) (decimal, bool) {
	if v.oid == oidNumeric {
		n, ok := readNumeric(v.b)
		if !ok {
			return decimal{}, false
		}
		return n.decimal(precision, scale, halfEven)
	}
	var buf [maxFloatText]byte
	return parseDecimal(v.text(buf[:0]), precision, scale, halfEven)
}

// double reads a finite number.
func (v columnValue) double() (float64, bool) {
	if v.oid == oidFloat8 && len(v.b) == 8 {
		n := math.Float64frombits(binary.BigEndian.Uint64(v.b))
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	var buf [maxFloatText]byte
	return parseDouble(v.text(buf[:0])) // the text of a float8 of any other length is nil
}

// isText returns whether v can be the text of a string. The binary form of some types that users create is no
// text. Their zero bytes give them away, because PostgreSQL has none in any text.
func (v columnValue) isText() bool {
	return utf8.Valid(v.b) && (v.oid < firstUserOID || bytes.IndexByte(v.b, 0) < 0)
}

func (v columnValue) instant() (Instant, bool) {
	if v.oid == oidTimestamp || v.oid == oidTimestamptz {
		return readTimestamp(v.b)
	}
	return parseInstant(v.b)
}

// text returns the value of a number or text column as text, nil if it is not well formed. A float becomes
// the shortest decimal that reads back as that float. PostgreSQL prints the same decimal, and so the
// service's JSON holds it: the same row gives the same bytes from either source.
func (v columnValue) text(buf []byte) []byte {
	switch v.oid {
	case oidInt2, oidInt4, oidInt8:
		n, ok := v.integer()
		if !ok {
			return nil
		}
		return strconv.AppendInt(buf, n, 10)
	case oidFloat8:
		if len(v.b) != 8 {
			return nil
		}
		return strconv.AppendFloat(buf, math.Float64frombits(binary.BigEndian.Uint64(v.b)), 'e', -1, 64)
	case oidFloat4:
		if len(v.b) != 4 {
			return nil
		}
		return strconv.AppendFloat(buf, float64(math.Float32frombits(binary.BigEndian.Uint32(v.b))), 'e', -1, 32)
	case oidNumeric:
		n, ok := readNumeric(v.b)
		if !ok {
			return nil
		}
		return n.appendText(buf)
	default:
		return v.b
	}
}

// legible returns the value for a person to read. Bytes that are not well formed are shown like a bytea, in
// hexadecimal.
func (v columnValue) legible() []byte {
	switch v.oid {
	case oidTimestamp, oidTimestamptz:
		if len(v.b) == 8 {
			return v.legibleTime()
		}
	default:
		if text := v.text([]byte{}); text != nil && utf8.Valid(text) {
			return text
		}
	}
	return append([]byte(`\x`), hex.EncodeToString(v.b)...)
}

// legibleTime returns a timestamp in RFC 3339, or PostgreSQL's name of infinity. A time outside the years 1
// to 9999 is the number by which PostgreSQL counts it.
func (v columnValue) legibleTime() []byte {
	if t, ok := readTimestamp(v.b); ok {
		return []byte(t.String())
	}
	switch n, _ := v.integer(); n {
	case math.MaxInt64:
		return []byte("infinity")
	case math.MinInt64:
		return []byte("-infinity")
	default:
		return strconv.AppendInt(nil, n, 10)
	}
}
