package schemas

import "iter"

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

// Fields yields each field with its value in JSON, as AppendJSON writes it, nothing masked. The text is valid
// until the next one.
func (v Value) Fields() iter.Seq2[*Field, []byte] {
	return func(yield func(*Field, []byte) bool) {
		values := make([][]byte, len(v.res.Fields))
		_ = split(v.res.Fields, v.body, values) // Read has split it without a fault
		var text []byte
		for i, value := range values {
			f := &v.res.Fields[i]
			if text = text[:0]; value == nil {
				text = append(text, "null"...)
			} else {
				text = f.codec.toJSON(text, value)
			}
			if !yield(f, text) {
				return
			}
		}
	}
}
