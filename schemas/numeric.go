package schemas

import (
	"encoding/binary"
	"strconv"
)

// numeric is a numeric column in PostgreSQL's binary format: groups of four decimal digits, the first of
// weight 10000^weight.
type numeric struct {
	groups []byte // two bytes each
	weight int
	sign   uint16
	dscale int // digits after the point that the server shows
}

// Signs of a numeric; the last three are not numbers that money can be.
const (
	numericPositive = 0x0000
	numericNegative = 0x4000
	numericNaN      = 0xC000
	numericPlusInf  = 0xD000
	numericMinusInf = 0xF000
)

// readNumeric reads the binary form. It returns false if that is not well formed.
func readNumeric(b []byte) (n numeric, ok bool) {
	if len(b) < 8 || len(b) != 8+2*int(binary.BigEndian.Uint16(b)) {
		return n, false
	}
	n = numeric{groups: b[8:], weight: int(int16(binary.BigEndian.Uint16(b[2:]))),
		sign: binary.BigEndian.Uint16(b[4:]), dscale: int(binary.BigEndian.Uint16(b[6:]))}
	for g := n.groups; len(g) >= 2; g = g[2:] {
		if binary.BigEndian.Uint16(g) > 9999 {
			return n, false
		}
	}
	return n, true
}

func (n *numeric) len() int           { return len(n.groups) / 2 }
func (n *numeric) group(i int) uint16 { return binary.BigEndian.Uint16(n.groups[2*i:]) }

// decimal returns n as an unscaled decimal, exactly.
func (n *numeric) decimal(precision, scale int, halfEven bool) (decimal, bool) {
	if n.sign != numericPositive && n.sign != numericNegative {
		return decimal{}, false
	}
	if d, ok := n.short(precision, scale); ok {
		return d, true
	}
	var buf [64]byte
	whole := number{neg: n.sign == numericNegative, whole: buf[:0], exponent: 4 * (n.weight + 1 - n.len())}
	for i := range n.len() {
		whole.whole = appendGroup(whole.whole, n.group(i))
	}
	return whole.decimal(precision, scale, halfEven)
}

// short reads up to 19 digits with no more places than the scale, as nearly every price has them. It returns
// false for other numbers.
func (n *numeric) short(precision, scale int) (d decimal, ok bool) {
	if n.len() > 5 || n.len() == 5 && n.group(0) > 999 {
		return d, false
	}
	var v uint64
	for g := n.groups; len(g) >= 2; g = g[2:] {
		v = v*10000 + uint64(binary.BigEndian.Uint16(g))
	}
	shift := 4*(n.weight-n.len()+1) + scale
	if shift < 0 && shift >= -19 { // the last group reaches beyond the scale, mostly with zeros
		if v%pow10[-shift].lo != 0 {
			return d, false
		}
		v, shift = v/pow10[-shift].lo, 0
	}
	return shortDecimal(n.sign == numericNegative, v, shift, precision)
}

// appendText appends n as the server prints it.
func (n *numeric) appendText(dst []byte) []byte {
	switch n.sign {
	case numericNaN:
		return append(dst, "NaN"...)
	case numericPlusInf:
		return append(dst, "Infinity"...)
	case numericMinusInf:
		return append(dst, "-Infinity"...)
	case numericNegative:
		dst = append(dst, '-')
	}
	if n.weight < 0 {
		dst = append(dst, '0')
	}
	for w := n.weight; w >= 0; w-- {
		if w == n.weight {
			dst = strconv.AppendUint(dst, uint64(n.groupOfWeight(w)), 10)
		} else {
			dst = appendGroup(dst, n.groupOfWeight(w))
		}
	}
	if n.dscale == 0 {
		return dst
	}
	dst = append(dst, '.')
	end := len(dst) + n.dscale
	for w := -1; len(dst) < end; w-- {
		dst = appendGroup(dst, n.groupOfWeight(w))
	}
	return dst[:end]
}

// groupOfWeight returns the group that counts 10000^w. Groups that are not sent are 0.
func (n *numeric) groupOfWeight(w int) uint16 {
	if i := n.weight - w; i >= 0 && i < n.len() {
		return n.group(i)
	}
	return 0
}

func appendGroup(dst []byte, g uint16) []byte {
	return append(dst, byte('0'+g/1000), byte('0'+g/100%10), byte('0'+g/10%10), byte('0'+g%10))
}
