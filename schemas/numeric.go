package schemas

import (
	"bytes"
	"encoding/binary"
)

// A numeric column in PostgreSQL's binary format has four numbers of two bytes: how many groups follow, the
// weight of the first group, the sign, and how many digits after the point the server shows. Each group is
// four decimal digits in two bytes, and the first one counts 10000^weight.
const (
	numericHeader   = 8
	numericPositive = 0x0000
	numericNegative = 0x4000
	numericPlusInf  = 0xD000
	numericMinusInf = 0xF000
)

// shortNumeric reads a numeric of up to 19 digits, as nearly every price is. It returns false for others.
func shortNumeric(b []byte, precision, scale int) (d decimal, ok bool) {
	if len(b) < numericHeader || len(b) != numericHeader+2*int(binary.BigEndian.Uint16(b)) {
		return d, false
	}
	weight, sign := int(int16(binary.BigEndian.Uint16(b[2:]))), binary.BigEndian.Uint16(b[4:])
	groups := b[numericHeader:]
	if len(groups) > 10 || len(groups) == 10 && binary.BigEndian.Uint16(groups) > 999 ||
		sign != numericPositive && sign != numericNegative {
		return d, false
	}
	var v uint64
	for g := groups; len(g) >= 2; g = g[2:] {
		group := binary.BigEndian.Uint16(g)
		if group > 9999 {
			return d, false
		}
		v = v*10000 + uint64(group)
	}
	return shortDecimal(sign == numericNegative, v, 4*(weight+1-len(groups)/2)+scale, precision)
}

// appendNumeric appends a numeric as the server prints it. It returns nil if the numeric is not well formed.
func appendNumeric(dst, b []byte) []byte {
	if len(b) < numericHeader || len(b) != numericHeader+2*int(binary.BigEndian.Uint16(b)) {
		return nil
	}
	weight, scale := int(int16(binary.BigEndian.Uint16(b[2:]))), int(binary.BigEndian.Uint16(b[6:]))
	switch binary.BigEndian.Uint16(b[4:]) {
	case numericPositive:
	case numericNegative:
		dst = append(dst, '-')
	case numericPlusInf:
		return append(dst, "Infinity"...)
	case numericMinusInf:
		return append(dst, "-Infinity"...)
	default:
		return append(dst, "NaN"...)
	}
	var room [64]byte
	digits := room[:0]
	wellFormed := true
	group := func(w int) { // the group that counts 10000^w; those that are not sent are 0
		var g uint16
		if at := numericHeader + 2*(weight-w); at >= numericHeader && at < len(b) {
			g = binary.BigEndian.Uint16(b[at:])
			wellFormed = wellFormed && g <= 9999
		}
		digits = append(digits, byte('0'+g/1000), byte('0'+g/100%10), byte('0'+g/10%10), byte('0'+g%10))
	}
	for w := max(weight, 0); w >= 0; w-- {
		group(w)
	}
	point := len(digits)
	for w := -1; len(digits) < point+scale; w-- {
		group(w)
	}
	if !wellFormed {
		return nil
	}
	whole := bytes.TrimLeft(digits[:point-1], "0")
	dst = append(append(dst, whole...), digits[point-1])
	if scale > 0 {
		dst = append(append(dst, '.'), digits[point:point+scale]...)
	}
	return dst
}
