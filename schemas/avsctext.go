package schemas

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// text is the schema as it is registered: one line, attributes in a fixed order, with docs and "pii" so that whoever reads the
// registry has them. A change of this form is a new schema id in every registry: it changes only on purpose.
func (s *avsc) text() string {
	b := []byte(`{"type":"record","name":"` + s.name + `","namespace":"` + namespace + `"`)
	b = appendAttribute(b, "doc", s.doc)
	b = appendExtras(b, s.extras)
	b = append(b, `,"fields":[`...)
	for i := range s.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.fields[i].appendText(b)
	}
	return string(append(b, `]}`...))
}

func (f *Field) appendText(b []byte) []byte {
	b = append(b, `{"name":"`+f.Name+`","type":`...)
	if f.Nullable {
		b = append(b, `["null",`+f.typeText()+`]`...)
	} else {
		b = append(b, f.typeText()...)
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

// typeText is the type without its union.
func (f *Field) typeText() string {
	switch f.Kind {
	case Long:
		return `"long"`
	case Timestamp:
		return `{"type":"long","logicalType":"timestamp-millis"}`
	case Decimal:
		return `{"type":"bytes","logicalType":"decimal","precision":` + strconv.Itoa(f.Precision) + `,"scale":` + strconv.Itoa(f.Scale) + `}`
	case Double:
		return `"double"`
	default:
		return `"string"`
	}
}

// appendAttribute appends a text that is not empty. A text that came out of JSON goes back into it.
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
