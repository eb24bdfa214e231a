package schemas

import (
	"iter"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is a decoded record value.
type Value struct {
	ID int64
	// UpdatedAt and CreatedAt are floored to the millisecond: Avro keeps no more.
	UpdatedAt, CreatedAt Instant
	// Hash is schemas.Hash of the value as today's schema encodes it.
	Hash uint64

	res  *Resource
	body []byte // as today's schema encodes it
}

// readFixed reads the fields that every row has, and steps over the others.
func (v *Value) readFixed() error {
	c := cursor{b: v.body}
	for i := range v.res.Fields {
		f := &v.res.Fields[i]
		if f.Nullable && c.isNull() {
			continue
		}
		switch f.Kind {
		case Long:
			if n := c.long(); i == 0 {
				v.ID = n
			}
		case Timestamp:
			t := c.instant()
			if i == v.res.updatedAt {
				v.UpdatedAt = t
			} else if i == v.res.createdAt {
				v.CreatedAt = t
			}
		case Double:
			c.take(8)
		default:
			c.bytes()
		}
	}
	if c.err == nil && len(c.b) > 0 {
		return errTrailing
	}
	return c.err
}

// AppendJSON appends the value as a JSON object, fields in the order of today's schema: money as an exact
// number without trailing zeros, timestamps in RFC 3339. With maskPII, every personal value that is not null
// becomes "***".
func (v Value) AppendJSON(dst []byte, maskPII bool) []byte {
	sep := byte('{')
	for f, text := range v.Fields() {
		dst = append(append(append(dst, sep, '"'), f.Name...), `":`...)
		dst = append(dst, f.Shown(text, maskPII)...)
		sep = ','
	}
	return append(dst, '}')
}

// Fields yields each field with its value in JSON, as AppendJSON writes it, nothing masked. The text is good
// until the next one.
func (v Value) Fields() iter.Seq2[*Field, []byte] {
	return func(yield func(*Field, []byte) bool) {
		c := cursor{b: v.body} // readFixed has been through it: it cannot fail
		var text []byte
		for i := range v.res.Fields {
			f := &v.res.Fields[i]
			if text = appendFieldJSON(text[:0], f, &c); !yield(f, text) {
				return
			}
		}
	}
}

// appendFieldJSON appends the value of f that c stands before.
func appendFieldJSON(dst []byte, f *Field, c *cursor) []byte {
	if f.Nullable && c.isNull() {
		return append(dst, "null"...)
	}
	switch f.Kind {
	case Long:
		return strconv.AppendInt(dst, c.long(), 10)
	case Timestamp:
		return c.instant().Time().AppendFormat(append(dst, '"'), `2006-01-02T15:04:05.999Z"`)
	case Decimal:
		d, ok := decimalOf(c.bytes())
		if !ok {
			return append(dst, `"wider than 128 bits"`...) // not written by storestream
		}
		return d.appendText(dst, f.Scale)
	case Double:
		n := math.Float64frombits(c.double())
		if math.IsNaN(n) || math.IsInf(n, 0) { // not written by storestream
			return strconv.AppendQuote(dst, strconv.FormatFloat(n, 'g', -1, 64))
		}
		return strconv.AppendFloat(dst, n, 'g', -1, 64)
	default:
		dst, _ = jsontext.AppendQuote(dst, c.bytes())
		return dst
	}
}
