package schemas

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// textColumn says whether v can be a string's text. The types that users create include some whose binary form is no text; their
// zero bytes, which Postgres has in no text, give them away.
func textColumn(oid uint32, v []byte) bool {
	return utf8.Valid(v) && (oid < firstUserOID || bytes.IndexByte(v, 0) < 0)
}

// reject says that field i cannot be published; -1 where the row has not as many values as there are columns.
func (d *ColumnDecoder) reject(values [][]byte, i int) (Record, *Reject) {
	rej := &Reject{UpdatedAt: MinInstant, Err: "expected a value for each column"}
	if i < 0 {
		rej.Row = []byte("{}")
		return Record{}, rej
	}
	if id, ok := d.id(values); ok && values[d.places[0]] != nil {
		rej.ID, rej.HasID = id, true
	}
	if t, ok := d.updatedAt(values); ok {
		rej.UpdatedAt = t
	}
	rej.Field = d.res.Fields[i].Name
	rej.Err = d.complaint(values[d.places[i]], i) // a field without a column is null, and cannot be rejected
	rej.Row = d.appendRow(nil, values)
	return Record{}, rej
}

// complaint says why field i breaks the contract, without its value.
func (d *ColumnDecoder) complaint(v []byte, i int) string {
	f := &d.res.Fields[i]
	if v == nil {
		return f.expected() + ", found null"
	}
	return f.expected() + ", found a value of type " + typeName(d.cols[d.places[i]].OID) + " that does not fit"
}

// appendRow is the row as a JSON object, columns in the result's order, each value its text.
func (d *ColumnDecoder) appendRow(dst []byte, values [][]byte) []byte {
	dst = append(dst, '{')
	for i, c := range d.cols {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = jsontext.AppendQuote(dst, c.Name)
		dst = append(dst, ':')
		if values[i] == nil {
			dst = append(dst, "null"...)
			continue
		}
		dst, _ = jsontext.AppendQuote(dst, letterText(c.OID, values[i])) // replaces what is not UTF-8
	}
	return append(dst, '}')
}

// letterText is a value for a person to read; one that is not well formed is shown as bytea is, in hexadecimal.
func letterText(oid uint32, v []byte) []byte {
	switch oid {
	case oidInt2, oidInt4, oidInt8:
		if n, ok := intColumn(v); ok {
			return strconv.AppendInt(nil, n, 10)
		}
	case oidTimestamp, oidTimestamptz:
		if len(v) == 8 {
			return timestampText(v)
		}
	default:
		if text, ok := columnText(nil, oid, v); ok && utf8.Valid(text) {
			return text
		}
	}
	return append([]byte(`\x`), hex.EncodeToString(v)...)
}

// timestampText is a binary timestamp in RFC 3339, or what Postgres calls the two that are not instants. What lies outside the years 1 to 9999
// is given as Postgres counts it.
func timestampText(v []byte) []byte {
	if t, ok := readTimestamp(v); ok {
		return []byte(t.String())
	}
	switch n, _ := intColumn(v); n {
	case 1<<63 - 1:
		return []byte("infinity")
	case -1 << 63:
		return []byte("-infinity")
	default:
		return strconv.AppendInt(nil, n, 10)
	}
}
