package storefake

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"
)

// dictionary gives each text a permanent number. With it rows are packed into cells and unpacked, and money,
// which may be a text too, is added up.
type dictionary struct {
	mu      sync.RWMutex
	numbers map[string]cell
	texts   []string
}

func (d *dictionary) number(s string) cell {
	d.mu.RLock()
	n, ok := d.numbers[s]
	d.mu.RUnlock()
	if ok {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.numbers[s]; ok {
		return n
	}
	n = cell(len(d.texts))
	d.texts = append(d.texts, s)
	d.numbers[s] = n
	return n
}

func (d *dictionary) text(n cell) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.texts[n]
}

// rowOf unpacks cells.
func (d *dictionary) rowOf(res *resource, cells []cell) Row {
	row := make(Row, len(cells))
	for i, f := range res.fields {
		c := cells[i]
		switch {
		case c == null:
			row[f.name] = nil
		case f.kind == integer:
			row[f.name] = int64(c)
		case f.kind == instant:
			row[f.name] = c.time()
		case f.kind == money:
			row[f.name] = Money(d.appendMoney(nil, c))
		case f.kind == coordinate:
			row[f.name] = c.float()
		default:
			row[f.name] = d.text(c)
		}
	}
	return row
}

// cellsOf packs a row; a field that it lacks is null, one that the resource does not have is an error.
func (d *dictionary) cellsOf(res *resource, row Row) ([]cell, error) {
	for name := range row {
		if res.index(name) < 0 {
			return nil, fmt.Errorf("%s has no field %q", res.name, name)
		}
	}
	cells := make([]cell, res.width())
	for i, f := range res.fields {
		c, err := d.cellOf(f, row[f.name])
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", res.name, f.name, err)
		}
		cells[i] = c
	}
	return cells, nil
}

func (d *dictionary) cellOf(f field, value any) (cell, error) {
	if value == nil {
		return null, nil
	}
	switch v := value.(type) {
	case int64:
		if f.kind == integer {
			return cell(v), nil
		}
	case int:
		if f.kind == integer {
			return cell(v), nil
		}
	case time.Time:
		if f.kind == instant {
			return cellOf(v), nil
		}
	case Money:
		if f.kind == money {
			return d.packMoney(string(v))
		}
	case float64:
		if f.kind == coordinate {
			return coordinateOf(v), nil
		}
	case string:
		if f.kind == text {
			return d.number(v), nil
		}
	}
	return null, fmt.Errorf("a %T does not fit", value)
}

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

// toFloat is c as a float column of this size keeps it: the shortest decimal that reads back as the float
// nearest to c.
func (d *dictionary) toFloat(c cell, bits int) cell {
	f, err := strconv.ParseFloat(string(d.appendMoney(nil, c)), bits)
	if err != nil {
		return c
	}
	rounded, _ := d.packMoney(strconv.FormatFloat(f, 'f', -1, bits))
	return rounded
}

// conform rounds a row's money as a column of floats of this size does, so that REST shows the row that
// PostgreSQL has. With 0 bits, money is exact.
func (d *dictionary) conform(res *resource, cells []cell, bits int) {
	if res.table == "" || bits == 0 {
		return
	}
	for i, f := range res.fields {
		if f.kind == money && cells[i] != null {
			cells[i] = d.toFloat(cells[i], bits)
		}
	}
}

// appendSQL writes a value, not null, as PostgreSQL reads it from text.
func (d *dictionary) appendSQL(dst []byte, k kind, c cell) []byte {
	switch k {
	case integer:
		return strconv.AppendInt(dst, int64(c), 10)
	case instant:
		// With its zone: a timestamptz column must not depend on the session's, and a naive one ignores it.
		return c.time().AppendFormat(dst, "2006-01-02 15:04:05.999999+00")
	case money:
		return d.appendMoney(dst, c)
	default:
		return append(dst, d.text(c)...)
	}
}
