package schemas

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// ValueReader decodes record values that were written under one schema. It belongs to one goroutine.
type ValueReader struct {
	res *Resource
	// writer is the record of the writer's schema. It is nil if today's schema has the same bytes.
	writer *avroType
	places []int // by today's field: its place in writer, -1 if writer lacks it
	arena  arena
	cursor cursor // of the value in hand
}

// NewValueReader returns a reader of values written under writerSchema. "" is today's schema. It fails if a
// value of that schema cannot be one of today's: a field that is not nullable today is missing, or a field's
// type does not convert without loss.
func NewValueReader(r *Resource, writerSchema string) (*ValueReader, error) {
	v := &ValueReader{res: r}
	if writerSchema == "" || writerSchema == r.valueSchema {
		return v, nil
	}
	writer, err := parseAvroType(writerSchema)
	if err != nil {
		return nil, fmt.Errorf("schema that %s was written under: %w", r.Name, err)
	}
	if writer.kind != "record" {
		return nil, fmt.Errorf("schema that %s was written under is a %s: expected a record", r.Name, writer.kind)
	}
	if today, err := parseAvroType(r.valueSchema); err == nil && reflect.DeepEqual(today, writer) {
		return v, nil // only docs differ, or other attributes that do not change bytes
	}
	v.writer = writer
	for i := range r.Fields {
		f := &r.Fields[i]
		place := slices.Index(writer.names, f.Name)
		if place < 0 && !f.Nullable {
			err = fmt.Errorf("field %s: it has none", f.Name)
		} else if place >= 0 && !converts(writer.elements[place], f) {
			err = fmt.Errorf("field %s: expected a type that converts to %s", f.Name, f.codec.avroType)
		}
		if err != nil {
			return nil, fmt.Errorf("schema that %s was written under cannot be read as today's: %w", r.Name, err)
		}
		v.places = append(v.places, place)
	}
	return v, nil
}

var (
	errTrailing = errors.New("bytes follow the last field")
	errFit      = errors.New("the value does not fit today's schema")
)

// Read decodes a value with its header. The Value refers to those bytes, so it is valid as long as they are.
// Read fails if the bytes are no value of the writer's schema, or if today's schema cannot hold the value.
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
	out := Value{res: v.res, body: body, Hash: xxhash.Sum64(body)}
	if err := out.readFixed(&v.cursor); err != nil {
		return Value{}, fmt.Errorf("value of %s: %w", v.res.Name, err)
	}
	return out, nil
}

// translate encodes a body of the writer's schema as today's schema does. It leaves out fields that today's
// schema does not have. Fields that the writer did not have are null.
func (v *ValueReader) translate(body []byte) ([]byte, error) {
	c := &v.cursor
	*c = cursor{b: body, budget: 1024 + len(body)}
	starts := make([][]byte, len(v.writer.elements)) // the body from where each of the writer's fields begins
	for i, t := range v.writer.elements {
		starts[i] = c.b
		c.skip(t, 0)
	}
	if c.err != nil {
		return nil, c.err
	}
	if len(c.b) > 0 {
		return nil, errTrailing
	}
	b := v.arena.room(len(body) + 32*len(v.res.Fields))
	for i, place := range v.places {
		f, from := &v.res.Fields[i], nullType
		var ok bool
		if place >= 0 {
			*c = cursor{b: starts[place]}
			from = c.branch(v.writer.elements[place])
		}
		switch {
		case from.kind == "null":
			b, ok = append(b, 0), true // f is nullable: converts
		case f.Nullable:
			b, ok = f.codec.fromAvro(append(b, 2), from, c)
		default:
			b, ok = f.codec.fromAvro(b, from, c)
		}
		if !ok {
			return nil, fmt.Errorf("field %s: %w", f.Name, errFit)
		}
	}
	return v.arena.take(b), nil
}
