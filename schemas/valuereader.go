package schemas

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/avro"
)

// ValueReader decodes record values that were written under one schema. It belongs to one goroutine.
type ValueReader struct {
	res *Resource
	// writer is nil where the writer's fields are today's.
	writer []writerField
	arena  arena
}

// writerField is one field as the writer wrote it.
type writerField struct {
	shape  *shape
	target int // the place of today's field of that name, -1 where there is none
}

// NewValueReader returns a reader of values written under writerSchema; "" is today's schema. It fails where a value of that schema cannot be
// one of today's: where a field of today that is not nullable is missing, or has a type that does not convert without loss.
func NewValueReader(r *Resource, writerSchema string) (*ValueReader, error) {
	v := &ValueReader{res: r}
	if writerSchema == "" || writerSchema == r.valueSchema {
		return v, nil
	}
	parsed, err := avro.Parse(writerSchema)
	if err != nil {
		return nil, fmt.Errorf("schema that %s was written under: %w", r.Name, err)
	}
	root := parsed.Root()
	if root.Type != "record" {
		return nil, fmt.Errorf("schema that %s was written under is a %s: expected a record", r.Name, root.Type)
	}
	record, err := shapeOf(root, "", map[string]*shape{})
	if err != nil {
		return nil, fmt.Errorf("schema that %s was written under: %w", r.Name, err)
	}
	if err := v.plan(root, record); err != nil {
		return nil, fmt.Errorf("schema that %s was written under cannot be read as today's: %w", r.Name, err)
	}
	return v, nil
}

// plan matches the writer's fields with today's.
func (v *ValueReader) plan(root *avro.SchemaNode, record *shape) error {
	found := make([]bool, len(v.res.Fields))
	same := len(root.Fields) == len(v.res.Fields)
	for i, f := range root.Fields {
		w := writerField{shape: record.elements[i], target: -1}
		if t, ok := v.res.index[f.Name]; ok {
			today := &v.res.Fields[t]
			if !today.takes(w.shape) {
				return fmt.Errorf("field %s: expected what converts to %s", f.Name, today.typeText())
			}
			w.target, found[t] = t, true
			same = same && t == i && today.isLike(w.shape)
		} else {
			same = false
		}
		v.writer = append(v.writer, w)
	}
	for i, ok := range found {
		if !ok && !v.res.Fields[i].Nullable {
			return fmt.Errorf("field %s: it has none", v.res.Fields[i].Name)
		}
	}
	if same {
		v.writer = nil
	}
	return nil
}

// Value is a decoded record value.
type Value struct {
	ID int64
	// UpdatedAt and CreatedAt are floored to the millisecond: Avro keeps no more.
	UpdatedAt, CreatedAt Instant
	// Hash is schemas.Hash of the value as today's schema encodes it.
	Hash uint64

	res  *Resource
	body []byte // as today's schema encodes it
}

var errTrailing = errors.New("bytes follow the last field")

// Read decodes a value, header included. The Value refers to those bytes, so it is good as long as they are. It fails on bytes that are no
// such value, and on one that today's schema cannot hold.
func (v *ValueReader) Read(value []byte) (Value, error) {
	if _, err := SchemaID(value); err != nil {
		return Value{}, err
	}
	body := value[HeaderSize:]
	if v.writer != nil {
		var err error
		if body, err = v.translate(body); err != nil {
			return Value{}, fmt.Errorf("value of %s: %w", v.res.Name, err)
		}
	}
	out := Value{res: v.res, body: body, Hash: hashBody(body)}
	if err := out.readFixed(); err != nil {
		return Value{}, fmt.Errorf("value of %s: %w", v.res.Name, err)
	}
	return out, nil
}

// readFixed reads the fields that every row has, and steps over the others.
func (v *Value) readFixed() error {
	c := cursor{b: v.body}
	for i := range v.res.Fields {
		f := &v.res.Fields[i]
		if f.Nullable && c.isNull() {
			continue
		}
		switch f.Kind {
		case Long:
			if n := c.long(); i == 0 {
				v.ID = n
			}
		case Timestamp:
			t := c.instant()
			if i == v.res.updatedAt {
				v.UpdatedAt = t
			} else if i == v.res.createdAt {
				v.CreatedAt = t
			}
		case Double:
			c.take(8)
		default:
			c.bytes()
		}
	}
	if c.err == nil && len(c.b) > 0 {
		return errTrailing
	}
	return c.err
}

// isNull reads the branch of ["null", T].
func (c *cursor) isNull() bool {
	i := c.long()
	if i < 0 || i > 1 {
		c.fail(errors.New("the value names a branch that its union does not have"))
	}
	return i == 0
}

// instant reads a timestamp-millis.
func (c *cursor) instant() Instant {
	ms := c.long()
	if ms < MinInstant.Millis() || ms > MaxInstant.Millis() {
		c.fail(errors.New("a timestamp lies outside the years 1 to 9999"))
		return 0
	}
	return InstantOfMillis(ms)
}

// isLike says whether a writer's type encodes f exactly as today's.
func (f *Field) isLike(s *shape) bool {
	if f.Nullable {
		return s.kind == "union" && len(s.elements) == 2 && s.elements[0].kind == "null" && f.isLikePlain(s.elements[1])
	}
	return f.isLikePlain(s)
}

func (f *Field) isLikePlain(s *shape) bool {
	switch f.Kind {
	case Long:
		return s.kind == "long" && s.logical == ""
	case Timestamp:
		return s.kind == "long" && s.logical == "timestamp-millis"
	case Decimal:
		return s.kind == "bytes" && s.logical == "decimal" && s.scale == f.Scale && s.precision <= f.Precision
	case Double:
		return s.kind == "double"
	default:
		return s.kind == "string"
	}
}

// takes says whether values of a writer's type can be values of f. Whether each one fits is seen when it is read.
func (f *Field) takes(s *shape) bool {
	if s.kind == "union" {
		return !slices.ContainsFunc(s.elements, func(e *shape) bool { return !f.takes(e) })
	}
	switch f.Kind {
	case Long:
		return s.kind == "int" || s.kind == "long" || f.Nullable && s.kind == "null"
	case Timestamp:
		return s.kind == "long" && (s.logical == "timestamp-millis" || s.logical == "timestamp-micros") || f.Nullable && s.kind == "null"
	case Decimal:
		return (s.kind == "bytes" || s.kind == "fixed") && s.logical == "decimal" || f.Nullable && s.kind == "null"
	case Double:
		return s.kind == "double" || s.kind == "float" || s.kind == "int" || s.kind == "long" || f.Nullable && s.kind == "null"
	default:
		return s.kind == "string" || s.kind == "enum" || s.kind == "bytes" && s.logical == "" || f.Nullable && s.kind == "null"
	}
}
