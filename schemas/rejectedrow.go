package schemas

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// A Reject's Row goes to the dead-letter topic. It shows no more than the row itself would if it were good:
// the policies hold there too. A field that the schema does not know is left out, because no mark says
// whether it is personal. Personal fields that are clear are masked unless the user wants them whole.
//
// A row that breaks the contract may have its values in the wrong fields: after a column was shifted, an
// e-mail address is in created_at and a street in state. So a value is shown only if it can be the field's
// own. A value that does not parse as the field's type is masked in every field, as personal ones are. Every
// text parses as a text field. So if a resource has any field to protect, all its texts are masked.
//
// A value that is not a text cannot be hashed, so it is masked instead.

// leftOut stands in place of an object or array.
const leftOut = `"(left out)"`

// appendRejectedRow appends raw, a row of the service that is one JSON object, as a Reject shows it: known
// fields in the row's order, each value as it came or as its field's policy lets it through.
func (p *protector) appendRejectedRow(dst, raw []byte) []byte {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	dst = append(dst, '{')
	if _, err := d.ReadToken(); err != nil {
		return append(dst, '}')
	}
	var name []byte
	for sep := ""; d.PeekKind() == '"'; {
		quoted, err := d.ReadValue()
		if err != nil {
			break
		}
		name, _ = jsontext.AppendUnquote(name[:0], quoted)
		i, known := p.res.index[string(name)]
		value, err := d.ReadValue()
		if err != nil {
			break
		}
		if !known {
			continue
		}
		dst = append(append(append(dst, sep...), '"'), p.res.Fields[i].Name...)
		dst = p.appendRejectedValue(append(dst, `":`...), i, value)
		sep = ","
	}
	return append(dst, '}')
}

// appendRejectedValue appends a JSON value of field i.
func (p *protector) appendRejectedValue(dst []byte, i int, value []byte) []byte {
	text, isText, nested := value, false, false
	switch value[0] {
	case 'n':
		return append(dst, value...)
	case '"':
		var err error
		text, err = jsontext.AppendUnquote(nil, value)
		isText = err == nil
	case '{', '[': // no field is one, so no mark says whether its contents are personal
		text, nested = nil, true
	}
	switch policy := p.rejectPolicy(i, p.res.Fields[i].parses(text)); {
	case policy == "" && (!nested || p.res.fullRejects):
		return append(dst, value...)
	case nested && policy != PolicyDrop:
		return append(dst, leftOut...)
	default:
		return p.appendRejectedText(dst, policy, text, isText && p.res.Fields[i].Kind == String)
	}
}

// appendRejectedText appends, as JSON, what policy lets through of a text. hashable: it is what PolicyHash is
// for.
func (p *protector) appendRejectedText(dst []byte, policy Policy, text []byte, hashable bool) []byte {
	switch {
	case policy == "":
		dst, _ = jsontext.AppendQuote(dst, text) // replaces what is not UTF-8
		return dst
	case policy == PolicyDrop:
		return append(dst, "null"...)
	case policy == PolicyHash && hashable && utf8.Valid(text):
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
	case parses && !f.PII && (f.Kind != String || !p.res.protects()):
		return ""
	}
	return PolicyMask
}

// RejectHash identifies what may be shown of a row that cannot be published. value is the row as it would be,
// and too large. A hash of personal fields that are shown masked would tell who has the same ones, so such a
// field counts only as null or not. 0: value is no row of r.
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

// appendUnreadable appends what a Reject shows of a row of the service in which no fields can be told apart.
func (p *protector) appendUnreadable(dst, raw []byte, id int64, hasID bool) []byte {
	if p.res.fullRejects && p.res.PolicyFingerprint() == "" {
		return append(dst, raw...)
	}
	dst = append(dst, '{')
	if hasID {
		dst = fmt.Appendf(dst, `"id":%d,`, id)
	}
	return fmt.Appendf(dst, `"bytes":%d,"note":"not one well-formed JSON object: left out"}`, len(raw))
}
