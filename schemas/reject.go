package schemas

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// Reject is a row that breaks the contract of its schema. It cannot be published as it stands.
type Reject struct {
	// ID is the row's id if it has a usable one (HasID).
	ID    int64
	HasID bool
	// UpdatedAt is the row's updated_at, or MinInstant if it has no usable one.
	UpdatedAt Instant
	// Row is the row as a JSON object. From REST it has the known fields as they came, from PostgreSQL the text
	// of each column. It may hold personal data: it goes to the dead-letter topic and nowhere else.
	//
	// It shows no more than the row itself would if it were good, so the policies hold there too. A field that
	// the schema does not know is left out, because no mark says whether it is personal. Personal fields that
	// are clear are masked unless the user wants them whole.
	//
	// A row that breaks the contract may have its values in the wrong fields: after a column was shifted, an
	// e-mail address is in created_at and a street in state. So a value is shown only if it can be the field's
	// own. Otherwise it is masked in every field, as personal values are. Every text can be the value of a text
	// field. So if a resource has any field to protect, all its texts are masked.
	//
	// A value that is not a text cannot be hashed, so it is masked instead.
	Row []byte
	// Field is the first field that breaks the contract, "" if the row is not an object.
	Field string
	// Err is the rule that Field breaks. It never has the field's value.
	Err string
}

// leftOut stands in place of an object or array.
const leftOut = `"(left out)"`

// rejectedRow returns the row that was scanned last as a Reject shows it, with its known fields in its order.
func (p *RowParser) rejectedRow(raw []byte) []byte {
	var fields []int
	for i, s := range p.spans {
		if s.end > 0 {
			fields = append(fields, i)
		}
	}
	slices.SortFunc(fields, func(a, b int) int { return cmp.Compare(p.spans[a].start, p.spans[b].start) })
	dst := []byte{'{'}
	for _, i := range fields {
		f, value := &p.res.Fields[i], raw[p.spans[i].start:p.spans[i].end]
		text := value
		switch value[0] {
		case '"':
			text, _ = jsontext.AppendUnquote(nil, value)
		case '{', '[': // no field is one, so no mark says whether its contents are personal
			text = nil
		}
		_, parses := f.codec.fromText(nil, text)
		dst = p.protect.appendShown(appendName(dst, f), i, value, text, parses)
	}
	return append(dst, '}')
}

// appendName appends the name of a member to an object.
func appendName(dst []byte, f *Field) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	return append(append(append(dst, '"'), f.Name...), `":`...)
}

// appendShown appends a value of field i as a Reject shows it. value is its JSON, and text its text, nil for
// an array or object. parses is set if it can be the field's own.
func (p *protector) appendShown(dst []byte, i int, value, text []byte, parses bool) []byte {
	switch policy := p.rejectPolicy(i, parses); {
	case policy == "" || string(value) == "null":
		return append(dst, value...)
	case policy == PolicyDrop:
		return append(dst, "null"...)
	case text == nil:
		return append(dst, leftOut...)
	case policy == PolicyHash && value[0] == '"' && utf8.Valid(value):
		return fmt.Appendf(dst, `"%x"`, p.hash(text))
	}
	dst, _ = jsontext.AppendQuote(dst, appendMasked(nil, text))
	return dst
}

// rejectPolicy returns the policy by which a Reject shows a value of field i. parses is set if the value can
// be the field's own. fullRejects shows all personal values that have no policy.
func (p *protector) rejectPolicy(i int, parses bool) Policy {
	f := &p.res.Fields[i]
	switch {
	case f.Policy != "":
		return f.Policy
	case p.res.fullRejects && (parses || p.res.PolicyFingerprint() == ""):
		return ""
	case parses && !f.PII && (f.codec != textCodec || !p.res.protects()):
		return ""
	}
	return PolicyMask
}

// appendUnreadable appends a row of the service in which no fields can be told apart, as a Reject shows it.
func (p *protector) appendUnreadable(dst, raw []byte, rej *Reject) []byte {
	if p.res.fullRejects && p.res.PolicyFingerprint() == "" {
		return append(dst, raw...)
	}
	dst = append(dst, '{')
	if rej.HasID {
		dst = fmt.Appendf(dst, `"id":%d,`, rej.ID)
	}
	return fmt.Appendf(dst, `"bytes":%d,"note":"not one well-formed JSON object: left out"}`, len(raw))
}

// RejectHash identifies a row that is too large to be published by the parts that a Reject may show. value is
// the row as it would be published. A hash of personal fields that are shown masked would tell who has the
// same ones, so such a field counts only as null or not. RejectHash is 0 if value is no row of r.
func (r *Resource) RejectHash(value []byte) uint64 {
	values, err := NewValueReader(r, "")
	if err != nil {
		return 0
	}
	row, err := values.Read(value)
	if err != nil {
		return 0
	}
	return xxhash.Sum64(row.AppendJSON(nil, !r.fullRejects))
}
