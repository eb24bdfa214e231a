package schemas

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgtype"
)

// textCodec is the codec of strings.
var textCodec = &codec{
	kind:     "a string",
	avroType: `"string"`,
	expected: "a string in valid UTF-8",
	null:     notAText,
	columns:  []uint32{pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID},
	fromText: func(b, text []byte) ([]byte, bool) {
		return append(binary.AppendVarint(b, int64(len(text))), text...), text != nil
	},
	fromColumn: func(b []byte, oid uint32, v []byte) ([]byte, bool) {
		// The binary form of some types that users create is no text. Their zero bytes give them away, because
		// PostgreSQL has none in any text.
		b = append(binary.AppendVarint(b, int64(len(v))), v...)
		return b, utf8.Valid(v) && (oid < firstUserOID || bytes.IndexByte(v, 0) < 0)
	},
	size: sizeOfBytes,
	toJSON: func(dst, value []byte) []byte {
		dst, _ = jsontext.AppendQuote(dst, readBytes(value)) // it replaces bytes that are not UTF-8
		return dst
	},
}
