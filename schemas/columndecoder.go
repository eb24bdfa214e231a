package schemas

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgconn"
)

// ColumnDecoder turns rows of a PostgreSQL result in binary format into Records. It belongs to one goroutine
// and to one description of the columns: after an ALTER TABLE you need a new one.
type ColumnDecoder struct {
	encoder
	cols   []pgconn.FieldDescription
	places []int // by field: its column, -1 for none
}

// NewColumnDecoder checks that the columns can hold r's fields. id, created_at and updated_at must have
// columns. A nullable field without a column is null. The error names every column that is wrong. Waiting
// does not help. cols describes a result; of each column it uses the name and the type.
func NewColumnDecoder(r *Resource, cols []pgconn.FieldDescription) (*ColumnDecoder, error) {
	places, err := matchColumns(r, cols)
	if err != nil {
		return nil, err
	}
	return &ColumnDecoder{encoder: newEncoder(r), cols: slices.Clone(cols), places: places}, nil
}

// Decode encodes one row: a value for each column, nil for NULL. Either the Record is good, or the Reject is
// not nil and says why it is not. The caller may reuse the values afterwards.
func (d *ColumnDecoder) Decode(values [][]byte) (Record, *Reject) {
	if len(values) != len(d.cols) {
		return Record{}, &Reject{UpdatedAt: MinInstant, Row: []byte("{}"), Err: "expected a value for each column"}
	}
	size := 0
	for _, v := range values {
		size += len(v)
	}
	d.reserve(size)
	b := appendHeader(d.chunk)
	for i, place := range d.places {
		f, start := &d.res.Fields[i], len(b)
		if place < 0 || values[place] == nil {
			if !f.Nullable {
				return Record{}, d.reject(values, i)
			}
			b = append(b, 0)
			continue
		}
		if f.Nullable {
			b = append(b, 2)
		}
		var ok bool
		oid := d.cols[place].DataTypeOID
		b, ok = f.codec.fromColumn(b, oid, values[place])
		if !ok && d.isNull(i, columnLegible(oid, values[place])) {
			b, ok = append(b[:start], 0), true
		}
		if !ok {
			return Record{}, d.reject(values, i)
		}
		if f.Policy != "" {
			b = d.protect(b, start, i)
		}
	}
	updatedAt, _ := readTimestamp(values[d.places[d.res.updatedAt]])
	value := b[len(d.chunk):len(b):len(b)]
	d.chunk = b
	id, _ := binary.Varint(value[HeaderSize:])
	return Record{ID: id, UpdatedAt: updatedAt, Value: value}, nil
}

// reject returns the Reject of a row whose field i breaks the contract. The field has a column, because a
// field without one is null and may be.
func (d *ColumnDecoder) reject(values [][]byte, i int) *Reject {
	f, place := &d.res.Fields[i], d.places[i]
	rej := d.newReject(values, make([]int, len(values)))
	rej.Field, rej.Err = f.Name, "expected "+f.codec.expected+", found null"
	if v := values[place]; v != nil {
		oid := d.cols[place].DataTypeOID
		rej.Err = fmt.Sprintf("expected %s, %s", f.codec.expected, cmp.Or(d.noValue(i, columnLegible(oid, v)),
			"found a value of type "+typeName(oid)+" that does not fit"))
	}
	return rej
}

// TooLong returns the Reject of a row that takes more than limit bytes and was not read whole. left has by
// column how many bytes of the value were not read, 0 if the value is there. The Reject's Row shows these
// numbers.
func (d *ColumnDecoder) TooLong(values [][]byte, left []int, limit int) *Reject {
	rej := d.newReject(values, left)
	var long []string
	for i, n := range left {
		if n > 0 {
			rej.Field = cmp.Or(rej.Field, d.cols[i].Name)
			long = append(long, fmt.Sprintf("%s has %d bytes", d.cols[i].Name, n))
		}
	}
	rej.Err = fmt.Sprintf("expected a row of at most %d bytes; %s", limit, strings.Join(long, ", "))
	return rej
}

const (
	// longRow is the size in bytes from which on a rejected row is shown without its long values. Its letter may
	// have no more bytes than a record, and JSON can make six bytes of one.
	longRow   = 512 << 10
	longValue = 64 << 10
)

// newReject returns a Reject with the row, and with its id and time if they are usable. left is that of
// TooLong.
func (d *ColumnDecoder) newReject(values [][]byte, left []int) *Reject {
	rej := &Reject{UpdatedAt: MinInstant}
	rej.ID, rej.HasID = columnLong(d.cols[d.places[0]].DataTypeOID, values[d.places[0]])
	if t, ok := readTimestamp(values[d.places[d.res.updatedAt]]); ok {
		rej.UpdatedAt = t
	}
	size, most := 0, math.MaxInt // of the row, and of a value that is shown
	for _, v := range values {
		size += len(v)
	}
	if size > longRow {
		most = longValue
	}
	rej.Row = []byte{'{'}
	for i, v := range values {
		oid, value := d.cols[i].DataTypeOID, []byte("null")
		switch {
		case left[i] > 0 || len(v) > most:
			value = nil
		case v != nil:
			value, _ = jsontext.AppendQuote(nil, columnLegible(oid, v)) // it replaces bytes that are not UTF-8
		}
		// PostgreSQL has parsed the values of columns that are no texts.
		rej.Row = d.show(rej.Row, slices.Index(d.places, i), value, max(left[i], len(v)), !IsText(oid))
	}
	rej.Row = append(rej.Row, '}')
	return rej
}
