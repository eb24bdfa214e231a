package schemas

import (
	"fmt"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fieldTypes is the rule that every field's type is measured by.
const fieldTypes = `"long", "double", "string", {"type": "long", "logicalType": "timestamp-millis"} or ` +
	`{"type": "bytes", "logicalType": "decimal", "precision": P, "scale": S}, or ["null", one of these]`

// parseField parses the i-th field.
func (s *avsc) parseField(i int, o object) Field {
	f := Field{}
	label := fmt.Sprintf("number %d", i+1)
	s.take(label, o, "name", &f.Name, "a name")
	if avroName.MatchString(f.Name) {
		label = f.Name
	} else {
		s.wrong(label, "name %q: expected letters, digits and _, not beginning with a digit", f.Name)
	}
	raw, ok := o["type"]
	delete(o, "type")
	if !ok {
		s.wrong(label, "no type: expected %s", fieldTypes)
	} else if !f.parseType(raw) {
		s.wrong(label, "type %s: expected %s", compact(raw), fieldTypes)
	}
	s.parseDefault(label, o, &f)
	s.take(label, o, "doc", &f.Doc, "a text")
	s.take(label, o, "pii", &f.PII, "true or false")
	s.parseRounding(label, o, &f)
	f.extras = s.takeExtras(label, o, "name, type, doc, default, pii, rounding")
	if f.Kind == Decimal && ok {
		s.checkDecimal(label, &f)
	}
	return f
}

// parseType fills in what a field's type says; false where it is none of fieldTypes.
func (f *Field) parseType(raw jsontext.Value) bool {
	switch raw.Kind() {
	case '[':
		var union []jsontext.Value
		if json.Unmarshal(raw, &union) != nil || len(union) != 2 || string(union[0]) != `"null"` || union[1].Kind() == '[' {
			return false
		}
		f.Nullable = true
		return f.parseType(union[1])
	case '{':
		return f.parseLogicalType(raw)
	}
	switch string(raw) {
	case `"long"`:
		f.Kind = Long
	case `"double"`:
		f.Kind = Double
	case `"string"`:
		f.Kind = String
	default:
		return false
	}
	return true
}

func (f *Field) parseLogicalType(raw jsontext.Value) bool {
	var t struct {
		Type        string `json:"type"`
		LogicalType string `json:"logicalType"`
		Precision   *int   `json:"precision"`
		Scale       *int   `json:"scale"`
	}
	if json.Unmarshal(raw, &t, json.RejectUnknownMembers(true)) != nil {
		return false
	}
	switch {
	case t.Type == "long" && t.LogicalType == "timestamp-millis" && t.Precision == nil && t.Scale == nil:
		f.Kind = Timestamp
	case t.Type == "bytes" && t.LogicalType == "decimal" && t.Precision != nil:
		f.Kind, f.Precision = Decimal, *t.Precision
		if t.Scale != nil {
			f.Scale = *t.Scale
		}
	default:
		return false
	}
	return true
}

// parseDefault: null for nullable fields, none for the others. Without a default, adding a field breaks every reader.
func (s *avsc) parseDefault(label string, o object, f *Field) {
	raw, ok := o["default"]
	delete(o, "default")
	if f.Nullable && (!ok || raw.Kind() != 'n') {
		s.wrong(label, `nullable: expected "default": null`)
	}
	if !f.Nullable && ok {
		s.wrong(label, "has a default and is not nullable: expected none, because the service always gives it")
	}
}

func (s *avsc) parseRounding(label string, o object, f *Field) {
	raw, ok := o["rounding"]
	delete(o, "rounding")
	if !ok {
		return
	}
	if f.Kind != Decimal || string(raw) != `"half-even"` {
		s.wrong(label, `rounding is %s: expected "half-even", on a decimal`, compact(raw))
	}
	f.HalfEven = true
}

func (s *avsc) checkDecimal(label string, f *Field) {
	if f.Precision < 1 || f.Precision > maxPrecision {
		s.wrong(label, "precision %d: expected 1 to %d", f.Precision, maxPrecision)
	} else if f.Scale < 0 || f.Scale > f.Precision {
		s.wrong(label, "scale %d: expected 0 to the precision, %d", f.Scale, f.Precision)
	}
}

// compact is raw on one line, cut where it is long.
func compact(raw jsontext.Value) string {
	raw = raw.Clone()
	if raw.Compact() != nil || len(raw) > 120 {
		return "given"
	}
	return string(raw)
}
