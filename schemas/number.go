package schemas

import "strconv"

// number is the text of a decimal number taken apart: digits before and after the point, and the exponent.
type number struct {
	whole, fraction []byte
	exponent        int
	neg             bool
}

// maxExponent holds an exponent's value: far above what any text of digits can make up for, far below
// overflow.
const maxExponent = 1 << 40

// scanNumber takes a number apart: an optional sign, digits with or without a point, an optional exponent.
// That covers JSON and what PostgreSQL prints, and also "+1", "007" and ".5", which mean one thing only. NaN,
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

// parseDecimal reads a number as an unscaled decimal, exactly: no float on the way, nothing floored.
func parseDecimal(text []byte, precision, scale int, halfEven bool) (decimal, bool) {
	n, ok := scanNumber(text)
	if !ok {
		return decimal{}, false
	}
	if d, ok := n.short(precision, scale); ok {
		return d, true
	}
	a := digits{precision: precision, keep: len(n.whole) + n.exponent + scale, d: decimal{neg: n.neg}}
	for _, c := range n.whole {
		a.push(c - '0')
	}
	for _, c := range n.fraction {
		a.push(c - '0')
	}
	return a.finish(halfEven)
}

// short is the way of nearly every price: up to 19 digits, no exponent, no more places than the scale. ok is
// false where it does not apply.
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

// parseLong reads an integer of 64 bits: also 12.0 and 1.2e1, which are integers, and not 12.5.
func parseLong(text []byte) (int64, bool) {
	if v, ok := parseShortLong(text); ok {
		return v, true
	}
	d, ok := parseDecimal(text, 19, 0, false)
	if !ok {
		return 0, false
	}
	return d.long()
}

func parseShortLong(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	var v int64
	for _, c := range text {
		if c-'0' > 9 {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// parseDouble reads a number as the nearest double, as every JSON and SQL reader does. It fails on what no
// double comes near (1e999).
func parseDouble(text []byte) (float64, bool) {
	if _, ok := scanNumber(text); !ok { // ParseFloat takes Inf, NaN, hexadecimal and underscores too
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}
