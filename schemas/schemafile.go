package schemas

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/avro"
)

const namespace = "storestream"

// parseSchemaFile parses a schema file. It returns nil if the file is not of a declared record, and every
// mistake that it finds, a line each: the file, the field and the rule. Without mistakes the result is a
// schema that every part of this package can work with.
func parseSchemaFile(file string, text []byte) (r *Resource, mistakes []string) {
	wrong := func(place, format string, args ...any) {
		mistakes = append(mistakes, file+": "+place+fmt.Sprintf(format, args...))
	}
	var record struct {
		Type      string           `json:"type"`
		Name      string           `json:"name"`
		Namespace string           `json:"namespace"`
		Doc       string           `json:"doc"`
		Fields    []jsontext.Value `json:"fields"`
		Others    map[string]any   `json:",embed"`
	}
	compact := jsontext.Value(bytes.Clone(text))
	err := json.Unmarshal(text, &record)
	if err == nil {
		err = compact.Compact()
	}
	if err != nil {
		wrong("", "expected a record of Avro: %v", err)
		return nil, mistakes
	}
	if record.Type != "record" || record.Namespace != namespace {
		wrong("", "%q in namespace %q: expected a record in namespace %q", record.Type, record.Namespace, namespace)
	}
	wrongAttributes(wrong, "", record.Others, nil)
	i := slices.IndexFunc(declared, func(d Resource) bool { return d.RecordName == record.Name })
	if i < 0 {
		var records []string
		for _, d := range declared {
			records = append(records, d.RecordName)
		}
		wrong("", "record %q: expected one of %s", record.Name, strings.Join(records, ", "))
		return nil, mistakes
	}
	own := declared[i]
	r, own.valueSchema, own.index = &own, string(compact), map[string]int{}
	for i, text := range record.Fields {
		schema, err := avro.Parse(`{"type":"record","name":"R","fields":[` + string(text) + `]}`)
		if err != nil {
			wrong(fmt.Sprintf("field number %d: ", i+1), "%v", err)
			continue
		}
		f := parseField(wrong, &schema.Root().Fields[0])
		if _, twice := r.index[f.Name]; twice {
			wrong("field "+f.Name+": ", "listed twice: expected once")
		}
		r.index[f.Name] = len(r.Fields)
		r.Fields = append(r.Fields, f)
	}
	r.updatedAt, r.createdAt = r.index["updated_at"], r.index["created_at"]
	checkNeeded(wrong, r)
	return r, mistakes
}

// checkNeeded checks the fields that every row of the service has.
func checkNeeded(wrong func(place, format string, args ...any), r *Resource) {
	for _, needed := range []struct {
		name string
		c    *codec
	}{{"id", longCodec}, {"created_at", timeCodec}, {"updated_at", timeCodec}} {
		place := "field " + needed.name + ": "
		i, ok := r.index[needed.name]
		if !ok {
			wrong(place, "missing: expected it with type %s", needed.c.avroType)
			continue
		}
		if r.Fields[i].codec != needed.c || r.Fields[i].Nullable {
			wrong(place, "expected type %s, not nullable", needed.c.avroType)
		}
		if needed.name == "id" && i > 0 {
			wrong(place, "stands after %s: expected it first", r.Fields[0].Name)
		}
	}
}

// parseField parses a field.
func parseField(wrong func(place, format string, args ...any), node *avro.SchemaField) Field {
	place := "field " + node.Name + ": "
	f := Field{Name: node.Name, Doc: node.Doc}
	if f.codec, f.Nullable = codecOf(&node.Type); f.codec == nil {
		wrong(place, "its type: expected %s", fieldTypes)
	}
	pii, isBool := node.Props["pii"].(bool)
	if node.Props["pii"] != nil && !isBool {
		wrong(place, "pii is %v: expected true or false", node.Props["pii"])
	}
	tags, _ := node.Props["confluent:tags"].([]any)
	f.PII = pii || slices.Contains(tags, any("PII"))
	wrongAttributes(wrong, place, node.Props, []string{"pii"})
	wrongAttributes(wrong, place, node.Type.Props, nil)
	switch needed := f.Name == "id" || f.Name == "created_at" || f.Name == "updated_at"; {
	case !f.Nullable && !needed:
		wrong(place, `not nullable: expected ["null", ...] with default null, because the service does not say `+
			`what may be null`)
	case f.Nullable && (!node.HasDefault || node.Default != nil): // without one, a new field breaks every reader
		wrong(place, `nullable: expected "default": null`)
	}
	return f
}

// wrongAttributes finds attributes that Avro does not know. Those with a colon ("confluent:tags") go to the
// registry with the rest of the text. Any other is a mistake: a misspelt "pii" would show personal data.
func wrongAttributes(
	wrong func(place, format string, args ...any), place string, props map[string]any, known []string,
) {
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !strings.Contains(name, ":") && !slices.Contains(known, name) {
			wrong(place, "attribute %q is not known: expected one of Avro, pii of a field, or a name "+
				"with a colon, which goes to the registry", name)
		}
	}
}
