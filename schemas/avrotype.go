package schemas

import (
	"fmt"
	"slices"
	"strings"

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

// converts returns whether values of a writer's type can be values of f. Some may not fit.
func converts(t *avroType, f *Field) bool {
	switch t.kind {
	case "null":
		return f.Nullable
	case "union":
		return !slices.ContainsFunc(t.elements, func(e *avroType) bool { return !converts(e, f) })
	default:
		return f.codec.converts(t)
	}
}
