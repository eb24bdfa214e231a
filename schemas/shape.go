package schemas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/avro"
)

// shape is a writer's type as far as its bytes go: enough to step over any value, and to find those that today's fields come from. Stepping
// over allocates nothing, whatever lengths the bytes claim (hamba/avro's decoder does: GO-2026-5048).
type shape struct {
	kind      string // the Avro type: "long", "bytes", "union", ...
	logical   string
	scale     int
	precision int
	size      int      // of a fixed
	symbols   []string // of an enum
	elements  []*shape // of a union, record (its fields), array or map (one)
}

// shapeOf compiles an Avro type that stands in the namespace space. Named types are looked up in named, where a record stands before its fields
// are compiled, because it may hold itself.
func shapeOf(n *avro.SchemaNode, space string, named map[string]*shape) (*shape, error) {
	s := &shape{kind: n.Type, logical: n.LogicalType, scale: n.Scale, precision: n.Precision, size: n.Size, symbols: n.Symbols}
	if n.Name != "" {
		space = n.Namespace
		named[fullName(n.Name, space)] = s
	}
	var parts []*avro.SchemaNode
	switch n.Type {
	case "null", "boolean", "int", "long", "float", "double", "string", "bytes", "fixed", "enum":
	case "union":
		for i := range n.Branches {
			parts = append(parts, &n.Branches[i])
		}
	case "record", "error":
		s.kind = "record"
		for i := range n.Fields {
			parts = append(parts, &n.Fields[i].Type)
		}
	case "array":
		parts = append(parts, n.Items)
	case "map":
		parts = append(parts, n.Values)
	default:
		if s := named[fullName(n.Type, space)]; s != nil {
			return s, nil
		}
		return nil, fmt.Errorf("type %q is not defined before its use", n.Type)
	}
	for _, part := range parts {
		e, err := shapeOf(part, space, named)
		if err != nil {
			return nil, err
		}
		s.elements = append(s.elements, e)
	}
	return s, nil
}

func fullName(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

var (
	errShort = errors.New("the value ends in the middle of a field")
	errDeep  = errors.New("the value is nested too deeply, or its arrays claim more items than it can hold")
)

// cursor reads a value front to back. The first fault sticks, and everything after it reads as zero.
type cursor struct {
	b      []byte
	err    error
	budget int // steps left: items of no bytes must not keep it busy for ever
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

func (c *cursor) long() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.fail(errShort)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// take returns the next n bytes of the value itself.
func (c *cursor) take(n int64) []byte {
	if n < 0 || n > int64(len(c.b)) {
		c.fail(errShort)
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) bytes() []byte { return c.take(c.long()) }

// double is the next double's bits; 0 after a fault.
func (c *cursor) double() uint64 {
	if v := c.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

// branch is the type that the union s holds next; s itself where it is no union.
func (c *cursor) branch(s *shape) *shape {
	if s.kind != "union" {
		return s
	}
	i := c.long()
	if c.err == nil && (i < 0 || i >= int64(len(s.elements))) {
		c.fail(errors.New("the value names a branch that its union does not have"))
	}
	if c.err != nil {
		return nullShape
	}
	return s.elements[i]
}

var nullShape = &shape{kind: "null"}

// skip steps over a value of type s.
func (c *cursor) skip(s *shape, depth int) {
	c.budget--
	if c.budget < 0 || depth > 32 {
		c.fail(errDeep)
	}
	if c.err != nil {
		return
	}
	switch s.kind {
	case "null":
	case "boolean":
		c.take(1)
	case "int", "long", "enum":
		c.long()
	case "float":
		c.take(4)
	case "double":
		c.take(8)
	case "string", "bytes":
		c.bytes()
	case "fixed":
		c.take(int64(s.size))
	case "union":
		c.skip(c.branch(s), depth+1)
	case "record":
		for _, e := range s.elements {
			c.skip(e, depth+1)
		}
	default:
		c.skipBlocks(s, depth)
	}
}

// skipBlocks steps over an array or a map.
func (c *cursor) skipBlocks(s *shape, depth int) {
	for n := c.long(); n != 0 && c.err == nil; n = c.long() {
		if n < 0 { // -n items in as many bytes as the next long says
			c.bytes()
			continue
		}
		for ; n > 0 && c.err == nil; n-- {
			if s.kind == "map" {
				c.bytes()
			}
			c.skip(s.elements[0], depth+1)
		}
	}
}
