package schemas

import (
	"encoding/binary"
	"math"
)

// RowParser turns rows of the REST service into Records. It belongs to one goroutine.
//
// It takes fields in any order; a nullable field that is missing is null. Integers may come as 12, 12.0,
// 1.2e1 or "12", money and doubles as numbers or as the same text in a string, times as parseInstant reads
// them. Nothing is lost by any of these.
//
// It rejects a number or a boolean where a string is expected (01234 that comes as 1234 has lost something),
// a string that is not a number, null in id, created_at or updated_at, a field that appears twice, text that
// is not valid UTF-8, and rows that are not well-formed JSON. Fields that the schema does not know need only
// be well-formed.
type RowParser struct {
	res     *Resource
	scan    *rowScanner
	arena   arena
	protect protector
	// Of the good rows since Missing was called: how many there are, and by field how many lack it. lacks: the
	// row in hand lacks one.
	good    int
	missing []int
	lacks   bool
}

// NewRowParser returns a parser for rows of r.
func NewRowParser(r *Resource) *RowParser {
	return &RowParser{res: r, scan: newRowScanner(r), protect: newProtector(r),
		missing: make([]int, len(r.Fields))}
}

// Parse encodes one row, a JSON object. Either the Record is good, or the Reject is not nil and says why it
// is not. The caller may reuse raw afterwards.
func (p *RowParser) Parse(raw []byte) (Record, *Reject) {
	whole := p.scan.row(raw)
	rec := Record{UpdatedAt: MinInstant}
	id, hasID := parseLong(p.scan.text(raw, 0))
	if updatedAt, ok := parseInstant(p.scan.text(raw, p.res.updatedAt)); ok {
		rec.UpdatedAt = updatedAt
	}
	if !whole {
		return Record{}, &Reject{ID: id, HasID: hasID, UpdatedAt: rec.UpdatedAt,
			Row: p.protect.appendUnreadable(nil, raw, id, hasID), Err: "expected one well-formed JSON object"}
	}
	p.lacks = false
	b := appendHeader(p.arena.room(HeaderSize + len(raw) + 24*len(p.res.Fields) + hashSize*p.res.hashes))
	for i := range p.res.Fields {
		f, start := &p.res.Fields[i], len(b)
		var ok bool
		if b, ok = p.appendField(b, raw, i); !ok {
			return Record{}, &Reject{ID: id, HasID: hasID, UpdatedAt: rec.UpdatedAt,
				Row: p.protect.appendRejectedRow(nil, raw), Field: f.Name, Err: p.complaint(raw, i)}
		}
		if f.Policy != "" {
			b = p.protect.apply(b, start, f)
		}
	}
	if p.good++; p.lacks {
		p.noteMissing()
	}
	rec.ID = id
	rec.Value = p.arena.take(b)
	return rec, nil
}

func (p *RowParser) noteMissing() {
	for i := range p.missing {
		if p.scan.spans[i].end == 0 {
			p.missing[i]++
		}
	}
}

// Missing says how many rows Parse found good since the last call, and, appended to dst by field in the
// schema's order, how many of these lack the field. They are null there, as where the row says null; whether
// the service leaves out what is null, or has lost the field, one row does not show.
func (p *RowParser) Missing(dst []int) (rows int, missing []int) {
	rows, missing = p.good, append(dst, p.missing...)
	p.good = 0
	clear(p.missing)
	return rows, missing
}

// CreatedAt is the created_at of raw, which must be what Parse read last; false where it has none that can be
// read.
func (p *RowParser) CreatedAt(raw []byte) (Instant, bool) {
	return parseInstant(p.scan.text(raw, p.res.createdAt))
}

// Unknown returns the names of fields that the schema does not know and that the parser met since the last
// call. It returns each name once in its life, and one text for all that do not look like a field's name.
func (p *RowParser) Unknown() []string {
	fresh := p.scan.fresh
	p.scan.fresh = nil
	return fresh
}

// appendField encodes field i; false where it breaks the contract.
func (p *RowParser) appendField(b, raw []byte, i int) ([]byte, bool) {
	f := &p.res.Fields[i]
	if f.Nullable {
		if p.scan.isNull(raw, i) {
			p.lacks = p.lacks || p.scan.spans[i].end == 0
			return append(b, 0), true
		}
		b = append(b, 2)
	}
	switch f.Kind {
	case Long:
		n, ok := parseLong(p.scan.text(raw, i))
		return binary.AppendVarint(b, n), ok
	case Timestamp:
		t, ok := parseInstant(p.scan.text(raw, i))
		return binary.AppendVarint(b, t.Millis()), ok
	case Decimal:
		n, ok := parseDecimal(p.scan.text(raw, i), f.Precision, f.Scale, f.HalfEven)
		return n.appendBytes(b), ok
	case Double:
		n, ok := parseDouble(p.scan.text(raw, i))
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(n)), ok
	default:
		text := p.scan.str(raw, i)
		return appendText(b, text), text != nil
	}
}

// complaint says why field i breaks the contract, without its value.
func (p *RowParser) complaint(raw []byte, i int) string {
	f := &p.res.Fields[i]
	switch v := p.scan.value(raw, i); {
	case p.scan.spans[i].twice:
		return "appears twice: expected it once"
	case v == nil:
		return f.expected() + ", it is missing"
	case f.Kind == Timestamp && isLeapSecond(p.scan.text(raw, i)):
		return f.expected() + ", found " + leapSecond
	default:
		return f.expected() + ", found " + jsonKind(v, f.Kind)
	}
}

// jsonKind names the kind of a JSON value that is no good for a field of kind k.
func jsonKind(v []byte, k Kind) string {
	switch c := v[0]; {
	case c == 'n':
		return "null"
	case c == 't' || c == 'f':
		return "a boolean"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string that is no such thing"
	case k == String || k == Timestamp:
		return "a number"
	default:
		return "a number that does not fit"
	}
}
