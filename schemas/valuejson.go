package schemas

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

const masked = `"***"`

// AppendJSON appends the value as a JSON object, fields in the order of today's schema: money as an exact number without trailing zeros,
// timestamps in RFC 3339. With maskPII, every personal value that is not null becomes "***".
func (v Value) AppendJSON(dst []byte, maskPII bool) []byte {
	c := cursor{b: v.body} // Read has been through it: it cannot fail
	for i := range v.res.Fields {
		f := &v.res.Fields[i]
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		dst = append(append(append(dst, sep, '"'), f.Name...), `":`...)
		start := len(dst)
		dst = f.appendJSON(dst, &c)
		if maskPII && f.PII && string(dst[start:]) != "null" {
			dst = append(dst[:start], masked...)
		}
	}
	return append(dst, '}')
}

// appendJSON appends the value of f that c stands before.
func (f *Field) appendJSON(dst []byte, c *cursor) []byte {
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
