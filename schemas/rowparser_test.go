package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const times = `"created_at":"2026-11-20T17:02:31Z","updated_at":"2026-11-20T17:02:31.123456Z"`

// parseOne parses one row with a parser of its own.
func parseOne(t testing.TB, resource, row string) (Record, *Reject) {
	t.Helper()
	return NewRowParser(load(t).Get(resource)).Parse([]byte(row))
}

// mustParse is a row that must be good.
func mustParse(t testing.TB, resource, row string) Record {
	t.Helper()
	rec, rej := parseOne(t, resource, row)
	if rej != nil {
		t.Fatalf("%s: %s: %s", row, rej.Field, rej.Err)
	}
	return rec
}

func TestARowKeepsItsIDAndTheMicrosecondsOfItsUpdate(t *testing.T) {
	rec := mustParse(t, "orders", `{"id":42,`+times+`}`)
	if rec.ID != 42 || rec.UpdatedAt.String() != "2026-11-20T17:02:31.123456Z" {
		t.Errorf("%d, %s", rec.ID, rec.UpdatedAt)
	}
}

func TestRowsThatSayTheSameEncodeTheSame(t *testing.T) {
	want := mustParse(t, "orders", `{"id":1,"user_id":12,"status":"Shipped","total_amount":49.5,`+times+`}`)
	for _, row := range []string{
		`{` + times + `,"total_amount":"49.50","status":"Shipped","user_id":12,"id":1}`,
		" {\n\t\"id\" : 1 , \"user_id\" : 12.0, \"status\":\"Shipped\", \"total_amount\": 4.95E+1, " + times +
			"}\r\n ",
		`{"id":"1","user_id":"12","status":"\u0053hipped","total_amount":495e-1,` + times + `}`,
		`{"i\u0064":1,"user_id":1.2e1,"status":"Shipped","total_amount":49.500000000000000000000000,` +
			`"channel":{"a":[1,{"b":null}]},` + times + `}`,
		`{"id":1,"user_id":12,"status":"Shipped","total_amount":49.5,` +
			`"created_at":"2026-11-20 17:02:31","updated_at":"2026-11-20T18:02:31.123456\u002b01:00"}`,
	} {
		if got := mustParse(t, "orders", row); !bytes.Equal(got.Value, want.Value) || got.ID != want.ID ||
			got.UpdatedAt != want.UpdatedAt {
			t.Errorf("%s\n got %x\nwant %x", row, got.Value, want.Value)
		}
	}
}

func TestAMissingNullableFieldIsNull(t *testing.T) {
	missing := mustParse(t, "orders", `{"id":1,`+times+`}`)
	null := mustParse(t, "orders", `{"id":1,"user_id":null,"status":null,"total_amount":null,`+times+`}`)
	if !bytes.Equal(missing.Value, null.Value) {
		t.Errorf("%x and %x", missing.Value, null.Value)
	}
}

func TestARowThatBreaksTheContractIsRejectedByItsFieldAndWithoutItsValue(t *testing.T) {
	const good = MinInstant + 1 // stands for the row's own updated_at
	updated := mustParse(t, "users", `{"id":1,`+times+`}`).UpdatedAt
	for _, c := range []struct {
		resource, row, field, err string
		hasID                     bool
		updatedAt                 Instant
	}{
		{"users", `{` + times + `}`, "id", "missing", false, good},
		{"users", `{"id":null,` + times + `}`, "id", "found the JSON kind null", false, good},
		{"users", `{"id":"secret",` + times + `}`, "id", "integer", false, good},
		{"users", `{"id":1.5,` + times + `}`, "id", "found the JSON kind number", false, good},
		{"users", `{"id":9223372036854775808,` + times + `}`, "id", "integer of 64 bits", false, good},
		{"users", `{"id":1,"id":2,` + times + `}`, "id", "twice", false, good},
		{"users", `{"id":7,"created_at":"2026-11-20T17:02:31Z"}`, "updated_at", "missing", true, MinInstant},
		{"users", `{"id":7,"created_at":"2026-11-20T17:02:31Z","updated_at":null}`, "updated_at",
			"found the JSON kind null", true, MinInstant},
		{"users", `{"id":7,"created_at":"2026-11-20T17:02:31Z","updated_at":"2026-11-20"}`, "updated_at",
			"RFC 3339", true, MinInstant},
		{"users", `{"id":7,"created_at":"2026-11-20T17:02:31Z","updated_at":"0000-11-20T00:00:00Z"}`, "updated_at",
			"0001-01-01", true, MinInstant},
		{"users", `{"id":7,"created_at":"2026-11-20T17:02:31Z","updated_at":"2016-12-31T23:59:60Z"}`, "updated_at",
			"without a leap second", true, MinInstant},
		{"shipments", `{"id":7,"shipped_at":"2016-13-31T23:59:60Z",` + times + `}`, "shipped_at",
			"found the JSON kind string", true, good},
		{"users", `{"id":7,"created_at":"2026-11-20T17:02:31Z","updated_at":1795194151}`, "updated_at",
			"the JSON kind number", true, MinInstant},
		{"users", `{"id":7,"email":["secret"],` + times + `}`, "email", "found the JSON kind [", true, good},
		{"users", `{"id":7,"email":{"a":"secret"},` + times + `}`, "email", "found the JSON kind {", true, good},
		{"users", `{"id":7,"email":true,` + times + `}`, "email", "found the JSON kind true", true, good},
		{"users", `{"id":7,"postal_code":1234,` + times + `}`, "postal_code", "found the JSON kind number", true,
			good},
		{"users", "{\"id\":7,\"email\":\"secret\xe9\"," + times + `}`, "email",
			"found a byte that is not UTF-8 at byte 23 (0xe9)", true, good},
		{"users", `{"id":7,"email":"secret\ud83dsecret",` + times + `}`, "email",
			`found an escape without its other half at byte 23 (\ud83d)`, true, good},
		{"users", `{"id":7,"email":"secret\ude00",` + times + `}`, "email", `other half at byte 23 (\ude00)`, true,
			good},
		{"users", `{"id":7,"email":"secret\x\ud83d",` + times + `}`, "email", "found the JSON kind string", true,
			good},
		{"users", `{"id":7,"email":"secret","email":"secret",` + times + `}`, "email", "twice", true, good},
		{"users", `{"id":7,"email":"secret","email":null,` + times + `}`, "email", "twice", true, good},
		{"users", `{"id":7,"latitude":"secret",` + times + `}`, "latitude", "finite number", true, good},
		{"users", `{"id":7,"latitude":1e999,` + times + `}`, "latitude", "finite number", true, good},
		{"users", `{"id":7,"latitude":"Nan0",` + times + `}`, "latitude", "finite number", true, good},
		{"users", `{"id":NaN,` + times + `}`, "id", `found "NaN", which is no value at byte 6`, false, good},
		{"users", `{"id":false,` + times + `}`, "id", `found "false", which is no value at byte 6`, false, good},
		{"users", `{"id":7,"created_at":NaN,"updated_at":"2026-11-20T17:02:31.123456Z"}`, "created_at",
			`found "NaN", which is no value at byte 21`, true, good},
		{"users", `{"id":7,"created_at":"2026-11-20T17:02:31Z","updated_at":""}`, "updated_at",
			`found "", which is no value at byte 57`, true, MinInstant},
		{"users", `{"id":7,"age":1,"age":NaN,` + times + `}`, "age", "found it again at byte 22", true, good},
		{"users", `{"id":7,"latitude":"0x1p4",` + times + `}`, "latitude", "finite number", true, good},
		{"users", `{"id":7,"age":12.5,` + times + `}`, "age", "integer", true, good},
		{"users", `{"id":7,"age":"",` + times + `}`, "age", "integer", true, good},
		{"orders", `{"id":7,"total_amount":1e20,` + times + `}`, "total_amount",
			"at most 20 digits before the point and 18 after", true, good},
		{"orders", `{"id":7,"total_amount":0.1234567890123456789,` + times + `}`, "total_amount", "18 after", true,
			good},
		{"orders", `{"id":7,"total_amount":1e999999999,` + times + `}`, "total_amount", "20 digits", true, good},
		{"orders", `{"id":7,"total_amount":"secret",` + times + `}`, "total_amount", "decimal number", true, good},
		{"shipments", `{"id":7,"shipped_at":"never",` + times + `}`, "shipped_at", "RFC 3339", true, good},
	} {
		rec, rej := parseOne(t, c.resource, c.row)
		if rej == nil {
			t.Errorf("%s was taken as %x", c.row, rec.Value)
			continue
		}
		if c.updatedAt == good {
			c.updatedAt = updated
		}
		if rej.Field != c.field || !strings.Contains(rej.Err, c.err) || rej.HasID != c.hasID ||
			rej.UpdatedAt != c.updatedAt || c.hasID && rej.ID != 7 {
			t.Errorf("%s: field %s: %s; id %d %v, updated at %s", c.row, rej.Field, rej.Err, rej.ID, rej.HasID,
				rej.UpdatedAt)
		}
		if strings.Contains(string(rej.Row)+rej.Err, "secret") {
			t.Errorf("%s: %s; row %s", c.row, rej.Err, rej.Row)
		}
	}
}

func TestWhatIsNotOneJSONObjectIsRejectedAsARow(t *testing.T) {
	for row, hasID := range map[string]bool{``: false, `null`: false, `[]`: false, `"id"`: false, `{`: false,
		`{"id":7`: false, `{"id":7,`: true, `{"id":7,"status"`: true, `{"id":7,"x":"\q",` + times + `}`: true,
		`{"id":7,` + times + `} {}`: true, `{"id":7,` + times + `}x`: true, `{"id":7,'status':1}`: true,
		`{id:7}`: false, `{"id":7,"x":"a` + "\n" + `"}`: true, `{"id":7 "status":"x"}`: true, `{"id":7,}`: true,
		`{"id":7,"x":` + strings.Repeat("[", 1_000_000): true, `{"id":7,"x":nul}`: true, `{"id":7,"x":07}`: true,
		`{"id":,"x":1}`: false, `{"status":"x";"id":7}`: false, `{"id\q":7,` + times + `}`: false} {
		_, rej := parseOne(t, "orders", row)
		if rej == nil || rej.Field != "" || rej.HasID != hasID || hasID && rej.ID != 7 {
			t.Errorf("%.40s: %+v", row, rej)
		}
	}
}

// Of a value in a known field it takes what has one meaning, and no more.
func TestAValueThatIsNoJSONIsRejectedByItsField(t *testing.T) {
	for value, rejected := range map[string]bool{`"\q"`: true, `+1`: true, `.5`: true, `NaN`: false,
		`+NaN`: true, `nul`: true,
		"\"1\n\"": true, `-`: true, `1e`: true, `true`: true, `007`: false, `1.`: false} {
		_, rej := parseOne(t, "orders", `{"id":7,"total_amount":`+value+`,`+times+`}`)
		if rejected != (rej != nil) || rejected && (rej.Field != "total_amount" || !json.Valid(rej.Row)) {
			t.Errorf("%s: %+v", value, rej)
		}
	}
}

// The row may be overwritten and other rows parsed while a Record is in flight.
func TestARecordOutlivesTheBufferItCameFromAndTheRowsAfterIt(t *testing.T) {
	p := NewRowParser(load(t).Get("orders"))
	raw := make([]byte, 0, 4096)
	var recs []Record
	var want []string
	for i := range 30_000 { // more than one chunk of memory
		raw = fmt.Appendf(raw[:0], `{"id":%d,"status":"%s",%s}`, i, strings.Repeat("x", i%50), times)
		rec, rej := p.Parse(raw)
		if rej != nil {
			t.Fatal(rej.Field, rej.Err)
		}
		recs = append(recs, rec)
		want = append(want, string(rec.Value))
		SetSchemaID(rec.Value, 7)
		if i%7 == 1 {
			_ = append(recs[i-1].Value, "over the edge"...)
			_, _ = p.Parse([]byte(`{"id":1,"status":"rejected","total_amount":{},` + times + `}`))
		}
	}
	for i, rec := range recs {
		if string(rec.Value[HeaderSize:]) != want[i][HeaderSize:] {
			t.Fatalf("record %d changed", i)
		}
	}
}

func TestUnknownFieldsAreReturnedOnceAndTheirNumberIsBounded(t *testing.T) {
	p := NewRowParser(load(t).Get("orders"))
	for range 3 {
		if _, rej := p.Parse([]byte(`{"id":1,"channel":"web","cha\u006enel":1,"bad` + "\xff" + `":1,` + times +
			`}`)); rej != nil {
			t.Fatal(rej.Field, rej.Err)
		}
	}
	if got := p.Unknown(); !slices.Equal(got, []string{"channel", "bad\xff"}) {
		t.Errorf("%q", got)
	}
	if got := p.Unknown(); len(got) > 0 {
		t.Errorf("drained, and %q again", got)
	}
	for i := range 10_000 {
		_, _ = p.Parse(fmt.Appendf(nil, `{"id":1,"%d%s":1,%s}`, i, strings.Repeat("n", 10*(i%20)), times))
	}
	names := p.Unknown()
	if len(names) != MaxUnknown-2 {
		t.Errorf("%d names remembered", len(names))
	}
	for _, name := range names {
		if len(name) > 64 {
			t.Errorf("a name of %d bytes remembered", len(name))
		}
	}
}

func TestParsingARowAllocatesNothing(t *testing.T) {
	p := NewRowParser(load(t).Get("users"))
	raw := []byte(benchUser)
	if n := testing.AllocsPerRun(5000, func() { _, _ = p.Parse(raw) }); n >= 1 {
		t.Errorf("%v allocations a row", n)
	}
}

// checkRecord checks what holds for every good Record: other readers agree, and the row printed as JSON is
// the same row.
func checkRecord(t *testing.T, r *Resource, rec Record) {
	t.Helper()
	v, err := NewValueReader(r, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Read(rec.Value)
	if err != nil || got.ID != rec.ID || got.UpdatedAt != InstantOfMillis(rec.UpdatedAt.Millis()) ||
		got.Hash != Hash(rec.Value) {
		t.Fatalf("%x reads as %+v, %v; expected %+v", rec.Value, got, err, rec)
	}
	for reader, fields := range decodeElsewhere(t, r, rec.Value) {
		if fields["id"] != rec.ID {
			t.Fatalf("%s reads id %v from %x, expected %d", reader, fields["id"], rec.Value, rec.ID)
		}
	}
	printed := got.AppendJSON(nil, false)
	again, rej := NewRowParser(r).Parse(printed)
	if rej != nil || !bytes.Equal(again.Value[HeaderSize:], rec.Value[HeaderSize:]) {
		t.Fatalf("printed as %s, which is %x, %+v; expected %x", printed, again.Value, rej, rec.Value)
	}
}

// checkScan compares the scan of a row with jsontext: whether it is one well-formed object, and where the
// values of its fields stand. The scan leaves it to the codecs to check these, which take a number that
// begins with 0 or ends with a point, and nothing else that jsontext does not.
func checkScan(t *testing.T, r *Resource, row []byte) {
	t.Helper()
	p, other := NewRowParser(r), NewRowParser(r)
	_, rej := p.Parse(row)
	for i, s := range p.spans {
		if s.plain && bytes.ContainsFunc(row[s.start+1:s.end-1],
			func(c rune) bool { return c < ' ' || c > '~' && c != 0x7f || c == '\\' || c == '"' }) {
			t.Fatalf("%q is not plain ASCII", row[s.start:s.end])
		}
		p.spans[i].plain = false
	}
	if scanByJSONText(other, row) {
		if !slices.Equal(p.spans, other.spans) || !slices.Equal(p.fresh, other.fresh) ||
			rej != nil && rej.Field == "" {
			t.Fatalf("%q: fields at %+v, unknown %q, %+v; expected %+v and %q", row, p.spans, p.fresh, rej,
				other.spans, other.fresh)
		}
		return
	}
	if rej != nil {
		return
	}
	for _, s := range p.spans {
		value := row[s.start:s.end]
		if _, err := strconv.ParseFloat(string(value), 64); err != nil && len(value) > 0 && !wellFormed(value) {
			t.Fatalf("%q is taken with the value %q", row, value)
		}
	}
}

func TestValuesMayBeNestedAsDeeplyAsInJSONText(t *testing.T) {
	for _, depth := range []int{9_999, 10_000} { // the row is one more
		row := `{"id":1,"x":` + strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth) + `,` + times + `}`
		checkScan(t, load(t).Get("orders"), []byte(row))
	}
}

// scanByJSONText is RowParser.scan by another reader of JSON.
func scanByJSONText(p *RowParser, row []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(row), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return false
	}
	_, _ = d.ReadToken()
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return false
		}
		i := p.lookUp(bytes.Clone(name), len(p.spans))
		value, err := d.ReadValue()
		if err != nil {
			return false
		}
		end := int(d.InputOffset())
		if follows := d.PeekKind(); follows != '"' && follows != '}' {
			return false
		}
		if i >= 0 {
			p.spans[i] = span{start: end - len(value), end: end, twice: p.spans[i].end > 0}
		}
	}
	if token, err := d.ReadToken(); err != nil || token.Kind() != '}' {
		return false
	}
	_, err := d.ReadToken()
	return errors.Is(err, io.EOF)
}

func FuzzRowParser(f *testing.F) {
	set := load(f)
	for i, r := range set.All() {
		for _, g := range readGolden(f, r) {
			f.Add(byte(i), []byte(g.Row))
		}
	}
	f.Add(byte(0), []byte(`{"id":1,"id":2,"status":"\ud800","x":[[[[]]]],"total_amount":1e999999999}`))
	for _, odd := range []string{`{"id":01}`, `{"id":1.}`, `{"id":-}`, `{"id":1e+}`, `{"id":1,}`,
		`{"id":1 "x":2}`, `{"id":1}}`, `{"x":"\u00e9\u00E9"}`, `{"x":"\u00eg"}`,
		`{"x":"\u00e` + "\x19" + `"}`, `{"x":"\u00e"}`, `{"x":"\`, `{"x":"\/\b\f\n\r\t\\\""}`, `{"x":"\a"}`,
		"{\"x\":\"\t\"}", `{"x":nul}`, `{"id"}`, `{,}`} {
		f.Add(byte(0), []byte(odd))
	}
	f.Fuzz(func(t *testing.T, resource byte, row []byte) {
		r := pick(set, resource)
		before := string(row)
		checkScan(t, r, row)
		rec, rej := NewRowParser(r).Parse(row)
		if string(row) != before {
			t.Fatal("the row was written to")
		}
		if rej == nil {
			checkRecord(t, r, rec)
		} else if !json.Valid(rej.Row) || rej.Err == "" {
			t.Fatalf("%+v, row %q", rej, rej.Row)
		}
	})
}
