package schemas

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// RowParser turns rows of the REST service into Records. It belongs to one goroutine.
//
// What it takes: fields in any order; a nullable field that is missing is null. Integers may come as 12, 12.0, 1.2e1 or "12"; money and
// doubles as numbers or as the same text in a string; times as parseInstant reads them. Nothing is lost by any of these.
// What it rejects: a number or a boolean where a string is expected (01234 that comes as 1234 has lost something), a string that is
// not a number, null in id, created_at or updated_at, a field that appears twice, text that is not valid UTF-8, and rows
// that are not well-formed JSON. Of fields that the schema does not know only well-formedness is asked.
type RowParser struct {
	res     *Resource
	decoder *jsontext.Decoder
	input   bytes.Buffer
	spans   []span // by field: where its value stands in the row
	arena   arena
	scratch []byte
	unknown unknownNames
}

// span is a value's place in the row; end is 0 where the field was not met.
type span struct {
	start, end int
	twice      bool
	ascii      bool // a string without escapes, all of ASCII; false where that was not looked at
}

// NewRowParser returns a parser for rows of r.
func NewRowParser(r *Resource) *RowParser {
	p := &RowParser{res: r, spans: make([]span, len(r.Fields))}
	// The two checks that jsontext would make are made here for the fields that count, so that a fault can be blamed on its field and the
	// row keeps its id.
	p.decoder = jsontext.NewDecoder(&p.input, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return p
}

// Parse encodes one row, a JSON object. Either the Record is good, or the Reject is not nil and says why it is not. raw may be reused
// afterwards.
func (p *RowParser) Parse(raw []byte) (Record, *Reject) {
	whole := p.scanPlain(raw) || p.scanAny(raw)
	rec := Record{UpdatedAt: MinInstant}
	id, hasID := p.long(raw, 0)
	updatedAt, hasUpdatedAt := p.instant(raw, p.res.updatedAt)
	if hasUpdatedAt {
		rec.UpdatedAt = updatedAt
	}
	reject := func(field, err string) (Record, *Reject) {
		return Record{}, &Reject{ID: id, HasID: hasID, UpdatedAt: rec.UpdatedAt, Row: bytes.Clone(raw), Field: field, Err: err}
	}
	if !whole {
		return reject("", "expected one well-formed JSON object")
	}
	b := p.arena.room(HeaderSize + len(raw) + 24*len(p.spans))
	b = append(b, 0, 0, 0, 0, 0)
	for i := range p.spans {
		var ok bool
		if b, ok = p.appendField(b, raw, i); !ok {
			return reject(p.res.Fields[i].Name, p.complaint(raw, i))
		}
	}
	rec.ID = id
	rec.Value = p.arena.take(b)
	return rec, nil
}

// CreatedAt is the created_at of raw, which must be what Parse was called with last; false where it has none that can be read.
func (p *RowParser) CreatedAt(raw []byte) (Instant, bool) { return p.instant(raw, p.res.createdAt) }

// Unknown returns the names of fields that the schema does not know and that were met since the last call; each name once in the
// parser's life.
func (p *RowParser) Unknown() []string { return p.unknown.drain() }

// scanAny notes where the fields' values stand. false where raw is not one well-formed object; what it met before the fault stands.
func (p *RowParser) scanAny(raw []byte) bool {
	clear(p.spans)
	p.input = *bytes.NewBuffer(raw)
	p.decoder.Reset(&p.input, p.decoder.Options())
	if p.decoder.PeekKind() != '{' {
		return false
	}
	_, _ = p.decoder.ReadToken()
	for next := 0; p.decoder.PeekKind() == '"'; {
		name, err := p.decoder.ReadValue()
		if err != nil {
			return false
		}
		i := p.lookUp(name, next)
		value, err := p.decoder.ReadValue()
		if err != nil {
			return false
		}
		end := int(p.decoder.InputOffset())
		// A value counts once what follows it is well formed: 07 would pass for a row of id 0, and a row cut off inside id 70 for row 7.
		if follows := p.decoder.PeekKind(); follows != '"' && follows != '}' {
			return false
		}
		if i < 0 {
			continue
		}
		p.spans[i] = span{start: end - len(value), end: end, twice: p.spans[i].end > 0}
		next = i + 1
	}
	if token, err := p.decoder.ReadToken(); err != nil || token.Kind() != '}' {
		return false
	}
	rest := bytes.TrimLeft(raw[p.decoder.InputOffset():], " \t\r\n")
	return len(rest) == 0
}

// lookUp finds the field of a quoted name, -1 if the schema has none. Rows list their fields in the same order, mostly that of the schema, so
// it looks at next first.
func (p *RowParser) lookUp(quoted []byte, next int) int {
	name := quoted[1 : len(quoted)-1]
	if next < len(p.res.Fields) && string(name) == p.res.Fields[next].Name {
		return next
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		p.scratch, _ = jsontext.AppendUnquote(p.scratch[:0], quoted)
		name = p.scratch
	}
	if i, ok := p.res.index[string(name)]; ok {
		return i
	}
	p.unknown.add(name)
	return -1
}

// value is the JSON value of field i, nil where there is none to use.
func (p *RowParser) value(raw []byte, i int) []byte {
	if s := p.spans[i]; s.end > 0 && !s.twice {
		return raw[s.start:s.end]
	}
	return nil
}

// text is what stands in the string or the number of field i, nil where it is neither. It is good until the next call: some encoders escape
// the + of a time zone.
func (p *RowParser) text(raw []byte, i int) []byte {
	v := p.value(raw, i)
	if len(v) == 0 {
		return nil
	}
	switch c := v[0]; {
	case c == '"':
		return p.unquote(v, p.spans[i].ascii)
	case c == '-' || c-'0' <= 9:
		return v
	}
	return nil
}

func (p *RowParser) long(raw []byte, i int) (int64, bool) { return parseLong(p.text(raw, i)) }

func (p *RowParser) instant(raw []byte, i int) (Instant, bool) {
	return parseInstant(p.text(raw, i))
}

// appendField encodes field i; false where it breaks the contract.
func (p *RowParser) appendField(b, raw []byte, i int) ([]byte, bool) {
	f := &p.res.Fields[i]
	if f.Nullable {
		if v := p.value(raw, i); len(v) > 0 && v[0] == 'n' || p.spans[i].end == 0 {
			return append(b, 0), true
		}
		b = append(b, 2)
	}
	switch f.Kind {
	case Long:
		v, ok := p.long(raw, i)
		return binary.AppendVarint(b, v), ok
	case Timestamp:
		v, ok := p.instant(raw, i)
		return binary.AppendVarint(b, v.Millis()), ok
	case Decimal:
		v, ok := parseDecimal(p.text(raw, i), f.Precision, f.Scale, f.HalfEven)
		return v.appendBytes(b), ok
	case Double:
		v, ok := parseDouble(p.text(raw, i))
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v)), ok
	default:
		return p.appendString(b, p.value(raw, i), p.spans[i].ascii)
	}
}
