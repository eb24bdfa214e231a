package schemas

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// rowScanner finds where the values of a resource's fields stand in a JSON object. Its answers hold for the
// row that it scanned last, which its methods take again, because the scanner does not keep it.
type rowScanner struct {
	res     *Resource
	decoder *jsontext.Decoder
	input   bytes.Buffer // what decoder reads
	spans   []span       // by field
	scratch []byte

	// The names of fields that the schema does not know: those met ever, and those met since unknown was called.
	met   map[string]bool
	fresh []string
}

// maxUnknown bounds the names remembered: a service that invents one for each row must not fill the memory.
const maxUnknown = 256

// notAName stands for all names that are not shown: log, page and metrics hold no values of rows, and where
// the service keys a map by them, a name is one (an e-mail address, a phone number).
const notAName = "(not a name)"

// fieldName is what the name of a field looks like.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// span is a value's place in the row; end is 0 where the row does not have the field.
type span struct {
	start, end int
	twice      bool
	ascii      bool // a string without escapes, all of ASCII; false where nobody looked
}

func newRowScanner(r *Resource) *rowScanner {
	s := &rowScanner{res: r, spans: make([]span, len(r.Fields)), met: map[string]bool{}}
	// The decoder leaves two checks to us, which makes them for the fields that count alone: so a fault can be
	// blamed on its field, and the row keeps its id.
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	s.decoder = jsontext.NewDecoder(&s.input, lenient...)
	return s
}

// row scans a row; false where it is not one well-formed object. What stood before the fault can be read all
// the same.
//
// A loop over bytes reads rows of the usual kind, in a third of the time: a token costs jsontext more than
// the bytes in it. jsontext reads all others. FuzzRowParser checks that both find the same.
func (s *rowScanner) row(raw []byte) bool { return s.scanPlain(raw) || s.scanAny(raw) }

// scanPlain scans one object of numbers, literals and strings without escapes. false says only that raw is
// something else, good or bad.
func (s *rowScanner) scanPlain(raw []byte) bool {
	clear(s.spans)
	i := skipSpace(raw, 0)
	if at(raw, i) != '{' {
		return false
	}
	i = skipSpace(raw, i+1)
	for next := 0; ; {
		name, ok := plainString(raw, i)
		if !ok {
			return false
		}
		field := s.lookUp(raw[i:name.end], next)
		i = skipSpace(raw, name.end)
		if at(raw, i) != ':' {
			return false
		}
		value, ok := plainValue(raw, skipSpace(raw, i+1))
		if !ok {
			return false
		}
		if field >= 0 {
			value.twice = s.spans[field].end > 0
			s.spans[field] = value
			next = field + 1
		}
		i = skipSpace(raw, value.end)
		switch at(raw, i) {
		case ',':
			i = skipSpace(raw, i+1)
		case '}':
			return skipSpace(raw, i+1) == len(raw)
		default:
			return false
		}
	}
}

// scanAny scans any row.
func (s *rowScanner) scanAny(raw []byte) bool {
	clear(s.spans)
	s.input = *bytes.NewBuffer(raw)
	s.decoder.Reset(&s.input, s.decoder.Options())
	if s.decoder.PeekKind() != '{' {
		return false
	}
	_, _ = s.decoder.ReadToken()
	for next := 0; s.decoder.PeekKind() == '"'; {
		name, err := s.decoder.ReadValue()
		if err != nil {
			return false
		}
		i := s.lookUp(name, next)
		value, err := s.decoder.ReadValue()
		if err != nil {
			return false
		}
		end := int(s.decoder.InputOffset())
		// A value counts only once what follows it is well formed. Otherwise 07 would pass for a row of id 0, and a
		// row that is cut off inside id 70 for row 7.
		if follows := s.decoder.PeekKind(); follows != '"' && follows != '}' {
			return false
		}
		if i < 0 {
			continue
		}
		s.spans[i] = span{start: end - len(value), end: end, twice: s.spans[i].end > 0}
		next = i + 1
	}
	if token, err := s.decoder.ReadToken(); err != nil || token.Kind() != '}' {
		return false
	}
	return skipSpace(raw, int(s.decoder.InputOffset())) == len(raw)
}

// lookUp finds the field of a quoted name, -1 if the schema has none. Rows list their fields in the same
// order, mostly that of the schema, so it looks at next first.
func (s *rowScanner) lookUp(quoted []byte, next int) int {
	name := quoted[1 : len(quoted)-1]
	if next < len(s.res.Fields) && string(name) == s.res.Fields[next].Name {
		return next
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		s.scratch, _ = jsontext.AppendUnquote(s.scratch[:0], quoted)
		name = s.scratch
	}
	if i, ok := s.res.index[string(name)]; ok {
		return i
	}
	s.meet(name)
	return -1
}

// meet remembers an unknown name.
func (s *rowScanner) meet(name []byte) {
	if s.met[string(name)] || len(s.met) >= maxUnknown {
		return
	}
	shown := notAName
	if fieldName.Match(name) {
		shown = string(name)
	}
	if !s.met[shown] {
		s.met[shown] = true
		s.fresh = append(s.fresh, shown)
	}
}

// value is the JSON value of field i, nil where there is none or more than one.
func (s *rowScanner) value(raw []byte, i int) []byte {
	if at := s.spans[i]; at.end > 0 && !at.twice {
		return raw[at.start:at.end]
	}
	return nil
}

// isNull says whether field i is null, or not there.
func (s *rowScanner) isNull(raw []byte, i int) bool {
	v := s.value(raw, i)
	return v != nil && v[0] == 'n' || s.spans[i].end == 0
}

// text is the number of field i, or what stands in its string; nil where it is neither. It is good until the
// next call: some encoders escape the + of a time zone.
func (s *rowScanner) text(raw []byte, i int) []byte {
	if v := s.value(raw, i); v != nil && (v[0] == '-' || v[0]-'0' <= 9) {
		return v
	}
	return s.str(raw, i)
}

// str is what stands in the string of field i, good until the next call; nil where that is not valid UTF-8,
// or no string.
func (s *rowScanner) str(raw []byte, i int) []byte {
	quoted := s.value(raw, i)
	if quoted == nil || quoted[0] != '"' {
		return nil
	}
	text := quoted[1 : len(quoted)-1]
	if s.spans[i].ascii {
		return text
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		var err error
		if s.scratch, err = jsontext.AppendUnquote(s.scratch[:0], quoted); err != nil {
			return nil
		}
		return s.scratch
	}
	if !utf8.Valid(text) {
		return nil
	}
	return text
}

// at is the byte at i, 0 behind the end.
func at(raw []byte, i int) byte {
	if i < len(raw) {
		return raw[i]
	}
	return 0
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// plainValue is the string, number or literal that begins at i.
func plainValue(raw []byte, i int) (span, bool) {
	switch c := at(raw, i); {
	case c == '"':
		return plainString(raw, i)
	case c == '-' || c-'0' <= 9:
		return plainNumber(raw, i)
	case c == 'n':
		return literal(raw, i, "null")
	case c == 't':
		return literal(raw, i, "true")
	case c == 'f':
		return literal(raw, i, "false")
	}
	return span{}, false
}

// plainString is the string that begins at i, quotes included; false where it has a backslash, or a control
// character, which JSON does not allow.
func plainString(raw []byte, i int) (span, bool) {
	s := span{start: i}
	if at(raw, i) != '"' {
		return s, false
	}
	var all byte
	for i++; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			s.end, s.ascii = i+1, all < 0x80
			return s, true
		case c == '\\' || c < ' ':
			return s, false
		default:
			all |= c
		}
	}
	return s, false
}

// plainNumber is the number that begins at i, in JSON's grammar: no leading zeros, digits on both sides of a
// point.
func plainNumber(raw []byte, i int) (span, bool) {
	s := span{start: i}
	if raw[i] == '-' {
		i++
	}
	whole, i := scanDigits(raw, i)
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return s, false
	}
	if at(raw, i) == '.' {
		var fraction []byte
		if fraction, i = scanDigits(raw, i+1); len(fraction) == 0 {
			return s, false
		}
	}
	if c := at(raw, i); c == 'e' || c == 'E' {
		if i++; at(raw, i) == '+' || at(raw, i) == '-' {
			i++
		}
		var exponent []byte
		if exponent, i = scanDigits(raw, i); len(exponent) == 0 {
			return s, false
		}
	}
	s.end = i
	return s, true
}

func literal(raw []byte, i int, word string) (span, bool) {
	end := i + len(word)
	return span{start: i, end: end}, end <= len(raw) && string(raw[i:end]) == word
}
