package schemas

import (
	"encoding/binary"
	"math"
	"strconv"
)

// ColumnDecoder turns rows of a Postgres result in binary format into Records. It belongs to one goroutine, and holds for one description of
// the columns: after an ALTER TABLE (K28) a new one is due.
type ColumnDecoder struct {
	res    *Resource
	cols   []Column
	places []int // by field: its column, -1 for none
	arena  arena
}

// NewColumnDecoder checks that the columns can hold r's fields: id, created_at and updated_at must be there, a nullable field without a column
// is null. The error names every column that will not do, and does not go away by itself.
func NewColumnDecoder(r *Resource, cols []Column) (*ColumnDecoder, error) {
	places, err := r.checkColumns(cols)
	if err != nil {
		return nil, err
	}
	return &ColumnDecoder{res: r, cols: append([]Column(nil), cols...), places: places}, nil
}

// Decode encodes one row, a value for each column, nil for NULL. Either the Record is good, or the Reject is not nil and says why it is not.
// The values may be reused afterwards.
func (d *ColumnDecoder) Decode(values [][]byte) (Record, *Reject) {
	if len(values) != len(d.cols) {
		return d.reject(values, -1)
	}
	size := HeaderSize + 24*len(d.places)
	for _, v := range values {
		size += len(v)
	}
	b := append(d.arena.room(size), 0, 0, 0, 0, 0)
	for i, place := range d.places {
		var v []byte
		var ok bool
		if place >= 0 {
			v = values[place]
		}
		if b, ok = d.appendField(b, i, place, v); !ok {
			return d.reject(values, i)
		}
	}
	id, _ := d.id(values)
	updatedAt, _ := d.updatedAt(values)
	return Record{ID: id, UpdatedAt: updatedAt, Value: d.arena.take(b)}, nil
}

func (d *ColumnDecoder) id(values [][]byte) (int64, bool) {
	place := d.places[0]
	return longColumn(d.cols[place].OID, values[place])
}

func (d *ColumnDecoder) updatedAt(values [][]byte) (Instant, bool) {
	return readTimestamp(values[d.places[d.res.updatedAt]])
}

// appendField encodes field i from its column; false where the value breaks the contract.
func (d *ColumnDecoder) appendField(b []byte, i, place int, v []byte) ([]byte, bool) {
	f := &d.res.Fields[i]
	if f.Nullable {
		if v == nil {
			return append(b, 0), true
		}
		b = append(b, 2)
	} else if v == nil {
		return b, false
	}
	oid := d.cols[place].OID
	switch f.Kind {
	case Long:
		n, ok := longColumn(oid, v)
		return binary.AppendVarint(b, n), ok
	case Timestamp:
		t, ok := instantColumn(oid, v)
		return binary.AppendVarint(b, t.Millis()), ok
	case Decimal:
		n, ok := decimalColumn(oid, v, f)
		return n.appendBytes(b), ok
	case Double:
		n, ok := doubleColumn(oid, v)
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(n)), ok
	default:
		return appendText(b, v), textColumn(oid, v)
	}
}

func instantColumn(oid uint32, v []byte) (Instant, bool) {
	if oid == oidTimestamp || oid == oidTimestamptz {
		return readTimestamp(v)
	}
	return parseInstant(v)
}

// intColumn reads the integer types.
func intColumn(v []byte) (int64, bool) {
	switch len(v) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v))), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v))), true
	case 8:
		return int64(binary.BigEndian.Uint64(v)), true
	}
	return 0, false
}

func longColumn(oid uint32, v []byte) (int64, bool) {
	switch oid {
	case oidInt2, oidInt4, oidInt8:
		return intColumn(v)
	case oidNumeric:
		n, ok := readNumeric(v)
		if !ok {
			return 0, false
		}
		return n.long()
	default:
		var buf [maxFloatText]byte
		text, ok := columnText(buf[:0], oid, v)
		if !ok {
			return 0, false
		}
		return parseLong(text)
	}
}

func decimalColumn(oid uint32, v []byte, f *Field) (decimal, bool) {
	switch oid {
	case oidNumeric:
		n, ok := readNumeric(v)
		if !ok {
			return decimal{}, false
		}
		return n.decimal(f.Precision, f.Scale, f.HalfEven)
	case oidInt2, oidInt4, oidInt8:
		n, ok := intColumn(v)
		d, fits := decimalOfInt(n, f.Precision, f.Scale)
		return d, ok && fits
	default:
		var buf [maxFloatText]byte
		text, ok := columnText(buf[:0], oid, v)
		if !ok {
			return decimal{}, false
		}
		return parseDecimal(text, f.Precision, f.Scale, f.HalfEven)
	}
}

func doubleColumn(oid uint32, v []byte) (float64, bool) {
	switch oid {
	case oidFloat8:
		if len(v) != 8 {
			return 0, false
		}
		n := math.Float64frombits(binary.BigEndian.Uint64(v))
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	case oidInt2, oidInt4, oidInt8:
		n, ok := intColumn(v)
		return float64(n), ok
	default:
		var buf [maxFloatText]byte
		text, ok := columnText(buf[:0], oid, v)
		if !ok {
			return 0, false
		}
		return parseDouble(text)
	}
}

// maxFloatText is enough for the shortest text of any float: -2.2250738585072014e-308.
const maxFloatText = 32

// columnText is a value of a float, numeric or text column as text. A float is the shortest decimal that reads back as that float, which is
// what Postgres prints and so what the service's JSON holds: the same row gives the same bytes from either.
func columnText(buf []byte, oid uint32, v []byte) ([]byte, bool) {
	switch oid {
	case oidFloat8:
		if len(v) != 8 {
			return nil, false
		}
		return strconv.AppendFloat(buf, math.Float64frombits(binary.BigEndian.Uint64(v)), 'e', -1, 64), true
	case oidFloat4:
		if len(v) != 4 {
			return nil, false
		}
		return strconv.AppendFloat(buf, float64(math.Float32frombits(binary.BigEndian.Uint32(v))), 'e', -1, 32), true
	case oidNumeric:
		n, ok := readNumeric(v)
		if !ok {
			return nil, false
		}
		return n.appendText(buf), true
	default:
		return v, true
	}
}
