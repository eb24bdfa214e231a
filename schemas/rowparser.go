package schemas

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// RowParser turns rows of the REST service into Records. It belongs to one goroutine.
//
// It takes fields in any order. A nullable field that is missing is null. Integers may come as 12, 12.0,
// 1.2e1 or "12", money and doubles as numbers or as the same text in a string, times as parseInstant reads
// them. These forms lose nothing. NaN, false and the like are null in a nullable field (null.go).
//
// It rejects a number or true for a string (01234 that comes as 1234 has lost something), a string that
// is not a number, null in id, created_at or updated_at, a field that appears twice, text that is not valid
// UTF-8, and rows that are not well-formed JSON. Fields that the schema does not know need only be
// well-formed.
type RowParser struct {
	encoder
	spans   []span // by field: its value in the row that was scanned last
	scratch []byte // the text of a string with escapes

	// The good rows since the last call of Missing, and by field how many of them lack it.
	good    int
	missing []int
	lacks   bool // the row that was read last lacks some

	// The names of fields that the schema does not know: all, and those found since the last call of Unknown.
	// Of a long name they have the beginning.
	met   map[string]bool
	fresh []string
}

// span is a value's place in a row. end is 0 if the row does not have the field.
type span struct {
	start, end int
	twice      bool // the row has the field more than once
	plain      bool // a string of ASCII without escapes
}

const (
	// MaxUnknown limits the names of unknown fields that are remembered. A service may invent one for each row.
	MaxUnknown = 256
	// maxUnknownName limits the bytes of such a name.
	maxUnknownName = 64
)

// NewRowParser returns a parser for rows of r.
func NewRowParser(r *Resource) *RowParser {
	return &RowParser{encoder: newEncoder(r), spans: make([]span, len(r.Fields)),
		missing: make([]int, len(r.Fields)), met: map[string]bool{}}
}

// Parse encodes one row, a JSON object. Either the Record is good, or the Reject is not nil and says why it
// is not. The caller may reuse raw afterwards.
func (p *RowParser) Parse(raw []byte) (Record, *Reject) {
	if fault := p.scan(raw); fault >= 0 {
		return Record{}, p.reject(raw, "", fmt.Sprint("expected one well-formed JSON object, found a fault", atByte,
			fault))
	}
	p.lacks = false
	p.reserve(len(raw))
	b := appendHeader(p.chunk)
	for i := range p.res.Fields {
		f, start := &p.res.Fields[i], len(b)
		var ok bool
		switch at := &p.spans[i]; {
		case !f.Nullable:
			b, ok = f.codec.fromText(b, p.text(raw, i))
		case at.end == 0 || string(raw[at.start:at.end]) == "null" && !at.twice:
			p.lacks = p.lacks || at.end == 0
			b, ok = append(b, 0), true
		default:
			b, ok = f.codec.fromText(append(b, 2), p.text(raw, i))
		}
		if !ok && p.isNull(i, p.word(raw, i)) {
			b, ok = append(b[:start], 0), true
		}
		if !ok {
			return Record{}, p.reject(raw, f.Name, p.complaint(raw, i))
		}
		if f.Policy != "" {
			b = p.protect(b, start, i)
		}
	}
	p.good++
	for i := 0; p.lacks && i < len(p.spans); i++ {
		if p.spans[i].end == 0 {
			p.missing[i]++
		}
	}
	updatedAt, _ := parseInstant(p.text(raw, p.res.updatedAt))
	value := b[len(p.chunk):len(b):len(b)]
	p.chunk = b
	id, _ := binary.Varint(value[HeaderSize:])
	return Record{ID: id, UpdatedAt: updatedAt, Value: value}, nil
}

// scan finds the values of the schema's fields. It returns the place of the first fault if the row is not one
// well-formed object, else -1. It does not check the values of the schema's fields, which their codecs check.
// The values before a fault are found all the same.
func (p *RowParser) scan(raw []byte) (fault int) {
	clear(p.spans)
	s := Scanner{text: raw}
	s.Open('{')
	for next := 0; s.More('}'); {
		name := s.Name()
		value, plain := s.Value()
		if s.bad {
			return s.at
		}
		field := p.lookUp(name, next)
		if field < 0 {
			if !wellFormed(name) || !wellFormed(value) &&
				!wellFormed(unquoted.ReplaceAll(value, []byte("null"))) {
				return s.at - len(value)
			}
			continue
		}
		p.spans[field] = span{start: s.at - len(value), end: s.at, twice: p.spans[field].end > 0, plain: plain}
		next = field + 1
	}
	if !s.Whole() {
		return s.at
	}
	return -1
}

// wellFormed returns whether text is a JSON value. Names that appear twice and text that is not UTF-8 harm
// nothing in a field that is not published.
func wellFormed(text jsontext.Value) bool {
	return text.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// lookUp returns the field of a quoted name, -1 if the schema has none or the name is no JSON. Rows list
// their fields in the same order, mostly that of the schema, so it looks at next first.
func (p *RowParser) lookUp(quoted []byte, next int) int {
	name := quoted[1 : len(quoted)-1]
	if next < len(p.res.Fields) && string(name) == p.res.Fields[next].Name {
		return next
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		var err error
		if p.scratch, err = jsontext.AppendUnquote(p.scratch[:0], quoted); err != nil {
			return -1 // the text before the fault may be a field's name
		}
		name = p.scratch
	}
	if i, ok := p.res.index[string(name)]; ok {
		return i
	}
	p.meet(name)
	return -1
}

// meet remembers an unknown name.
func (p *RowParser) meet(name []byte) {
	name = name[:min(len(name), maxUnknownName)]
	if !p.met[string(name)] && len(p.met) < MaxUnknown {
		p.met[string(name)] = true
		p.fresh = append(p.fresh, string(name))
	}
}

// text returns the text of field i for its codec: a number if the field may be one, or the text of a string.
// It is nil if the row has another value, has the field twice or not at all, or if the string is not valid
// UTF-8. It is valid until the next call.
func (p *RowParser) text(raw []byte, i int) []byte {
	at := &p.spans[i]
	if at.end == 0 || at.twice {
		return nil
	}
	quoted := raw[at.start:at.end]
	if c := quoted[0]; c != '"' {
		if (c == '-' || c-'0' <= 9) && p.res.Fields[i].codec.numbers {
			return quoted
		}
		return nil
	}
	text := quoted[1 : len(quoted)-1]
	if at.plain {
		return text
	}
	var err error
	if p.scratch, err = jsontext.AppendUnquote(p.scratch[:0], quoted); err != nil {
		return nil
	}
	return p.scratch
}

// word returns the text of a string or the word without quotes that field i has in the row that was scanned
// last, nil if it has neither.
func (p *RowParser) word(raw []byte, i int) []byte {
	at := &p.spans[i]
	if at.end == 0 || at.twice || raw[at.start] == '"' {
		return p.text(raw, i)
	}
	return raw[at.start:at.end]
}

// reject returns a Reject of the row that was scanned last. It shows the known fields in the row's order;
// of a row that is not well formed those before the fault.
func (p *RowParser) reject(raw []byte, field, err string) *Reject {
	rej := &Reject{UpdatedAt: MinInstant, Row: []byte{'{'}, Field: field, Err: err}
	rej.ID, rej.HasID = parseLong(p.text(raw, 0))
	if t, ok := parseInstant(p.text(raw, p.res.updatedAt)); ok {
		rej.UpdatedAt = t
	}
	var fields []int
	for i, s := range p.spans {
		if s.end > 0 {
			fields = append(fields, i)
		}
	}
	slices.SortFunc(fields, func(a, b int) int { return cmp.Compare(p.spans[a].start, p.spans[b].start) })
	for _, i := range fields {
		value := raw[p.spans[i].start:p.spans[i].end]
		rej.Row = p.show(rej.Row, i, value, len(value), false)
	}
	rej.Row = append(rej.Row, '}')
	return rej
}

// atByte stands in a Reject's Err before the place in the row, counted from 0.
const atByte = " at byte "

// Reason returns the Err of a Reject without the place in the row. Rows with one reason have one fault.
func Reason(err string) string {
	reason, _, _ := strings.Cut(err, atByte)
	return reason
}

// complaint says why field i breaks the contract, without its value.
func (p *RowParser) complaint(raw []byte, i int) string {
	at, expected := p.spans[i], "expected "+p.res.Fields[i].codec.expected+", "
	switch {
	case at.twice:
		return fmt.Sprint("appears twice: expected it once, found it again", atByte, at.start)
	case at.end == 0:
		return expected + "it is missing"
	}
	value := raw[at.start:at.end]
	if found := p.noValue(i, p.word(raw, i)); found != "" {
		return fmt.Sprint(expected, found, atByte, at.start)
	}
	if fault := faultOf(value, at.start); fault != "" {
		return expected + fault
	}
	return fmt.Sprint(expected, "found the JSON kind ", jsontext.Value(value).Kind(), atByte, at.start)
}

// loneHalf matches an escape of half a character.
var loneHalf = regexp.MustCompile(`^\\u(?i:d[89a-f][0-9a-f]{2})`)

// faultOf describes a half character, or a byte that is not UTF-8, in value, which begins at start. It
// returns "" for any other fault. The words that may differ from row to row come after atByte.
func faultOf(value []byte, start int) string {
	_, err := jsontext.NewDecoder(bytes.NewReader(value)).ReadToken()
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok || int(syntax.ByteOffset) >= len(value) {
		return ""
	}
	rest := value[syntax.ByteOffset:]
	start += int(syntax.ByteOffset)
	if escape := loneHalf.Find(rest); escape != nil {
		return fmt.Sprintf("found an escape without its other half%s%d (%s)", atByte, start, escape)
	}
	if rest[0] >= utf8.RuneSelf {
		return fmt.Sprintf("found a byte that is not UTF-8%s%d (%#x)", atByte, start, rest[0])
	}
	return ""
}

// Missing returns how many rows Parse found good since the last call, and, appended to dst by field in the
// schema's order, how many of these lack the field. Such a field is null in its record, like one that the row
// says is null. One row does not show whether the service leaves out null fields or has lost the field.
func (p *RowParser) Missing(dst []int) (rows int, missing []int) {
	rows, missing = p.good, append(dst, p.missing...)
	p.good = 0
	clear(p.missing)
	return rows, missing
}

// CreatedAt returns the created_at of raw, which must be the row that Parse read last. It returns false if
// that is missing or not a time.
func (p *RowParser) CreatedAt(raw []byte) (Instant, bool) {
	return parseInstant(p.text(raw, p.res.createdAt))
}

// A text's mark is 48 bits of its hash and, below them, the days from 1970 to created_at.
const (
	dayBits   = 16
	dayLength = Instant(24 * 60 * 60 * 1e6)
)

// Text returns a mark of raw, which must be the row that Parse read last, as r. A row with this id and mark
// is r, lacks no field, and has updated_at in whole milliseconds. Zero means that no mark says all this.
func (p *RowParser) Text(raw []byte, r *Record) uint64 {
	created, ok := p.CreatedAt(raw)
	day := uint64(created.Day() / dayLength)
	if !ok || p.lacks || r.UpdatedAt != InstantOfMillis(r.UpdatedAt.Millis()) || day >= 1<<dayBits {
		return 0
	}
	return xxhash.Sum64(raw)>>dayBits<<dayBits | day
}

// Again reports whether raw is the text with this mark. If so, created is the day of its created_at, and
// Missing counts it as a row that lacks no field.
func (p *RowParser) Again(raw []byte, text uint64) (created Instant, is bool) {
	if text == 0 || (xxhash.Sum64(raw)^text)>>dayBits != 0 {
		return 0, false
	}
	p.good++
	return Instant(text&(1<<dayBits-1)) * dayLength, true
}

// ID returns the id of raw without reading the fields behind it. It returns false if it has not found an id.
func (p *RowParser) ID(raw []byte) (id int64, ok bool) {
	s := Scanner{text: raw}
	for s.Open('{'); s.More('}'); {
		name := s.Name()
		value, _ := s.Value()
		if len(name) > 2 && string(name[1:len(name)-1]) == p.res.Fields[0].Name {
			return parseLong(bytes.Trim(value, `"`))
		}
	}
	return 0, false
}

// Unknown returns the names of fields that the schema does not know and that the parser found since the last
// call. It returns each name once in its life.
//
// A name may be a value: the service may key a map by e-mail addresses. So nothing shows names but a command
// that a person has asked for them.
func (p *RowParser) Unknown() []string {
	fresh := p.fresh
	p.fresh = nil
	return fresh
}
