package schemas

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// appendString encodes a JSON string as an Avro one; false where it is no string or not valid UTF-8.
func (p *RowParser) appendString(b, quoted []byte, ascii bool) ([]byte, bool) {
	if len(quoted) == 0 || quoted[0] != '"' {
		return b, false
	}
	text := p.unquote(quoted, ascii)
	if text == nil {
		return b, false
	}
	return appendText(b, text), true
}

// unquote is what stands in a JSON string, good until the next call; nil where that is not valid UTF-8. ascii: it is known to hold
// neither escapes nor anything else to check.
func (p *RowParser) unquote(quoted []byte, ascii bool) []byte {
	text := quoted[1 : len(quoted)-1]
	if ascii {
		return text
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		var err error
		if p.scratch, err = jsontext.AppendUnquote(p.scratch[:0], quoted); err != nil {
			return nil
		}
		return p.scratch
	}
	if !utf8.Valid(text) {
		return nil
	}
	return text
}

// appendText encodes an Avro string (or bytes): its length and itself.
func appendText(b, text []byte) []byte {
	return append(binary.AppendVarint(b, int64(len(text))), text...)
}

// complaint says why field i breaks the contract, without its value.
func (p *RowParser) complaint(raw []byte, i int) string {
	f := &p.res.Fields[i]
	switch v := p.value(raw, i); {
	case p.spans[i].twice:
		return "appears twice: expected it once"
	case len(v) == 0:
		return f.expected() + ", it is missing"
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

const (
	maxUnknown     = 256 // names remembered; a service that invents a name for each row must not fill the memory
	maxUnknownName = 100 // bytes of a name
)

// unknownNames remembers the names of fields that the schema does not know.
type unknownNames struct {
	met   map[string]bool
	fresh []string // met and not drained
}

// add remembers a name, in valid UTF-8 whatever came: it becomes a metric's label.
func (u *unknownNames) add(name []byte) {
	name = name[:min(len(name), maxUnknownName)]
	if u.met[string(name)] || len(u.met) >= maxUnknown {
		return
	}
	if u.met == nil {
		u.met = map[string]bool{}
	}
	u.met[string(name)] = true
	u.fresh = append(u.fresh, string(bytes.ToValidUTF8(name, []byte("\uFFFD"))))
}

func (u *unknownNames) drain() []string {
	fresh := u.fresh
	u.fresh = nil
	return fresh
}
