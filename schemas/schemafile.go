package schemas

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/avro"
)

const (
	namespace    = "storestream"
	maxPrecision = 38  // 128 bits hold any number of so many digits
	maxFields    = 256 // more is not a table of this service

	// fieldTypes lists the types that a field may have.
	fieldTypes = `"long", "double", "string", {"type": "long", "logicalType": "timestamp-millis"} or ` +
		`{"type": "bytes", "logicalType": "decimal", "precision": P, "scale": S}, or ["null", one of these]`
)

// avroName matches the names that Avro allows. In lower case they need no quotes in SQL.
var avroName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// schemaFile is one parsed .avsc file and its mistakes.
type schemaFile struct {
	file, name, doc string
	fields          []Field
	extras          string   // see takeExtras
	mistakes        []string // a line each: the file, the field and the rule
}

// object is a JSON object whose members are not checked yet. The JSON library refuses names that appear
// twice.
type object map[string]jsontext.Value

// parseSchemaFile parses a schema file and collects its mistakes. Without mistakes the result is a schema
// that every part of this package can work with, and that any Avro library reads.
func parseSchemaFile(file string, text []byte) *schemaFile {
	s := &schemaFile{file: file}
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		s.wrong("", "expected a JSON object: %v", err)
		return s
	}
	s.parseRecord(o)
	s.checkRows()
	if len(s.mistakes) > 0 {
		return s
	}
	if _, err := avro.Parse(schemaText(s)); err != nil {
		s.wrong("", "not a schema that Avro accepts: %v", err)
	}
	return s
}

// wrong notes a mistake in a field, or in the record if field is "".
func (s *schemaFile) wrong(field, format string, args ...any) {
	place := s.file
	if field != "" {
		place += ": field " + field
	}
	s.mistakes = append(s.mistakes, place+": "+fmt.Sprintf(format, args...))
}

// take removes the attribute name from o and decodes it into v. If o does not have it, v stays as it is.
func (s *schemaFile) take(field string, o object, name string, v any, what string) {
	raw, ok := o[name]
	delete(o, name)
	if ok && json.Unmarshal(raw, v) != nil {
		s.wrong(field, "%s is %s: expected %s", name, raw, what)
	}
}

// takeExtras takes the attributes that are left in o. It returns those with a colon ("confluent:tags") in the
// form of the registry's text, because they go there. Any other is a mistake: a misspelt "pii" would show
// personal data. (The built-in schemas mark fields by Confluent's tag, which governance tools know. The text
// that is registered has both marks.)
func (s *schemaFile) takeExtras(field string, o object, known string) string {
	var extras []byte
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !strings.Contains(name, ":") {
			s.wrong(field, "attribute %q is not known: expected %s, "+
				"or a name with a colon, which goes to the registry", name, known)
			continue
		}
		value := o[name]
		_ = value.Canonicalize() // it was parsed out of a valid document
		extras, _ = jsontext.AppendQuote(append(extras, ','), name)
		extras = append(append(extras, ':'), value...)
	}
	return string(extras)
}

func (s *schemaFile) parseRecord(o object) {
	var kind, space string
	var fields []object
	s.take("", o, "type", &kind, `"record"`)
	s.take("", o, "name", &s.name, "a record's name")
	s.take("", o, "namespace", &space, `"`+namespace+`"`)
	s.take("", o, "doc", &s.doc, "a text")
	s.take("", o, "fields", &fields, "an array of objects")
	s.extras = s.takeExtras("", o, "type, name, namespace, doc, fields")
	if kind != "record" {
		s.wrong("", `type is %q: expected "record"`, kind)
	}
	if space != namespace {
		s.wrong("", "namespace is %q: expected %q", space, namespace)
	}
	var records []string
	for _, d := range declared {
		records = append(records, d.RecordName)
	}
	if !slices.Contains(records, s.name) {
		s.wrong("", "record %q: expected one of %s", s.name, strings.Join(records, ", "))
	}
	if len(fields) > maxFields {
		s.wrong("", "%d fields: expected at most %d", len(fields), maxFields)
		return
	}
	for i, f := range fields {
		s.fields = append(s.fields, s.parseField(i, f))
	}
}

// parseField parses the i-th field.
func (s *schemaFile) parseField(i int, o object) Field {
	f := Field{}
	label := fmt.Sprintf("number %d", i+1)
	s.take(label, o, "name", &f.Name, "a name")
	if avroName.MatchString(f.Name) {
		label = f.Name
	} else {
		s.wrong(label, "name %q: expected letters, digits and _, not beginning with a digit", f.Name)
	}
	var raw, rounding, standard jsontext.Value
	s.take(label, o, "type", &raw, fieldTypes)
	s.take(label, o, "default", &standard, "null")
	s.take(label, o, "rounding", &rounding, `"half-even"`)
	s.take(label, o, "doc", &f.Doc, "a text")
	s.take(label, o, "pii", &f.PII, "true or false")
	f.PII = f.PII || taggedPII(o["confluent:tags"])
	f.extras = s.takeExtras(label, o, "name, type, doc, default, pii, rounding")
	f.Nullable, f.codec = s.parseType(label, raw, rounding)
	if f.Nullable && standard.Kind() != 'n' { // without a default, adding a field breaks every reader
		s.wrong(label, `nullable: expected "default": null`)
	} else if !f.Nullable && standard != nil {
		s.wrong(label, "has a default and is not nullable: expected none, because the service always gives it")
	}
	return f
}

// taggedPII returns whether a field's tags for the registry mark it as personal.
func taggedPII(tags jsontext.Value) bool {
	var names []string
	return tags != nil && json.Unmarshal(tags, &names) == nil && slices.Contains(names, "PII")
}

// parseType parses a field's type and its rounding. The codec is nil if fieldTypes does not have the type.
func (s *schemaFile) parseType(label string, raw, rounding jsontext.Value) (nullable bool, c *codec) {
	if raw == nil {
		s.wrong(label, "no type: expected %s", fieldTypes)
		return false, nil
	}
	one := raw.Clone()
	var union []jsontext.Value
	if raw.Kind() == '[' && json.Unmarshal(raw, &union) == nil && len(union) == 2 &&
		string(union[0]) == `"null"` {
		nullable, one = true, union[1].Clone()
	}
	_ = one.Canonicalize() // it puts the names in order
	var decimal struct {
		Type        string `json:"type"`
		LogicalType string `json:"logicalType"`
		Precision   *int   `json:"precision"`
		Scale       int    `json:"scale"`
	}
	isDecimal := json.Unmarshal(one, &decimal, json.RejectUnknownMembers(true)) == nil &&
		decimal.Type == "bytes" && decimal.LogicalType == "decimal" && decimal.Precision != nil
	switch {
	case isDecimal && (*decimal.Precision < 1 || *decimal.Precision > maxPrecision):
		s.wrong(label, "precision %d: expected 1 to %d", *decimal.Precision, maxPrecision)
	case isDecimal && (decimal.Scale < 0 || decimal.Scale > *decimal.Precision):
		s.wrong(label, "scale %d: expected 0 to the precision, %d", decimal.Scale, *decimal.Precision)
	case isDecimal:
		c = decimalCodec(*decimal.Precision, decimal.Scale, rounding != nil)
	case string(one) == `"long"`:
		c = longCodec
	case string(one) == `"double"`:
		c = doubleCodec
	case string(one) == `"string"`:
		c = textCodec
	case string(one) == `{"logicalType":"timestamp-millis","type":"long"}`:
		c = timeCodec
	default:
		s.wrong(label, "type %s: expected %s", compact(raw), fieldTypes)
	}
	if rounding != nil && (!isDecimal || string(rounding) != `"half-even"`) {
		s.wrong(label, `rounding is %s: expected "half-even", on a decimal`, compact(rounding))
	}
	return nullable, c
}

// compact returns raw on one line, or "given" if that is long.
func compact(raw jsontext.Value) string {
	raw = raw.Clone()
	if raw.Compact() != nil || len(raw) > 120 {
		return "given"
	}
	return string(raw)
}

// checkRows checks the fields that every row of the service has.
func (s *schemaFile) checkRows() {
	seen := map[string]*Field{}
	for i := range s.fields {
		f := &s.fields[i]
		if seen[f.Name] != nil {
			s.wrong(f.Name, "listed twice: expected once")
		}
		seen[f.Name] = f
	}
	s.mustHave(seen["id"], "id", longCodec)
	s.mustHave(seen["created_at"], "created_at", timeCodec)
	s.mustHave(seen["updated_at"], "updated_at", timeCodec)
	if len(s.fields) > 0 && s.fields[0].Name != "id" && seen["id"] != nil {
		s.wrong("id", "stands after %s: expected it first", s.fields[0].Name)
	}
	for i := range s.fields {
		f := &s.fields[i]
		if f.Name != "id" && f.Name != "created_at" && f.Name != "updated_at" && !f.Nullable {
			s.wrong(f.Name, `not nullable: expected ["null", ...] with default null, `+
				`because the service does not say what may be null`)
		}
	}
}

func (s *schemaFile) mustHave(f *Field, name string, c *codec) {
	if f == nil {
		s.wrong(name, "missing: expected it with type %s", c.avroType)
	} else if f.codec != c || f.Nullable {
		s.wrong(name, "expected type %s, not nullable", c.avroType)
	}
}

// schemaText returns the schema as it is registered: one line, attributes in a fixed order, with docs and
// "pii" for people who read the registry. A change of this form is a new schema id in every registry.
func schemaText(s *schemaFile) string {
	b := []byte(`{"type":"record","name":"` + s.name + `","namespace":"` + namespace + `"`)
	b = appendDoc(b, s.doc)
	b = append(b, s.extras+`,"fields":[`...)
	for i := range s.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFieldText(b, &s.fields[i])
	}
	return string(append(b, `]}`...))
}

func appendFieldText(b []byte, f *Field) []byte {
	b = append(b, `{"name":"`+f.Name+`","type":`...)
	if f.Nullable {
		b = append(b, `["null",`+f.codec.avroType+`]`...)
	} else {
		b = append(b, f.codec.avroType...)
	}
	b = appendDoc(b, f.Doc)
	if f.Nullable {
		b = append(b, `,"default":null`...)
	}
	if f.PII {
		b = append(b, `,"pii":true`...)
	}
	if f.codec.halfEven {
		b = append(b, `,"rounding":"half-even"`...)
	}
	return append(b, f.extras+"}"...)
}

func appendDoc(b []byte, doc string) []byte {
	if doc != "" {
		b, _ = jsontext.AppendQuote(append(b, `,"doc":`...), doc) // it comes from JSON, so it is valid
	}
	return b
}
