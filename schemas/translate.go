package schemas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// translate encodes a body of the writer's schema as today's schema does: fields that today's schema does not have are left out, those that the
// writer did not have are null.
func (v *ValueReader) translate(body []byte) ([]byte, error) {
	c := cursor{b: body, budget: 1024 + len(body)}
	starts := make([][]byte, len(v.res.Fields)) // by today's field: the body from where its value begins
	shapes := make([]*shape, len(v.res.Fields))
	for _, w := range v.writer {
		if w.target >= 0 {
			starts[w.target], shapes[w.target] = c.b, w.shape
		}
		c.skip(w.shape, 0)
	}
	if c.err != nil {
		return nil, c.err
	}
	if len(c.b) > 0 {
		return nil, errTrailing
	}
	b := v.arena.room(len(body) + 32*len(v.res.Fields))
	for i := range v.res.Fields {
		f := &v.res.Fields[i]
		from := cursor{b: starts[i]}
		s := nullShape
		if shapes[i] != nil {
			s = from.branch(shapes[i])
		}
		var ok bool
		if b, ok = f.appendFrom(b, s, &from); !ok {
			return nil, fmt.Errorf("field %s: %w", f.Name, errFit)
		}
	}
	return v.arena.take(b), nil
}

var errFit = errors.New("the value does not fit today's schema")

// appendFrom encodes as f the value of type s that c stands before.
func (f *Field) appendFrom(b []byte, s *shape, c *cursor) ([]byte, bool) {
	if s.kind == "null" {
		return append(b, 0), f.Nullable
	}
	if f.Nullable {
		b = append(b, 2)
	}
	switch f.Kind {
	case Long:
		return binary.AppendVarint(b, c.long()), true
	case Timestamp:
		n := c.long()
		if s.logical == "timestamp-micros" {
			n = Instant(n).Millis()
		}
		return binary.AppendVarint(b, n), true
	case Decimal:
		d, ok := c.decimal(s).rescale(s.scale, f)
		return d.appendBytes(b), ok
	case Double:
		bits, ok := c.doubleFrom(s)
		return binary.LittleEndian.AppendUint64(b, bits), ok
	case String:
		text, ok := c.textFrom(s)
		return appendText(b, text), ok
	}
	return b, false
}

// doubleFrom reads a number of a type that promotes to double, as a double's bits; false where no double is that number.
func (c *cursor) doubleFrom(s *shape) (bits uint64, ok bool) {
	switch s.kind {
	case "int", "long":
		n := c.long()
		return math.Float64bits(float64(n)), n >= -1<<53 && n <= 1<<53
	case "float":
		if v := c.take(4); v != nil {
			return math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))), true
		}
		return 0, false
	default:
		return c.double(), true
	}
}

// textFrom reads a string, bytes or the symbol of an enum; false where that is no text.
func (c *cursor) textFrom(s *shape) ([]byte, bool) {
	if s.kind != "enum" {
		text := c.bytes()
		return text, utf8.Valid(text)
	}
	if i := c.long(); i >= 0 && i < int64(len(s.symbols)) {
		return []byte(s.symbols[i]), true
	}
	return nil, false
}

// decimal reads a decimal of type s.
func (c *cursor) decimal(s *shape) foreignDecimal {
	var raw []byte
	if s.kind == "fixed" {
		raw = c.take(int64(s.size))
	} else {
		raw = c.bytes()
	}
	d, ok := decimalOf(raw)
	return foreignDecimal{d, ok}
}

// foreignDecimal is a decimal of another scale; ok is false where it is wider than 128 bits.
type foreignDecimal struct {
	d  decimal
	ok bool
}

// rescale brings a decimal of scale from to f's.
func (d foreignDecimal) rescale(from int, f *Field) (decimal, bool) {
	if !d.ok || from > maxPrecision {
		return decimal{}, false
	}
	var buf [48]byte
	return parseDecimal(d.d.appendText(buf[:0], from), f.Precision, f.Scale, f.HalfEven)
}
