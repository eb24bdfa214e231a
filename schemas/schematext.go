package schemas

import "github.com/go-json-experiment/json/jsontext"

// schemaText is the schema as it is registered: one line, attributes in a fixed order, with docs and "pii"
// for whoever reads the registry. A change of this form is a new schema id in every registry, so make it on
// purpose only.
func schemaText(s *schemaFile) string {
	b := []byte(`{"type":"record","name":"` + s.name + `","namespace":"` + namespace + `"`)
	b = appendAttribute(b, "doc", s.doc)
	b = appendExtras(b, s.extras)
	b = append(b, `,"fields":[`...)
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
		b = append(b, `["null",`+f.avroType()+`]`...)
	} else {
		b = append(b, f.avroType()...)
	}
	b = appendAttribute(b, "doc", f.Doc)
	if f.Nullable {
		b = append(b, `,"default":null`...)
	}
	if f.PII {
		b = append(b, `,"pii":true`...)
	}
	if f.HalfEven {
		b = append(b, `,"rounding":"half-even"`...)
	}
	return append(appendExtras(b, f.extras), '}')
}

// appendAttribute appends a text that is not empty. It came out of JSON, so it goes back into it.
func appendAttribute(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b, _ = jsontext.AppendQuote(append(b, `,"`+name+`":`...), text)
	return b
}

func appendExtras(b []byte, extras []attribute) []byte {
	for _, a := range extras {
		b, _ = jsontext.AppendQuote(append(b, ','), a.name)
		v := a.value.Clone()
		if err := v.Canonicalize(); err != nil { // cannot be: it was parsed out of a valid document
			v = jsontext.Value("null")
		}
		b = append(append(b, ':'), v...)
	}
	return b
}
