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

// readFixed reads the fields that every row has, and skips the others. It reads with c.
func (v *Value) readFixed(c *cursor) error {
	*c = cursor{b: v.body}
	for i := range v.res.Fields {
		f := &v.res.Fields[i]
		if f.Nullable && c.isNull() {
			continue
		}
		switch i {
		case 0:
			v.ID = c.long()
		case v.res.updatedAt:
			v.UpdatedAt = c.instant()
		case v.res.createdAt:
			v.CreatedAt = c.instant()
		default:
			f.codec.skip(c)
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

// Fields yields each field with its value in JSON, as AppendJSON writes it, nothing masked. The text is valid
// until the next one.
func (v Value) Fields() iter.Seq2[*Field, []byte] {
	return func(yield func(*Field, []byte) bool) {
		c := &cursor{b: v.body} // readFixed has read it without a fault
		var text []byte
		for i := range v.res.Fields {
			f := &v.res.Fields[i]
			if f.Nullable && c.isNull() {
				text = append(text[:0], "null"...)
			} else {
				text = f.codec.toJSON(text[:0], c)
			}
			if !yield(f, text) {
				return
			}
		}
	}
}
