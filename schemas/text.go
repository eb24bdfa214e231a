package schemas

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// textCodec is the codec of strings.
var textCodec = &codec{
	kind:       "a string",
	avroType:   `"string"`,
	expected:   "a string in valid UTF-8",
	columns:    []uint32{oidText, oidVarchar, oidBPChar, oidName},
	fromText:   func(b, text []byte) ([]byte, bool) { return appendText(b, text), text != nil },
	fromColumn: func(b []byte, v columnValue) ([]byte, bool) { return appendText(b, v.b), v.isText() },
	converts: func(t *avroType) bool {
		return t.kind == "string" || t.kind == "enum" || t.kind == "bytes" && t.logical == ""
	},
	fromAvro: func(b []byte, t *avroType, c *cursor) ([]byte, bool) {
		if t.kind != "enum" {
			text := c.bytes()
			return appendText(b, text), utf8.Valid(text)
		}
		i := c.long()
		if i < 0 || i >= int64(len(t.names)) {
			return b, false
		}
		return appendText(b, []byte(t.names[i])), true
	},
	toJSON: func(dst []byte, c *cursor) []byte {
		dst, _ = jsontext.AppendQuote(dst, c.bytes()) // it replaces bytes that are not UTF-8
		return dst
	},
	skip: func(c *cursor) { c.bytes() },
}

// appendText encodes an Avro string: its length and its bytes.
func appendText(b, text []byte) []byte {
	return append(binary.AppendVarint(b, int64(len(text))), text...)
}
