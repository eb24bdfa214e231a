package schemas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

const (
	maxPrecision    = 38 // 128 bits hold any number of so many digits
	maxDecimalBytes = 16
)

// decimalCodec returns the codec of decimals with precision digits, scale of them after the point.
func decimalCodec(precision, scale int) *codec {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return &codec{
		kind: "a decimal",
		avroType: fmt.Sprintf(`{"type":"bytes","logicalType":"decimal","precision":%d,"scale":%d}`,
			precision, scale),
		expected: fmt.Sprintf("a decimal number with at most %d digits before the point and %d after it",
			precision-scale, scale),
		numbers: true,
		null:    notANumber,
		columns: numberTypes,
		fromText: func(b, text []byte) ([]byte, bool) {
			d, ok := parseDecimal(text, precision, scale)
			return d.appendBytes(b), ok
		},
		fromColumn: func(b []byte, oid uint32, v []byte) ([]byte, bool) {
			d, ok := columnDecimal(oid, v, precision, scale)
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

// parseDecimal reads a number as an unscaled decimal, exactly: it does not pass through a float. The text is
// an optional sign, digits with or without a point, and an optional exponent. That covers the numbers of JSON
// and PostgreSQL, and also "+1", "007" and ".5", which have one meaning. NaN, Infinity, spaces and separators
// are not numbers.
//
// It fails if the number has more than precision digits, or a digit but 0 behind the last place.
//
// It builds no power of ten. A million digits, or an exponent of 10^9, cost no more than reading them.
func parseDecimal(text []byte, precision, scale int) (d decimal, ok bool) {
	i := 0
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		d.neg = text[0] == '-'
		i = 1
	}
	whole, v, i := scanDigits(text, i, 0)
	var fraction []byte
	if i < len(text) && text[i] == '.' {
		fraction, v, i = scanDigits(text, i+1, v)
	}
	if len(whole)+len(fraction) == 0 {
		return d, false
	}
	var exponent int64
	if i < len(text) {
		var err error
		// Beyond 32 bits it is the largest exponent. No text has enough digits to make up for that.
		exponent, err = strconv.ParseInt(string(text[i+1:]), 10, 32)
		if text[i]|0x20 != 'e' || errors.Is(err, strconv.ErrSyntax) {
			return d, false
		}
	} else if len(whole)+len(fraction) <= 19 { // as nearly every price
		if short, ok := shortDecimal(d.neg, v, scale-len(fraction), precision); ok {
			return short, true
		}
	}
	var buf [64]byte
	digits := append(append(buf[:0], whole...), fraction...)
	return longDecimal(d.neg, digits, len(whole)+int(exponent)+scale, precision)
}

// longDecimal returns the decimal whose unscaled value has so many places, beginning with the first digit.
// There may be more digits than places, and fewer.
func longDecimal(neg bool, digits []byte, places, precision int) (decimal, bool) {
	d, kept := decimal{neg: neg}, min(max(places, 0), len(digits))
	for _, c := range digits[kept:] { // bytes.TrimRight takes 5 ns more
		if c != '0' {
			return d, false
		}
	}
	digits = digits[:kept]
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return d, true
	}
	zeros := places - kept // 5e3 has three of them
	if len(digits)+zeros > precision {
		return d, false
	}
	for _, c := range digits {
		d = d.mulAdd(c - '0')
	}
	for range zeros {
		d = d.mulAdd(0)
	}
	return d, true
}

// scanDigits returns the digits from an index on, v with them behind it, and the index after them. The value
// is theirs if it has 19 digits or fewer.
func scanDigits(text []byte, from int, v uint64) (digits []byte, value uint64, end int) {
	end = from
	for end < len(text) && text[end]-'0' <= 9 {
		v = v*10 + uint64(text[end]-'0')
		end++
	}
	return text[from:end], v, end
}

// shortDecimal returns v * 10^exponent as an unscaled decimal. It returns false if that has more than
// precision digits or is no integer, or if the exponent is not from -19 to 19.
func shortDecimal(neg bool, v uint64, exponent, precision int) (d decimal, ok bool) {
	if exponent < 0 && exponent >= -19 {
		if v%pow10[-exponent].lo != 0 {
			return d, false
		}
		v, exponent = v/pow10[-exponent].lo, 0
	}
	if exponent < 0 || exponent > 19 {
		return d, false
	}
	d.neg = neg
	d.hi, d.lo = bits.Mul64(v, pow10[exponent].lo)
	return d, !d.atLeast(precision)
}

// appendBytes appends Avro bytes: a length, and the value in big-endian two's complement. It writes as few
// bytes as possible, like Java's BigInteger. (-1.28 at scale 2 is 0x80, not 0xff80: two forms of one value
// would be two rows.)
func (d decimal) appendBytes(dst []byte) []byte {
	hi, lo := d.hi, d.lo
	if d.neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, d.lo, 0)
		hi, _ = bits.Sub64(0, d.hi, borrow)
	}
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

// mulAdd returns d*10 + digit. d has fewer than 38 digits.
func (d decimal) mulAdd(digit byte) decimal {
	hi, lo := bits.Mul64(d.lo, 10)
	lo, carry := bits.Add64(lo, uint64(digit), 0)
	return decimal{d.hi*10 + hi + carry, lo, d.neg}
}
