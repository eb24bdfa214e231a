package schemas

import (
	"fmt"
	"strconv"
)

// Kind of a field's values.
type Kind int

// The kinds of fields: all that a schema file may use.
const (
	Long      Kind = iota // Avro long
	Timestamp             // Avro long, timestamp-millis
	Decimal               // Avro bytes, decimal(precision, scale)
	Double                // Avro double
	String                // Avro string
)

// String is the kind as a person calls it.
func (k Kind) String() string {
	return [...]string{"integer", "timestamp", "decimal", "double", "string"}[k]
}

// Field is one field of a resource.
type Field struct {
	Name     string
	Kind     Kind
	Nullable bool
	PII      bool   // personal data
	Policy   Policy // what of it is published; "" is PolicyClear
	Doc      string
	// Precision and Scale are those of a Decimal: Precision digits in all, Scale of them after the point.
	Precision, Scale int
	// HalfEven: a Decimal with more digits after the point than Scale is rounded half to even, not rejected.
	HalfEven bool

	extras string // attributes that storestream only hands on to the registry, as they stand in its text
}

// avroType is the Avro type of a value that is not null, in the form in which it is registered.
func (f *Field) avroType() string {
	switch f.Kind {
	case Long:
		return `"long"`
	case Timestamp:
		return `{"type":"long","logicalType":"timestamp-millis"}`
	case Decimal:
		return `{"type":"bytes","logicalType":"decimal","precision":` + strconv.Itoa(f.Precision) +
			`,"scale":` + strconv.Itoa(f.Scale) + `}`
	case Double:
		return `"double"`
	default:
		return `"string"`
	}
}

const masked = `"***"`

// Shown is text, a value of f in JSON, for people: with maskPII "***" where that is personal and not null.
func (f *Field) Shown(text []byte, maskPII bool) []byte {
	if maskPII && f.PII && string(text) != "null" {
		return []byte(masked)
	}
	return text
}

// parses reports whether text can be a value of f. text is nil for a value that is neither text nor a number.
func (f *Field) parses(text []byte) (ok bool) {
	switch f.Kind {
	case Long:
		_, ok = parseLong(text)
	case Timestamp:
		_, ok = parseInstant(text)
	case Decimal:
		_, ok = parseDecimal(text, f.Precision, f.Scale, f.HalfEven)
	case Double:
		_, ok = parseDouble(text)
	default:
		ok = text != nil
	}
	return ok
}

// expected says what a value of f has to be, for Reject.Err.
func (f *Field) expected() string {
	switch f.Kind {
	case Long:
		return "expected an integer of 64 bits"
	case Timestamp:
		return "expected a time in RFC 3339 between " + MinInstant.String() + " and " + MaxInstant.String()
	case Decimal:
		s := fmt.Sprintf("expected a decimal number with at most %d digits before the point", f.Precision-f.Scale)
		if !f.HalfEven {
			s += fmt.Sprintf(" and %d after it", f.Scale)
		}
		return s
	case Double:
		return "expected a finite number"
	default:
		return "expected a string in valid UTF-8"
	}
}
