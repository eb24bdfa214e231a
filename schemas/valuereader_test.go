package schemas

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"
)

func TestAValueIsReadBackAsItsRow(t *testing.T) {
	for _, r := range load(t).All() {
		for _, g := range readGolden(t, r) {
			rec := mustParse(t, r.Name, string(g.Row))
			checkRecord(t, r, rec)
		}
	}
}

func TestPersonalValuesAreMaskedAndMoneyIsPrintedExactly(t *testing.T) {
	read := func(resource, row string) Value {
		v, err := NewValueReader(load(t).Get(resource), "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Read(mustParse(t, resource, row).Value)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	user := read("users", `{"id":1,"first_name":"Ana","last_name":null,"email":"","age":30,"city":"a\"b\n",`+
		`"latitude":-9.5,"longitude":1e-7,`+times+`}`)
	const masked = `{"id":1,"first_name":"***","last_name":null,"email":"***","age":"***","gender":null,` +
		`"state":null,"street_address":null,"postal_code":null,"city":"***","country":null,"latitude":"***",` +
		`"longitude":"***","traffic_source":null,"created_at":"2026-11-20T17:02:31Z",` +
		`"updated_at":"2026-11-20T17:02:31.123Z"}`
	if got := string(user.AppendJSON(nil, true)); got != masked {
		t.Errorf("got  %s\nwant %s", got, masked)
	}
	const shown = `x{"id":1,"first_name":"Ana","last_name":null,"email":"",`
	if got := string(user.AppendJSON([]byte("x"), false)); !strings.HasPrefix(got, shown) {
		t.Error(got)
	}
	order := read("orders", `{"id":1,"total_amount":-12345678901234567890.12345678901234567800,`+times+`}`)
	const amount = `"total_amount":-12345678901234567890.123456789012345678,`
	if got := string(order.AppendJSON(nil, true)); !strings.Contains(got, amount) {
		t.Error(got)
	}
}

const millis = `{"type":"long","logicalType":"timestamp-millis"}`

const timeFields = `{"name":"created_at","type":` + millis + `},{"name":"updated_at","type":` + millis + `}`

// oldSchema is a schema of orders with these fields between id and the times.
func oldSchema(fields string) string {
	return `{"type":"record","name":"Order","namespace":"storestream","fields":[{"name":"id","type":"long"},` +
		fields + timeFields + `]}`
}

// write encodes a row under another schema, by another implementation.
func write(t *testing.T, schema string, row map[string]any) []byte {
	t.Helper()
	b, err := avro.MustParse(schema).AppendEncode(make([]byte, HeaderSize), row)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A successor after a schema change must recognise the rows that were published before it. So the hash is
// that of the row as today's schema encodes it.
func TestAValueOfAnOlderSchemaHasTheHashOfTheSameRowToday(t *testing.T) {
	r := load(t).Get("orders")
	at := MinInstant
	_ = at.UnmarshalText([]byte("2026-11-20T17:02:31.123Z"))
	const times = `"created_at":"2026-11-20T17:02:31.123Z","updated_at":"2026-11-20T17:02:31.123Z"}`
	today := mustParse(t, "orders", `{"id":7,"user_id":12,"status":"Shipped","total_amount":49.5,`+times)
	bare := mustParse(t, "orders", `{"id":7,`+times)
	for name, c := range map[string]struct {
		schema string
		row    map[string]any
		want   Record
	}{
		"today's, other docs": {strings.ReplaceAll(r.ValueSchema(), "Owning user.", "Who."),
			map[string]any{"user_id": int64(12), "status": "Shipped", "total_amount": json.Number("49.5")}, today},
		"fewer fields": {oldSchema(""), nil, bare},
		"all null": {r.ValueSchema() + " ", map[string]any{"user_id": nil, "status": nil, "total_amount": nil},
			bare},
		"narrower types, other order, not nullable": {oldSchema(`
			{"name":"total_amount","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
			{"name":"status","type":"string"},{"name":"user_id","type":"long"},`),
			map[string]any{"user_id": int64(12), "status": "Shipped", "total_amount": json.Number("49.50")}, today},
		"fields that are gone": {oldSchema(`
			{"name":"tag","type":["null","string"]},{"name":"last","type":["null",` + millis + `]},
			{"name":"n","type":["null","long"]},{"name":"d","type":["null","double"]},
			{"name":"fee","type":["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}]},`),
			map[string]any{"tag": "a", "last": at.Time(), "n": nil, "d": 1.5, "fee": json.Number("1.25")}, bare},
	} {
		row := map[string]any{"id": int64(7), "created_at": at.Time(), "updated_at": at.Time()}
		for k, v := range c.row {
			row[k] = v
		}
		v, err := NewValueReader(r, c.schema)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := v.Read(write(t, c.schema, row))
		if err != nil || got.Hash != Hash(c.want.Value) || got.ID != 7 || got.UpdatedAt != at ||
			got.CreatedAt != at {
			t.Errorf("%s: %+v, %v\n got %x\nwant %x", name, got, err, got.body, c.want.Value[HeaderSize:])
		}
	}
}

// A schema whose field has another type, or may be null, can be registered where the subject takes anything.
func TestAValueThatDoesNotFitTodaysTypeIsNotRead(t *testing.T) {
	for _, c := range []struct {
		field string
		value any
		want  string // "": it is read
	}{
		{`{"name":"total_amount","type":"long"}`, int64(7), "is an integer: expected a type that converts"},
		{`{"name":"total_amount","type":{"type":"bytes","logicalType":"decimal","precision":38,"scale":19}}`,
			json.Number("0.0000000000000000001"), "field total_amount: expected a decimal"},
		{`{"name":"latitude","type":"long"}`, int64(-23), ""},
		{`{"name":"latitude","type":"string"}`, "-23", "is a string: expected a type that converts to a double"},
		{`{"name":"id","type":["null","long"]}`, nil, "field id: expected an integer of 64 bits, found null"},
	} {
		resource, name := "orders", strings.Split(c.field, `"`)[3]
		if name == "latitude" {
			resource = "users"
		}
		id := `{"name":"id","type":"long"},`
		if name == "id" {
			id = ""
		}
		schema := `{"type":"record","name":"R","fields":[` + id + c.field + `,` + timeFields + `]}`
		at := time.UnixMilli(1)
		row := map[string]any{"id": int64(7), "created_at": at, "updated_at": at, name: c.value}
		reader, err := NewValueReader(load(t).Get(resource), schema)
		var got Value
		if err == nil {
			got, err = reader.Read(write(t, schema, row))
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %+v, %v, expected %q", c.field, got, err, c.want)
		}
		if c.want == "" && (err != nil ||
			!strings.Contains(string(got.AppendJSON(nil, false)), `"latitude":-23,`)) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

// Fields of one type in another order look the same byte by byte.
func TestFieldsAreMatchedByTheirNamesAndNotByTheirPlaces(t *testing.T) {
	r := load(t).Get("shipments")
	const older = `{"type":"record","name":"Shipment","fields":[{"name":"id","type":"long"},
		{"name":"order_id","type":["null","long"]},{"name":"delivered_at","type":["null",` + millis + `]},
		{"name":"shipped_at","type":["null",` + millis + `]},
		{"name":"returned_at","type":["null",` + millis + `]},` +
		timeFields + `]}`
	at := time.Date(2026, 11, 20, 17, 2, 31, 0, time.UTC)
	value := write(t, older, map[string]any{"id": int64(7), "order_id": nil, "delivered_at": at.Add(time.Hour),
		"shipped_at": at, "returned_at": nil, "created_at": at, "updated_at": at})
	got, err := mustReader(t, r, older).Read(value)
	if err != nil {
		t.Fatal(err)
	}
	const want = `"shipped_at":"2026-11-20T17:02:31Z","delivered_at":"2026-11-20T18:02:31Z"`
	if row := string(got.AppendJSON(nil, false)); !strings.Contains(row, want) {
		t.Errorf("%s, expected %s", row, want)
	}
}

func TestASchemaThatStorestreamCannotHaveWrittenIsRefusedByItsField(t *testing.T) {
	r := load(t).Get("orders")
	const order = `{"type":"record","name":"Order","fields":[`
	for _, c := range []struct{ schema, want string }{
		{"{", "schema that orders was written under"},
		{`"string"`, "no field id"},
		{oldSchema(`{"name":"status","type":"int"},`), "field status: expected \"long\", "},
		{oldSchema(`{"name":"total_amount","type":["null","double"]},`), "field total_amount is a double"},
		{oldSchema(`{"name":"user_id","type":["null","long","string"]},`), "field user_id: expected"},
		{oldSchema(`{"name":"user_id","type":["long","null"]},`), "field user_id: expected"},
		{oldSchema(`{"name":"tags","type":{"type":"array","items":"string"}},`), "field tags: expected"},
		{order + `{"name":"id","type":"long"}]}`, "no field created_at"},
	} {
		if _, err := NewValueReader(r, c.schema); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.schema, err, c.want)
		}
	}
}

// Any producer may have written the values of a topic. So the reader does not believe lengths and counts, and
// does not allocate by them.
func TestAValueThatIsNoneIsAnErrorWhateverItClaims(t *testing.T) {
	r := load(t).Get("orders")
	good := mustParse(t, "orders", `{"id":7,"status":"Shipped","total_amount":49.5,`+times+`}`).Value
	for n := range good {
		if _, err := mustReader(t, r, "").Read(good[:n]); err == nil {
			t.Errorf("cut off at %d of %d bytes, and read", n, len(good))
		}
	}
	branch := mustParse(t, "orders", `{"id":7,"user_id":12,`+times+`}`).Value
	branch[HeaderSize+1] = 4
	huge := binary.AppendVarint([]byte{0, 0, 0, 0, 0, 14, 0, 2}, 1<<62)
	for name, bad := range map[string][]byte{
		"branch 2 of two": branch,
		"a byte more":     append(bytes.Clone(good), 0), "magic byte 1": append([]byte{1}, good[1:]...),
		"a string of 2^62 bytes": huge,
		"a negative length":      {0, 0, 0, 0, 0, 14, 0, 2, 1}, "branch 2": {0, 0, 0, 0, 0, 14, 4},
		"an endless varint": append(make([]byte, 5), bytes.Repeat([]byte{0xff}, 20)...),
		"a year of 300000":  append(binary.AppendVarint([]byte{0, 0, 0, 0, 0, 14, 0, 0, 0}, 1<<53), 0),
	} {
		if got, err := mustReader(t, r, "").Read(bad); err == nil {
			t.Errorf("%s was read as %+v", name, got)
		}
	}
}

func mustReader(t testing.TB, r *Resource, schema string) *ValueReader {
	t.Helper()
	v, err := NewValueReader(r, schema)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Another decoder may be more lenient, never less: what one of the libraries refuses is refused here.
func FuzzReadValue(f *testing.F) {
	set := load(f)
	other := oldSchema(`{"name":"x","type":["null","double"]},
		{"name":"total_amount","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
		{"name":"user_id","type":"long"},`)
	for i, r := range set.All() {
		for _, g := range readGolden(f, r) {
			f.Add(byte(i), mustParse(f, r.Name, string(g.Row)).Value)
		}
	}
	today := map[string]*avro.Schema{}
	for _, r := range set.All() {
		today[r.Name] = avro.MustParse(r.ValueSchema())
	}
	f.Fuzz(func(t *testing.T, resource byte, value []byte) {
		r := pick(set, resource)
		got, err := mustReader(t, r, "").Read(value)
		if err == nil {
			var fields map[string]any
			rest, err := today[r.Name].Decode(value[HeaderSize:], &fields)
			if err != nil && !strings.Contains(err.Error(), "UTF-8") ||
				err == nil && (len(rest) > 0 || fields["id"] != got.ID) {
				t.Fatalf("%x: twmb/avro reads %v, %v", value, fields, err)
			}
			if !json.Valid(got.AppendJSON(nil, true)) {
				t.Fatalf("%x is printed as %s", value, got.AppendJSON(nil, true))
			}
		}
		_, _ = mustReader(t, set.Get("orders"), other).Read(value)
	})
}
