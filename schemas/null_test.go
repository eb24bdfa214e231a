package schemas

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

func TestWhatIsNoValueIsNullWhereAFieldMayBeNull(t *testing.T) {
	for _, c := range []struct {
		resource, field string
		null, other     []string // other texts of the field are rejected, or are values
	}{
		{"orders", "total_amount", []string{`NaN`, `Infinity`, `-Infinity`, `"NaN"`, `"nan"`, `"-inf"`,
			`"+Infinity"`, `false`},
			[]string{`""`, `"null"`, `"None"`, `"-"`, `"N/A"`, `1`, `"NaN "`, `NaN1`, `true`}},
		{"orders", "user_id", []string{`NaN`, `"Infinity"`, `false`}, []string{`""`, `"0000-00-00"`, `7`}},
		{"users", "latitude", []string{`NaN`, `-Infinity`, `"NaN"`, `false`}, []string{`""`, `1e999`, `1`}},
		{"users", "email", []string{`NaN`, `Infinity`, `-Infinity`, `false`}, []string{`"NaN"`, `""`, `"Infinity"`,
			`nan`, `"false"`, `true`, `False`}},
		{"shipments", "shipped_at", []string{`NaN`, `false`, `""`, `"NaT"`, `"infinity"`, `"-infinity"`,
			`"0000-00-00"`,
			`"0000-00-00 00:00:00"`, `"0000-00-00T00:00:00Z"`, `"0000-00-00 00:00:00.000000"`},
			[]string{`"0000-00-01"`, `"0000-00-00 00:00:01"`, `"null"`, `"N/A"`, `0`, "\"\xff\"", `" "`}},
	} {
		p := NewRowParser(load(t).Get(c.resource))
		row := func(value string) []byte { return []byte(`{"id":7,"` + c.field + `":` + value + `,` + times + `}`) }
		null, _ := p.Parse(row("null"))
		if len(p.Nulls()) > 0 {
			t.Error("null needs no reading")
		}
		for _, value := range c.null {
			got, rej := p.Parse(row(value))
			if rej != nil || !bytes.Equal(got.Value, null.Value) {
				t.Errorf("%s %s is not null: %+v", c.field, value, rej)
			}
		}
		if got := p.Nulls(); !maps.Equal(got, map[string]int{c.field: len(c.null)}) || len(p.Nulls()) > 0 {
			t.Errorf("counted %v of %d values of %s", got, len(c.null), c.field)
		}
		for _, value := range c.other {
			if got, rej := p.Parse(row(value)); rej == nil && bytes.Equal(got.Value, null.Value) {
				t.Errorf("%s %s was taken for null", c.field, value)
			}
		}
	}
}

// A field that the schema does not know harms no row, whatever its value is. A fault in its JSON does: the
// fields behind it may be wrong.
func TestAnUnknownFieldMayBeNaN(t *testing.T) {
	for value, good := range map[string]bool{`NaN`: true, `-Infinity`: true, `{"a":[NaN,Infinity,"NaN"]}`: true,
		`NaN1`: false, `[NaN`: false, `{"a":NaN,}`: false, `None`: false} {
		_, rej := parseOne(t, "orders", `{"id":7,"status":"Shipped","extra":`+value+`,`+times+`}`)
		if (rej == nil) != good || rej != nil && !strings.Contains(rej.Err, " at byte ") {
			t.Errorf("%s: %+v", value, rej)
		}
	}
}

// PostgreSQL's values come in binary, and as texts in a table that a data frame library has loaded.
func TestWhatIsNoValueInAColumnIsNullToo(t *testing.T) {
	double := func(n float64) []byte { return binary.BigEndian.AppendUint64(nil, math.Float64bits(n)) }
	values := orderValues(t)
	values[3] = nil
	null, _ := decoder(t, orderColumns).Decode(values)
	for name, c := range map[string]struct {
		oid   uint32
		value []byte
	}{
		"numeric":             {pgtype.NumericOID, binaryOf(t, pgtype.NumericOID, "NaN")},
		"an infinite numeric": {pgtype.NumericOID, binaryOf(t, pgtype.NumericOID, "-Infinity")},
		"float8":              {pgtype.Float8OID, double(math.NaN())},
		"an infinite float8":  {pgtype.Float8OID, double(math.Inf(-1))},
		"float4":              {pgtype.Float4OID, []byte{0x7f, 0x80, 0, 0}}, // infinite
		"text":                {pgtype.TextOID, []byte("nan")},
	} {
		cols := append(orderColumns[:0:0], orderColumns...)
		cols[3].DataTypeOID = c.oid
		d := decoder(t, cols)
		values[3] = c.value
		got, rej := d.Decode(values)
		if rej != nil || !bytes.Equal(got.Value, null.Value) || d.Nulls()["total_amount"] != 1 {
			t.Errorf("%s: %+v", name, rej)
		}
	}
}

func TestAReasonIsTheSameInEveryPlaceOfARow(t *testing.T) {
	var reasons []string
	for _, field := range []string{`"user_id":1`, `"user_id":123456`} {
		_, rej := parseOne(t, "orders", `{"id":7,`+field+`,"total_amount":true,`+times+`}`)
		reasons = append(reasons, Reason(rej.Err))
	}
	if reasons[0] != reasons[1] || !strings.HasSuffix(reasons[0], "found the JSON kind true") {
		t.Errorf("%q", reasons)
	}
}
