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
	maxPrecision = 38  // the most digits that 128 bits hold whatever they are
	maxFields    = 256 // more is not a table of this service
)

// avroName is what the Avro specification allows for a name; it also needs no quoting in SQL, for columns in lower case.
var avroName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// avsc is one parsed schema file.
type avsc struct {
	file, name, doc string
	fields          []Field
	extras          []attribute
	mistakes        []Mistake
}

// attribute is one that storestream hands on to the registry as it is; its name holds a colon ("confluent:tags").
type attribute struct {
	name  string
	value jsontext.Value
}

// object is a JSON object, before it is known what may stand in it. Names that appear twice are refused by the JSON library.
type object map[string]jsontext.Value

// parseAvsc parses a schema file and collects what is wrong with it. Without mistakes the result is a schema that every part of this
// package can work with, and that any Avro library reads.
func parseAvsc(file string, text []byte) (*avsc, []Mistake) {
	s := &avsc{file: file}
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		s.wrong("", "expected a JSON object: %v", err)
		return s, s.mistakes
	}
	s.parseRecord(o)
	s.checkRows()
	if len(s.mistakes) > 0 {
		return s, s.mistakes
	}
	if _, err := avro.Parse(s.text()); err != nil {
		s.wrong("", "not a schema that Avro accepts: %v", err)
	}
	return s, s.mistakes
}

func (s *avsc) wrong(field, format string, args ...any) {
	s.mistakes = append(s.mistakes, Mistake{File: s.file, Field: field, Rule: fmt.Sprintf(format, args...)})
}

// take removes the attribute name from o and decodes it into v; an absent one leaves v alone.
func (s *avsc) take(field string, o object, name string, v any, what string) {
	raw, ok := o[name]
	delete(o, name)
	if ok && json.Unmarshal(raw, v) != nil {
		s.wrong(field, "%s is %s: expected %s", name, raw, what)
	}
}

// takeExtras takes what is left in o: attributes with a colon are handed on, any other is a mistake. (A misspelt "pii" that is
// passed over in silence shows personal data.)
func (s *avsc) takeExtras(field string, o object, known string) []attribute {
	var extras []attribute
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !strings.Contains(name, ":") {
			s.wrong(field, "attribute %q is not known: expected %s, or a name with a colon, which is handed on to the registry", name, known)
			continue
		}
		extras = append(extras, attribute{name, o[name]})
	}
	return extras
}

func (s *avsc) parseRecord(o object) {
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
	if !slices.ContainsFunc(declared, func(r Declaration) bool { return r.RecordName == s.name }) {
		s.wrong("", "record %q: expected one of %s", s.name, recordNames())
	}
	if len(fields) > maxFields {
		s.wrong("", "%d fields: expected at most %d", len(fields), maxFields)
		return
	}
	for i, f := range fields {
		s.fields = append(s.fields, s.parseField(i, f))
	}
}

func recordNames() string {
	var names []string
	for _, r := range declared {
		names = append(names, r.RecordName)
	}
	return strings.Join(names, ", ")
}

// checkRows checks what every row of the service has.
func (s *avsc) checkRows() {
	seen := map[string]*Field{}
	for i := range s.fields {
		f := &s.fields[i]
		if seen[f.Name] != nil {
			s.wrong(f.Name, "listed twice: expected once")
		}
		seen[f.Name] = f
	}
	s.mustHave(seen["id"], "id", Long)
	s.mustHave(seen["created_at"], "created_at", Timestamp)
	s.mustHave(seen["updated_at"], "updated_at", Timestamp)
	if len(s.fields) > 0 && s.fields[0].Name != "id" && seen["id"] != nil {
		s.wrong("id", "stands after %s: expected it first", s.fields[0].Name)
	}
	for i := range s.fields {
		f := &s.fields[i]
		if f.Name != "id" && f.Name != "created_at" && f.Name != "updated_at" && !f.Nullable {
			s.wrong(f.Name, `not nullable: expected ["null", ...] with default null, because the service does not say what may be null`)
		}
	}
}

func (s *avsc) mustHave(f *Field, name string, k Kind) {
	want := map[Kind]string{Long: `"long"`, Timestamp: `{"type": "long", "logicalType": "timestamp-millis"}`}[k]
	if f == nil {
		s.wrong(name, "missing: expected it with type %s", want)
	} else if f.Kind != k || f.Nullable {
		s.wrong(name, "expected type %s, not nullable", want)
	}
}
