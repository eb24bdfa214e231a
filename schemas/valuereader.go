package schemas

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/twmb/avro"
)

// ValueReader decodes record values that were written under one schema. It belongs to one goroutine.
type ValueReader struct {
	res *Resource
	// writer holds the fields of the writer's schema. It is nil if today's schema has the same bytes.
	writer []Field
	places []int // by today's field: its place in writer, -1 if writer lacks it
	// values holds the values of the body in hand, see split.
	values [][]byte
}

// NewValueReader returns a reader of values written under writerSchema. "" is today's schema. It fails if
// storestream cannot have registered writerSchema, if a field that is not nullable today is missing, or if a
// field had a type that does not convert to today's. The values of such a schema count as another program's.
// So a sweep publishes their rows under today's schema.
func NewValueReader(r *Resource, writerSchema string) (*ValueReader, error) {
	v := &ValueReader{res: r, values: make([][]byte, len(r.Fields))}
	if writerSchema == "" || writerSchema == r.valueSchema {
		return v, nil
	}
	writer, err := avro.Parse(writerSchema)
	if err != nil {
		return nil, fmt.Errorf("schema that %s was written under: %w", r.Name, err)
	}
	for _, field := range writer.Root().Fields {
		f := Field{Name: field.Name}
		if f.codec, f.Nullable = codecOf(&field.Type); f.codec == nil {
			return nil, fmt.Errorf("schema that %s was written under: field %s: expected %s",
				r.Name, f.Name, fieldTypes)
		}
		v.writer = append(v.writer, f)
	}
	same := func(a, b Field) bool {
		return a.Name == b.Name && a.Nullable == b.Nullable && a.codec.avroType == b.codec.avroType
	}
	if slices.EqualFunc(v.writer, r.Fields, same) {
		v.writer = nil // only docs differ, or other attributes that do not change bytes
		return v, nil
	}
	for i := range r.Fields {
		f := &r.Fields[i]
		place := slices.IndexFunc(v.writer, func(w Field) bool { return w.Name == f.Name })
		if place < 0 && !f.Nullable {
			return nil, fmt.Errorf("schema that %s was written under has no field %s", r.Name, f.Name)
		}
		if place >= 0 && !v.writer[place].codec.becomes(f.codec) {
			return nil, fmt.Errorf("schema that %s was written under: field %s is %s: expected a type that "+
				"converts to %s", r.Name, f.Name, v.writer[place].codec.kind, f.codec.kind)
		}
		v.places = append(v.places, place)
	}
	v.values = make([][]byte, max(len(v.writer), len(r.Fields)))
	return v, nil
}

// Read decodes a value with its header. The Value may refer to those bytes, so it is valid as long as they
// are. Read fails if the bytes are no value of the writer's schema, or if today's schema cannot hold the
// value.
func (v *ValueReader) Read(value []byte) (Value, error) {
	if _, err := SchemaID(value); err != nil {
		return Value{}, err
	}
	out := Value{res: v.res, body: value[HeaderSize:]}
	var err error
	if v.writer != nil {
		out.body, err = v.translate(out.body)
	}
	if err == nil {
		err = split(v.res.Fields, out.body, v.values)
	}
	if err != nil {
		return Value{}, fmt.Errorf("value of %s: %w", v.res.Name, err)
	}
	out.Hash = xxhash.Sum64(out.body)
	out.ID = readLong(v.values[0])
	out.UpdatedAt = InstantOfMillis(readLong(v.values[v.res.updatedAt]))
	out.CreatedAt = InstantOfMillis(readLong(v.values[v.res.createdAt]))
	return out, nil
}

// split finds the value of each field in a body, nil for null. It does not allocate by the lengths that the
// bytes claim: any producer may have written them. (hamba/avro's decoder does: GO-2026-5048.)
func split(fields []Field, body []byte, values [][]byte) error {
	for i := range fields {
		f := &fields[i]
		if f.Nullable {
			if len(body) == 0 || body[0] != 0 && body[0] != 2 {
				return fmt.Errorf("field %s: expected the branch of its union", f.Name)
			}
			isNull := body[0] == 0
			if body = body[1:]; isNull {
				values[i] = nil
				continue
			}
		}
		n := f.codec.size(body)
		if n == 0 {
			return fmt.Errorf("field %s: expected %s", f.Name, f.codec.expected)
		}
		values[i], body = body[:n], body[n:]
	}
	if len(body) > 0 {
		return errors.New("bytes follow the last field")
	}
	return nil
}

// translate encodes a body of the writer's schema as today's schema does. It leaves out fields that today's
// schema does not have. Fields that the writer did not have are null. A value of another type is read by its
// text, as if the service had sent it.
func (v *ValueReader) translate(body []byte) ([]byte, error) {
	if err := split(v.writer, body, v.values); err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(body)+32*len(v.res.Fields))
	for i, place := range v.places {
		f := &v.res.Fields[i]
		if place < 0 || v.values[place] == nil {
			if !f.Nullable {
				return nil, fmt.Errorf("field %s: expected %s, found null", f.Name, f.codec.expected)
			}
			b = append(b, 0)
			continue
		}
		if f.Nullable {
			b = append(b, 2)
		}
		from, value := v.writer[place].codec, v.values[place]
		if from.avroType == f.codec.avroType {
			b = append(b, value...)
			continue
		}
		var ok bool
		if b, ok = f.codec.fromText(b, from.toJSON(nil, value)); !ok {
			return nil, fmt.Errorf("field %s: expected %s, and the value does not fit", f.Name, f.codec.expected)
		}
	}
	return b, nil
}
