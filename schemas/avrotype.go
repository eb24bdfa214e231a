package schemas

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/avro"
)

// avroType is the part of an Avro type that decides about bytes. It is enough to skip any value, and to find
// the values that become today's fields.
type avroType struct {
	kind     string // "long", "bytes", "union", ...
	logical  string
	scale    int
	size     int         // of a fixed
	names    []string    // the symbols of an enum, or the names of a record's fields
	elements []*avroType // the types in a union, of a record's fields, or the one of an array's or map's items
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

// compile compiles a type inside the namespace space. It looks named types up in named. It adds a record
// before the record's fields, because a record may hold itself.
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
