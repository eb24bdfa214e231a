package schemas

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ColumnDecoder turns rows of a PostgreSQL result in binary format into Records. It belongs to one goroutine,
// and holds for one description of the columns: after an ALTER TABLE you need a new one.
type ColumnDecoder struct {
	res    *Resource
	cols   []Column
	places []int // by field: its column, -1 for none
	arena  arena

	protect protector
}

// NewColumnDecoder checks that the columns can hold r's fields. Those of id, created_at and updated_at must
// be there; a nullable field without a column is null. The error names every column that will not do. Waiting
// does not help.
func NewColumnDecoder(r *Resource, cols []Column) (*ColumnDecoder, error) {
	places, err := matchColumns(r, cols)
	if err != nil {
		return nil, err
	}
	return &ColumnDecoder{res: r, cols: slices.Clone(cols), places: places, protect: newProtector(r)}, nil
}

// Decode encodes one row: a value for each column, nil for NULL. Either the Record is good, or the Reject is
// not nil and says why it is not. The caller may reuse the values afterwards.
func (d *ColumnDecoder) Decode(values [][]byte) (Record, *Reject) {
	if len(values) != len(d.cols) {
		return Record{}, &Reject{UpdatedAt: MinInstant, Row: []byte("{}"), Err: "expected a value for each column"}
	}
	size := HeaderSize + 24*len(d.places) + hashSize*d.res.hashes
	for _, v := range values {
		size += len(v)
	}
	b := appendHeader(d.arena.room(size))
	for i, place := range d.places {
		f := &d.res.Fields[i]
		if place < 0 || values[place] == nil {
			if !f.Nullable {
				return Record{}, d.reject(values, i)
			}
			b = append(b, 0)
			continue
		}
		start := len(b)
		if f.Nullable {
			b = append(b, 2)
		}
		var ok bool
		if b, ok = appendColumn(b, f, columnValue{d.cols[place].OID, values[place]}); !ok {
			return Record{}, d.reject(values, i)
		}
		if f.Policy != "" {
			b = d.protect.apply(b, start, f)
		}
	}
	id, _ := d.id(values)
	updatedAt, _ := d.updatedAt(values)
	return Record{ID: id, UpdatedAt: updatedAt, Value: d.arena.take(b)}, nil
}

func (d *ColumnDecoder) id(values [][]byte) (int64, bool) {
	place := d.places[0]
	return columnValue{d.cols[place].OID, values[place]}.long()
}

func (d *ColumnDecoder) updatedAt(values [][]byte) (Instant, bool) {
	return readTimestamp(values[d.places[d.res.updatedAt]])
}

// appendColumn encodes v as f; false where it breaks the contract.
func appendColumn(b []byte, f *Field, v columnValue) ([]byte, bool) {
	switch f.Kind {
	case Long:
		n, ok := v.long()
		return binary.AppendVarint(b, n), ok
	case Timestamp:
		t, ok := v.instant()
		return binary.AppendVarint(b, t.Millis()), ok
	case Decimal:
		n, ok := v.decimal(f)
		return n.appendBytes(b), ok
	case Double:
		n, ok := v.double()
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(n)), ok
	default:
		return appendText(b, v.b), v.isText()
	}
}

// appendText encodes an Avro string: its length and itself.
func appendText(b, text []byte) []byte {
	return append(binary.AppendVarint(b, int64(len(text))), text...)
}

// reject says that field i breaks the contract. It has a column: a field without one is null, and may be.
func (d *ColumnDecoder) reject(values [][]byte, i int) *Reject {
	f, place := &d.res.Fields[i], d.places[i]
	rej := &Reject{UpdatedAt: MinInstant, Field: f.Name, Err: f.expected() + ", found null",
		Row: d.row(values, make([]int, len(values)))}
	d.name(rej, values)
	if v := values[place]; v != nil {
		rej.Err = f.expected() + ", found a value of type " + typeName(d.cols[place].OID) + " that "
		switch isText := d.cols[place].IsText(); {
		case isText && !utf8.Valid(v):
			rej.Err += "is not UTF-8: a database with encoding SQL_ASCII takes any bytes"
		case isText && f.Kind == Timestamp && isLeapSecond(v):
			rej.Err += "has " + leapSecond
		default:
			rej.Err += "does not fit"
		}
	}
	return rej
}

// TooLong is the Reject of a row that takes more than limit bytes and was not read whole. left says by column
// how many bytes of it were left out, 0 where the value is there. The Reject's Row has these numbers in their
// place.
func (d *ColumnDecoder) TooLong(values [][]byte, left []int, limit int) *Reject {
	rej := &Reject{UpdatedAt: MinInstant, Row: d.row(values, left)}
	var long []string
	for i, n := range left {
		if n > 0 {
			rej.Field = cmp.Or(rej.Field, d.cols[i].Name)
			long = append(long, fmt.Sprintf("%s has %d bytes", d.cols[i].Name, n))
		}
	}
	rej.Err = fmt.Sprintf("expected a row of at most %d bytes; %s", limit, strings.Join(long, ", "))
	d.name(rej, values)
	return rej
}

// name gives rej the row's id and time, where they are usable.
func (d *ColumnDecoder) name(rej *Reject, values [][]byte) {
	if id, ok := d.id(values); ok {
		rej.ID, rej.HasID = id, true
	}
	if t, ok := d.updatedAt(values); ok {
		rej.UpdatedAt = t
	}
}

const (
	// longRow is from how many bytes on a rejected row is shown without its long values. Its letter may have no
	// more than a record, and JSON can make six bytes of one.
	longRow   = 512 << 10
	longValue = 64 << 10
)

// row is the row as a JSON object, columns in the result's order, each value its text. left says by column
// how many bytes of it were not read.
func (d *ColumnDecoder) row(values [][]byte, left []int) []byte {
	size, most := 0, math.MaxInt // of the row, and what a value may have
	for _, v := range values {
		size += len(v)
	}
	if size > longRow {
		most = longValue
	}
	dst := []byte{'{'}
	for i, c := range d.cols {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = jsontext.AppendQuote(dst, c.Name)
		dst = append(dst, ':')
		if left[i] > 0 || len(values[i]) > most {
			dst = fmt.Appendf(dst, `"(%d bytes, left out)"`, max(left[i], len(values[i])))
			continue
		}
		if values[i] == nil {
			dst = append(dst, "null"...)
			continue
		}
		field := slices.Index(d.places, i)
		text := columnValue{c.OID, values[i]}.legible()
		f := &d.res.Fields[field]
		parses := !c.IsText() || f.parses(text) // PostgreSQL has parsed the values of other columns
		dst = d.protect.appendRejectedText(dst, d.protect.rejectPolicy(field, parses), text, f.Kind == String)
	}
	return append(dst, '}')
}
