package schemas

import (
	"bytes"
	"math/bits"
)

// number is a decimal number as text: the digits before and after the point, and the exponent.
type number struct {
	whole, fraction []byte
	exponent        int
	neg             bool
}

// maxExponent limits an exponent's value. No text has enough digits to make up for it, and it cannot
// overflow.
const maxExponent = 1 << 40

// scanNumber reads a number: an optional sign, digits with or without a point, an optional exponent. That
// covers the numbers of JSON and PostgreSQL, and also "+1", "007" and ".5", which have one meaning. NaN,
// Infinity, spaces and separators are not numbers.
func scanNumber(text []byte) (n number, ok bool) {
	i := 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		n.neg = text[i] == '-'
		i++
	}
	n.whole, i = scanDigits(text, i)
	if i < len(text) && text[i] == '.' {
		n.fraction, i = scanDigits(text, i+1)
	}
	if len(n.whole)+len(n.fraction) == 0 {
		return n, false
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		return n, n.scanExponent(text[i+1:])
	}
	return n, i == len(text)
}

func scanDigits(text []byte, from int) (digits []byte, end int) {
	end = from
	for end < len(text) && text[end]-'0' <= 9 {
		end++
	}
	return text[from:end], end
}

func (n *number) scanExponent(text []byte) bool {
	neg := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		neg = text[0] == '-'
		text = text[1:]
	}
	for _, c := range text {
		if c-'0' > 9 {
			return false
		}
		n.exponent = min(n.exponent*10+int(c-'0'), maxExponent)
	}
	if neg {
		n.exponent = -n.exponent
	}
	return len(text) > 0
}

// parseDecimal reads a number as an unscaled decimal, exactly: it does not pass through a float.
func parseDecimal(text []byte, precision, scale int, halfEven bool) (decimal, bool) {
	n, ok := scanNumber(text)
	if !ok {
		return decimal{}, false
	}
	return n.decimal(precision, scale, halfEven)
}

// decimal returns n as an unscaled decimal. It fails if n has more than precision digits. It also fails if n
// has digits behind the last place, unless halfEven says to round them.
//
// It builds no power of ten. A million digits, or an exponent of 10^9, cost no more than reading them.
func (n *number) decimal(precision, scale int, halfEven bool) (decimal, bool) {
	if d, ok := n.short(precision, scale); ok {
		return d, true
	}
	var buf [64]byte
	digits := append(append(buf[:0], n.whole...), n.fraction...)
	places := len(n.whole) + n.exponent + scale // of the unscaled value, beginning with the first digit
	kept := min(max(places, 0), len(digits))
	d := decimal{neg: n.neg}
	for _, c := range digits[:kept] {
		if d.atLeast(precision - 1) {
			return decimal{}, false
		}
		d.mulAdd(c - '0')
	}
	for zeros := places - len(digits); zeros > 0 && d.hi|d.lo != 0; zeros-- { // 5e3: ends after 38 of them
		if d.atLeast(precision - 1) {
			return decimal{}, false
		}
		d.mulAdd(0)
	}
	dropped := bytes.TrimRight(digits[kept:], "0")
	if len(dropped) == 0 {
		return d, true
	}
	if !halfEven {
		return decimal{}, false
	}
	first := dropped[0]
	if places < 0 { // zeros stand before it: 0.004 at scale 0
		first = '0'
	}
	if first > '5' || first == '5' && (len(dropped) > 1 || d.lo&1 == 1) {
		var carry uint64
		d.lo, carry = bits.Add64(d.lo, 1, 0)
		d.hi += carry
	}
	return d, !d.atLeast(precision)
}

// short reads up to 19 digits without an exponent and with no more places than the scale, as nearly every
// price has them. It returns false for other numbers.
func (n *number) short(precision, scale int) (d decimal, ok bool) {
	if len(n.whole)+len(n.fraction) > 19 || n.exponent != 0 {
		return d, false
	}
	var v uint64
	for _, c := range n.whole {
		v = v*10 + uint64(c-'0')
	}
	for _, c := range n.fraction {
		v = v*10 + uint64(c-'0')
	}
	return shortDecimal(n.neg, v, scale-len(n.fraction), precision)
}
