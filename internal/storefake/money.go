package storefake

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Money is an exact decimal as text: -?digits, or -?digits.digits. Trailing zeros are kept, as PostgreSQL's numeric keeps them.
type Money string

// A money cell is unscaled<<5 | scale. Seventeen digits fit, which is as many as float dust has. Anything longer is a place in the dictionary
// with a scale of longMoney.
const (
	scaleBits   = 5
	longMoney   = 1<<scaleBits - 1
	maxUnscaled = 1 << (63 - scaleBits - 1)
)

func (c cell) scale() int      { return int(c & longMoney) }
func (c cell) unscaled() int64 { return int64(c >> scaleBits) }

// packMoney is exact, or an error.
func (d *dictionary) packMoney(s string) (cell, error) {
	digits, fraction, _ := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	if digits == "" || strings.HasSuffix(s, ".") || strings.Trim(digits+fraction, "0123456789") != "" {
		return null, fmt.Errorf("money %q: expected digits with at most one point", s)
	}
	u, err := strconv.ParseInt(digits+fraction, 10, 64)
	if err != nil || u >= maxUnscaled || len(fraction) >= longMoney {
		return d.number(s)<<scaleBits | longMoney, nil //nolint:nilerr // too long for a cell: kept as text
	}
	if s[0] == '-' {
		u = -u
	}
	return cell(u<<scaleBits | int64(len(fraction))), nil
}

func (d *dictionary) appendMoney(dst []byte, c cell) []byte {
	scale := c.scale()
	if scale == longMoney {
		return append(dst, d.text(cell(c.unscaled()))...)
	}
	u := c.unscaled()
	if u < 0 {
		dst, u = append(dst, '-'), -u
	}
	start := len(dst)
	dst = strconv.AppendInt(dst, u, 10)
	if scale == 0 {
		return dst
	}
	for len(dst)-start <= scale { // at least one digit before the point
		dst = append(dst, 0)
		copy(dst[start+1:], dst[start:])
		dst[start] = '0'
	}
	point := len(dst) - scale
	dst = append(dst, 0)
	copy(dst[point+1:], dst[point:])
	dst[point] = '.'
	return dst
}

// times is c taken n times, exact.
func (d *dictionary) times(c cell, n int64) cell {
	if c == null || n == 1 {
		return c
	}
	if u := c.unscaled() * n; c.scale() != longMoney && n < 32 && u < maxUnscaled && u > -maxUnscaled {
		return cell(u<<scaleBits | int64(c.scale()))
	}
	u, scale := d.big(c)
	return d.packBig(u.Mul(u, big.NewInt(n)), scale)
}

// plus is a + b, exact, with the larger scale of the two. Null counts as nothing.
func (d *dictionary) plus(a, b cell) cell {
	if a == null {
		return b
	}
	if b == null {
		return a
	}
	if a.scale() == b.scale() && a.scale() != longMoney {
		if u := a.unscaled() + b.unscaled(); u < maxUnscaled && u > -maxUnscaled {
			return cell(u<<scaleBits | int64(a.scale()))
		}
	}
	x, sx := d.big(a)
	y, sy := d.big(b)
	for ; sx < sy; sx++ {
		x.Mul(x, big.NewInt(10))
	}
	for ; sy < sx; sy++ {
		y.Mul(y, big.NewInt(10))
	}
	return d.packBig(x.Add(x, y), sx)
}

func (d *dictionary) big(c cell) (unscaled *big.Int, scale int) {
	if c.scale() != longMoney {
		return big.NewInt(c.unscaled()), c.scale()
	}
	digits, fraction, _ := strings.Cut(d.text(cell(c.unscaled())), ".")
	u, _ := new(big.Int).SetString(digits+fraction, 10)
	return u, len(fraction)
}

func (d *dictionary) packBig(u *big.Int, scale int) cell {
	s := u.String()
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if scale > 0 {
		if len(s) <= scale {
			s = strings.Repeat("0", scale+1-len(s)) + s
		}
		s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	}
	c, _ := d.packMoney(sign + s) // digits with at most one point
	return c
}

// toFloat is the shortest decimal that reads back as the float of so many bits nearest to c: what a float column would keep of it.
func (d *dictionary) toFloat(c cell, bits int) cell {
	f, err := strconv.ParseFloat(string(d.appendMoney(nil, c)), bits)
	if err != nil {
		return c
	}
	rounded, _ := d.packMoney(strconv.FormatFloat(f, 'f', -1, bits))
	return rounded
}
