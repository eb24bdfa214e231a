package schemas

import (
	"bytes"
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// A numeric column in PostgreSQL's binary format has four numbers of two bytes: how many groups follow, the
// weight of the first group, the sign, and how many digits after the point the server shows. Each group is
// four decimal digits in two bytes, and the first one counts 10000^weight.
const (
	numericHeader   = 8
	numericPositive = 0x0000
	numericNegative = 0x4000
)

// numericDecimal reads a numeric as an unscaled decimal, as parseDecimal does.
func numericDecimal(b []byte, precision, scale int) (d decimal, ok bool) {
	if len(b) < numericHeader || len(b) != numericHeader+2*int(binary.BigEndian.Uint16(b)) {
		return d, false
	}
	weight, sign := int(int16(binary.BigEndian.Uint16(b[2:]))), binary.BigEndian.Uint16(b[4:])
	if sign != numericPositive && sign != numericNegative { // NaN or infinite
		return d, false
	}
	groups := b[numericHeader:]
	var v uint64
	for g := groups; len(g) >= 2; g = g[2:] {
		group := binary.BigEndian.Uint16(g)
		if group > 9999 {
			return d, false
		}
		v = v*10000 + uint64(group)
	}
	if len(groups) < 10 || len(groups) == 10 && binary.BigEndian.Uint16(groups) <= 999 { // v holds it
		d, ok = shortDecimal(sign == numericNegative, v, 4*(weight+1-len(groups)/2)+scale, precision)
	}
	if ok {
		return d, true
	}
	var room [64]byte
	digits := room[:0]
	for g := groups; len(g) >= 2; g = g[2:] {
		group := binary.BigEndian.Uint16(g)
		digits = append(digits, byte('0'+group/1000), byte('0'+group/100%10), byte('0'+group/10%10),
			byte('0'+group%10))
	}
	return longDecimal(sign == numericNegative, digits, 4*(weight+1)+scale, precision)
}

// numericText returns a numeric as the server prints it. It returns nil if the numeric is not well formed.
func numericText(v []byte) []byte {
	for i := numericHeader; i+1 < len(v); i += 2 {
		if binary.BigEndian.Uint16(v[i:]) > 9999 { // pgtype takes it
			return nil
		}
	}
	var n pgtype.Numeric
	if numericPlan.Scan(v, &n) != nil {
		return nil
	}
	text, _ := n.MarshalJSON()   // never fails
	return bytes.Trim(text, `"`) // of "NaN" and "Infinity"
}

var numericPlan = pgtype.NumericCodec{}.PlanScan(nil, pgtype.NumericOID, pgtype.BinaryFormatCode,
	&pgtype.Numeric{})
