package schemas

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/twmb/avro"
)

// avroType is a type of an Avro schema as far as its bytes go: enough to step over any value, and to find
// those that today's fields come from.
type avroType struct {
	kind     string // "long", "bytes", "union", ...
	logical  string
	scale    int
	size     int         // of a fixed
	names    []string    // of an enum's symbols, or a record's fields
	elements []*avroType // of a union, record (its fields), array or map (one)
}

var nullType = &avroType{kind: "null"}

// parseAvroType compiles a schema.
func parseAvroType(schema string) (*avroType, error) {
	parsed, err := avro.Parse(schema)
	if err != nil {
		return nil, err
	}
	return compile(parsed.Root(), "", map[string]*avroType{})
}

// compile compiles a type that stands in the namespace space. It looks named types up in named. A record
// stands there before its fields are compiled, because it may hold itself.
func compile(n *avro.SchemaNode, space string, named map[string]*avroType) (*avroType, error) {
	t := &avroType{kind: n.Type, logical: n.LogicalType, scale: n.Scale, size: n.Size,
		names: slices.Clone(n.Symbols)}
	if n.Name != "" {
		space = n.Namespace
		named[fullName(n.Name, space)] = t
	}
	var parts []*avro.SchemaNode
	switch n.Type {
	case "null", "boolean", "int", "long", "float", "double", "string", "bytes", "fixed", "enum":
	case "union":
		for i := range n.Branches {
			parts = append(parts, &n.Branches[i])
		}
	case "record", "error":
		t.kind = "record"
		for i := range n.Fields {
			t.names = append(t.names, n.Fields[i].Name)
			parts = append(parts, &n.Fields[i].Type)
		}
	case "array":
		parts = append(parts, n.Items)
	case "map":
		parts = append(parts, n.Values)
	default:
		if t := named[fullName(n.Type, space)]; t != nil {
			return t, nil
		}
		return nil, fmt.Errorf("type %q is not defined before its use", n.Type)
	}
	for _, part := range parts {
		e, err := compile(part, space, named)
		if err != nil {
			return nil, err
		}
		t.elements = append(t.elements, e)
	}
	return t, nil
}

func fullName(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

// converts says whether values of a writer's type can be values of f. Whether each one fits shows when it is
// read.
func converts(t *avroType, f *Field) bool {
	switch t.kind {
	case "null":
		return f.Nullable
	case "union":
		return !slices.ContainsFunc(t.elements, func(e *avroType) bool { return !converts(e, f) })
	}
	switch f.Kind {
	case Long:
		return t.kind == "int" || t.kind == "long"
	case Timestamp:
		return t.kind == "long" && (t.logical == "timestamp-millis" || t.logical == "timestamp-micros")
	case Decimal:
		return (t.kind == "bytes" || t.kind == "fixed") && t.logical == "decimal"
	case Double:
		return t.kind == "double" || t.kind == "float" || t.kind == "int" || t.kind == "long"
	default:
		return t.kind == "string" || t.kind == "enum" || t.kind == "bytes" && t.logical == ""
	}
}

// appendConverted encodes as f the value of type t that c stands before; false where f cannot hold it.
func appendConverted(b []byte, f *Field, t *avroType, c *cursor) ([]byte, bool) {
	t = c.branch(t)
	if t.kind == "null" {
		return append(b, 0), f.Nullable
	}
	if f.Nullable {
		b = append(b, 2)
	}
	switch f.Kind {
	case Long:
		return binary.AppendVarint(b, c.long()), true
	case Timestamp:
		n := c.long()
		if t.logical == "timestamp-micros" {
			n = Instant(n).Millis()
		}
		return binary.AppendVarint(b, n), true
	case Decimal:
		d, ok := decimalFrom(t, c, f)
		return d.appendBytes(b), ok
	case Double:
		bits, ok := doubleFrom(t, c)
		return binary.LittleEndian.AppendUint64(b, bits), ok
	default:
		text, ok := textFrom(t, c)
		return appendText(b, text), ok
	}
}

// decimalFrom reads a decimal of any scale as f's; false where it does not fit, or is wider than 128 bits.
func decimalFrom(t *avroType, c *cursor, f *Field) (decimal, bool) {
	var raw []byte
	if t.kind == "fixed" {
		raw = c.take(int64(t.size))
	} else {
		raw = c.bytes()
	}
	d, ok := decimalOf(raw)
	if !ok || t.scale > maxPrecision {
		return decimal{}, false
	}
	var buf [48]byte
	return parseDecimal(d.appendText(buf[:0], t.scale), f.Precision, f.Scale, f.HalfEven)
}

// doubleFrom reads a number of a type that promotes to double, as a double's bits; false where no double is
// that number.
func doubleFrom(t *avroType, c *cursor) (bits uint64, ok bool) {
	switch t.kind {
	case "int", "long":
		n := c.long()
		return math.Float64bits(float64(n)), n >= -1<<53 && n <= 1<<53
	case "float":
		if v := c.take(4); v != nil {
			return math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))), true
		}
		return 0, false
	default:
		return c.double(), true
	}
}

// textFrom reads a string, bytes or the symbol of an enum; false where that is no text.
func textFrom(t *avroType, c *cursor) ([]byte, bool) {
	if t.kind != "enum" {
		text := c.bytes()
		return text, utf8.Valid(text)
	}
	if i := c.long(); i >= 0 && i < int64(len(t.names)) {
		return []byte(t.names[i]), true
	}
	return nil, false
}
