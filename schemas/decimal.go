package schemas

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// decimalCodec returns the codec of decimals with precision digits, scale of them after the point.
func decimalCodec(precision, scale int, halfEven bool) *codec {
	expected := fmt.Sprintf("a decimal number with at most %d digits before the point", precision-scale)
	if !halfEven {
		expected += fmt.Sprintf(" and %d after it", scale)
	}
	return &codec{
		kind: "a decimal",
		avroType: fmt.Sprintf(`{"type":"bytes","logicalType":"decimal","precision":%d,"scale":%d}`,
			precision, scale),
		expected: expected,
		halfEven: halfEven,
		numbers:  true,
		columns:  numberTypes,
		fromText: func(b, text []byte) ([]byte, bool) {
			d, ok := parseDecimal(text, precision, scale, halfEven)
			return d.appendBytes(b), ok
		},
		fromColumn: func(b []byte, v columnValue) ([]byte, bool) {
			d, ok := v.decimal(precision, scale, halfEven)
			return d.appendBytes(b), ok
		},
		converts: func(t *avroType) bool {
			return (t.kind == "bytes" || t.kind == "fixed") && t.logical == "decimal"
		},
		fromAvro: func(b []byte, t *avroType, c *cursor) ([]byte, bool) {
			d, ok := decimalOf(c.decimal(t))
			if !ok || t.scale > maxPrecision {
				return b, false
			}
			var buf [48]byte
			d, ok = parseDecimal(d.appendText(buf[:0], t.scale), precision, scale, halfEven)
			return d.appendBytes(b), ok
		},
		toJSON: func(dst []byte, c *cursor) []byte {
			d, ok := decimalOf(c.bytes())
			if !ok {
				return append(dst, `"wider than 128 bits"`...) // not written by storestream
			}
			return d.appendText(dst, scale)
		},
		skip: func(c *cursor) { c.bytes() },
	}
}

// decimal is an unscaled decimal of at most 38 digits: a sign and a magnitude of 128 bits. (Money of scale 18
// outgrows 64 bits at 9.23.)
type decimal struct {
	hi, lo uint64
	neg    bool
}

// shortDecimal returns v followed by zeros zeros. It returns false if that has more than precision digits, or
// if zeros is not from 0 to 19.
func shortDecimal(neg bool, v uint64, zeros, precision int) (decimal, bool) {
	if zeros < 0 || zeros > 19 {
		return decimal{}, false
	}
	d := decimal{neg: neg}
	d.hi, d.lo = bits.Mul64(v, pow10[zeros].lo)
	return d, !d.atLeast(precision)
}

// appendBytes appends Avro bytes: a length, and the value in big-endian two's complement. It writes as few
// bytes as possible, like Java's BigInteger. (-1.28 at scale 2 is 0x80, not 0xff80: two forms of one value
// would be two rows.)
func (d decimal) appendBytes(dst []byte) []byte {
	hi, lo := d.twosComplement()
	fold := uint64(int64(hi) >> 63) // all ones for a negative value
	width := 128 - bits.LeadingZeros64(hi^fold)
	if hi == fold {
		width = 64 - bits.LeadingZeros64(lo^fold)
	}
	n := width/8 + 1 // one more bit than the width, for the sign
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	dst = append(dst, byte(n)<<1) // the Avro long n: it is below 64, one byte
	return append(dst, b[16-n:]...)
}

func (d decimal) twosComplement() (hi, lo uint64) {
	if !d.neg {
		return d.hi, d.lo
	}
	lo, borrow := bits.Sub64(0, d.lo, 0)
	hi, _ = bits.Sub64(0, d.hi, borrow)
	return hi, lo
}

// decimalOf reads two's complement of any width, if the value fits 128 bits. No bytes at all are 0, as in
// Java.
func decimalOf(b []byte) (decimal, bool) {
	for len(b) > 16 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	if len(b) > 16 {
		return decimal{}, false
	}
	var full [16]byte
	d := decimal{neg: len(b) > 0 && b[0] >= 0x80}
	if d.neg {
		for i := range full {
			full[i] = 0xff
		}
	}
	copy(full[16-len(b):], b)
	d.hi, d.lo = binary.BigEndian.Uint64(full[:8]), binary.BigEndian.Uint64(full[8:])
	if d.neg {
		d.hi, d.lo = d.twosComplement() // its own inverse
	}
	return d, true
}

// pow10 holds 10^0 to 10^38.
var pow10 = func() (p [maxPrecision + 1]struct{ hi, lo uint64 }) {
	p[0].lo = 1
	for i := 1; i < len(p); i++ {
		hi, lo := bits.Mul64(p[i-1].lo, 10)
		p[i].hi, p[i].lo = p[i-1].hi*10+hi, lo
	}
	return p
}()

// atLeast returns whether d's magnitude is 10^n or more.
func (d decimal) atLeast(n int) bool {
	p := &pow10[n]
	return d.hi > p.hi || d.hi == p.hi && d.lo >= p.lo
}

// mulAdd sets d to d*10 + digit. d has fewer than 38 digits.
func (d *decimal) mulAdd(digit byte) {
	hi, lo := bits.Mul64(d.lo, 10)
	lo, carry := bits.Add64(lo, uint64(digit), 0)
	d.hi, d.lo = d.hi*10+hi+carry, lo
}

// appendText appends d with the point before its last scale digits, in full and without trailing zeros: 49.5,
// 0.01, -3.
func (d decimal) appendText(dst []byte, scale int) []byte {
	const e19 = 1e19
	var digits [40]byte
	high, low := bits.Div64(d.hi, d.lo, e19) // hi <= 2^63 < 10^19: it cannot overflow
	end := len(digits)
	for i := range 39 { // 2^127 has 39
		v := &low
		if i >= 19 {
			v = &high
		}
		end--
		digits[end] = byte('0' + *v%10)
		*v /= 10
	}
	point, last := len(digits)-scale, len(digits)
	for last > point && digits[last-1] == '0' {
		last--
	}
	for end < point-1 && digits[end] == '0' {
		end++
	}
	if d.neg && d.hi|d.lo != 0 {
		dst = append(dst, '-')
	}
	dst = append(dst, digits[end:point]...)
	if last > point {
		dst = append(append(dst, '.'), digits[point:last]...)
	}
	return dst
}

// long returns d, which has scale 0, as an integer of 64 bits.
func (d decimal) long() (int64, bool) {
	switch {
	case d.hi != 0:
		return 0, false
	case d.neg && d.lo <= 1<<63:
		return -int64(d.lo), true
	default:
		return int64(d.lo), !d.neg && d.lo < 1<<63
	}
}
