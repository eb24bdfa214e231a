package schemas

import (
	"fmt"

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
	// A value that is not a text cannot be hashed, so it is masked instead. An object, an array, and a value
	// that is no JSON are shown by their size, because no mark says whether they hold personal data. If a row is
	// not well formed, the fields before the fault are shown.
	Row []byte
	// Field is the first field that breaks the contract, "" if the row is not an object.
	Field string
	// Err is the rule that Field breaks. It never has the field's value.
	Err string
}

// show appends field i to a row as a Reject shows it. value is its JSON. It is shown by its size if it is
// nil, an object, an array, or no JSON. typed is set if its column can hold no other field's values.
func (e *encoder) show(row []byte, i int, value []byte, size int, typed bool) []byte {
	f := &e.res.Fields[i]
	if len(row) > 1 {
		row = append(row, ',')
	}
	row = append(append(append(row, '"'), f.Name...), `":`...)
	text, known := value, len(value) > 0 && wellFormed(value) && value[0] != '{' && value[0] != '['
	if known && value[0] == '"' {
		var err error
		text, err = jsontext.AppendUnquote(nil, value)
		known = err == nil
	}
	if !known {
		value = fmt.Appendf(nil, `"(%d bytes, left out)"`, size)
	}
	if !known || string(value) == "null" {
		text = nil
	}
	_, parses := f.codec.fromText(nil, text)
	switch policy := e.rejectPolicy(i, parses || typed); {
	case policy == PolicyDrop:
		return append(row, "null"...)
	case policy == "" || text == nil:
		return append(row, value...)
	case policy == PolicyHash && value[0] == '"':
		return fmt.Appendf(row, `"%x"`, e.hash(i, text))
	}
	row, _ = jsontext.AppendQuote(row, appendMasked(nil, text))
	return row
}

// rejectPolicy returns the policy by which a Reject shows a value of field i. parses is set if the value can
// be the field's own. fullRejects shows all personal values that have no policy.
func (e *encoder) rejectPolicy(i int, parses bool) Policy {
	f := &e.res.Fields[i]
	switch {
	case f.Policy != "":
		return f.Policy
	case e.res.fullRejects && (parses || e.res.PolicyFingerprint() == ""):
		return ""
	case parses && !f.PII && (f.codec != textCodec || !e.res.protects()):
		return ""
	}
	return PolicyMask
}

// RejectHash identifies a row that is too large to be published by the parts that a Reject may show. value is
// the row as it would be published. A hash of personal fields that are shown masked would tell who has the
// same ones, so such a field counts only as null or not. RejectHash is 0 if value is no row of r.
func (r *Resource) RejectHash(value []byte) uint64 {
	values, _ := NewValueReader(r, "") // of today's schema it cannot fail
	row, err := values.Read(value)
	if err != nil {
		return 0
	}
	return xxhash.Sum64(row.AppendJSON(nil, !r.fullRejects))
}
