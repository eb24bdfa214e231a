package schemas

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"strings"
)

const (
	maxPrecision    = 38 // 128 bits hold any number of so many digits
	maxDecimalBytes = 16
)

// decimalCodec returns the codec of decimals with precision digits, scale of them after the point.
func decimalCodec(precision, scale int, halfEven bool) *codec {
	expected := fmt.Sprintf("a decimal number with at most %d digits before the point", precision-scale)
	if !halfEven {
		expected += fmt.Sprintf(" and %d after it", scale)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
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
		size: func(b []byte) int {
			n := sizeOfBytes(b)
			if n > 1+maxDecimalBytes {
				return 0
			}
			return n
		},
		toJSON: func(dst, value []byte) []byte {
			b := readBytes(value)
			unscaled := new(big.Int).SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 { // two's complement
				unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
			text := new(big.Rat).SetFrac(unscaled, power).FloatString(scale)
			if scale > 0 {
				text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
			}
			return append(dst, text...)
		},
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
