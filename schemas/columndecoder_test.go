package schemas

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/internal/rounds"
	"pgregory.net/rapid"
)

const enumOID = 16999 // a type that a user created

// orderColumns are a table of orders as one would declare it.
var orderColumns = []column{col("id", pgtype.Int8OID), col("user_id", pgtype.Int4OID), col("status", enumOID),
	col("total_amount", pgtype.NumericOID),
	col("created_at", pgtype.TimestamptzOID), col("updated_at", pgtype.TimestampOID)}

// decoder is a decoder for orders.
func decoder(t testing.TB, cols []column) *ColumnDecoder {
	t.Helper()
	d, err := NewColumnDecoder(load(t).Get("orders"), cols)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// orderValues is a good row for orderColumns.
func orderValues(tb testing.TB) [][]byte {
	tb.Helper()
	at := time.Date(2026, 11, 20, 17, 2, 31, 123456000, time.UTC)
	return [][]byte{binaryOf(tb, pgtype.Int8OID, 7), binaryOf(tb, pgtype.Int4OID, 12), []byte("Shipped"),
		binaryOf(tb, pgtype.NumericOID, "49.50"),
		binaryOf(tb, pgtype.TimestamptzOID, at.Truncate(time.Second)), binaryOf(tb, pgtype.TimestampOID, at)}
}

func TestTheSameRowFromEitherSourceIsTheSameBytes(t *testing.T) {
	got, rej := decoder(t, orderColumns).Decode(orderValues(t))
	if rej != nil {
		t.Fatal(rej.Field, rej.Err)
	}
	want := mustParse(t, "orders", `{"id":7,"user_id":12,"status":"Shipped","total_amount":49.5,`+times+`}`)
	if !bytes.Equal(got.Value, want.Value) || got.ID != want.ID || got.UpdatedAt != want.UpdatedAt {
		t.Errorf("Postgres %d %s %x\nREST     %d %s %x", got.ID, got.UpdatedAt, got.Value, want.ID, want.UpdatedAt,
			want.Value)
	}
	checkRecord(t, load(t).Get("orders"), got)
}

// The same row with any values, in a table with any types. Floats are the shortest text that reads back, as
// Postgres and its JSON print them.
func TestRowsFromEitherSourceAreTheSameBytesWhateverTheColumnTypes(t *testing.T) {
	r := load(t).Get("order_items")
	rounds.Check(t, 100, func(t *rapid.T) {
		id := rapid.Int64().Draw(t, "id")
		quantity := rapid.Int16().Draw(t, "quantity")
		at := Instant(rapid.Int64Range(int64(MinInstant), int64(MaxInstant)).Draw(t, "at"))
		price := rapid.StringMatching(`-?(0|[1-9]\d{0,9})(\.\d{1,9})?`).Draw(t, "price")
		m := pgtype.NewMap()
		encode := func(oid uint32, v any) []byte {
			b, err := m.Encode(oid, pgtype.BinaryFormatCode, v, nil)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		quantityOID := rapid.SampledFrom([]uint32{pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID,
			pgtype.Float8OID, pgtype.TextOID}).Draw(t, "quantity type")
		var quantityBytes []byte
		switch quantityOID {
		case pgtype.TextOID:
			quantityBytes = strconv.AppendInt(nil, int64(quantity), 10)
		case pgtype.NumericOID:
			var n pgtype.Numeric
			_ = n.Scan(strconv.Itoa(int(quantity)))
			quantityBytes = encode(quantityOID, n)
		default:
			quantityBytes = encode(quantityOID, quantity)
		}
		var numeric pgtype.Numeric
		if err := numeric.Scan(price); err != nil {
			t.Fatal(err)
		}
		float := rapid.Float64Range(-1e6, 1e6).Draw(t, "amount")
		amountOID, amountText := uint32(pgtype.Float8OID), strconv.FormatFloat(float, 'g', -1, 64)
		amountBytes := encode(pgtype.Float8OID, float)
		if rapid.Bool().Draw(t, "float4") {
			float = float64(float32(float))
			amountOID, amountText = pgtype.Float4OID, strconv.FormatFloat(float, 'g', -1, 32)
			amountBytes = encode(pgtype.Float4OID, float32(float))
		}
		d, err := NewColumnDecoder(r, []column{col("updated_at", pgtype.TimestampOID), col("id", pgtype.Int8OID),
			col("quantity", quantityOID), col("sale_price", pgtype.NumericOID), col("amount", amountOID),
			col("created_at", pgtype.TimestamptzOID), col("order_id", pgtype.Int8OID)})
		if err != nil {
			t.Fatal(err)
		}
		fromPostgres, rej1 := d.Decode([][]byte{encode(pgtype.TimestampOID, at.Time()), encode(pgtype.Int8OID, id),
			quantityBytes,
			encode(pgtype.NumericOID, numeric), amountBytes, encode(pgtype.TimestamptzOID, at.Time()), nil})
		row := fmt.Sprintf(`{"id":%d,"order_id":null,"sale_price":%s,"quantity":%d,"amount":%s,`+
			`"created_at":"%s","updated_at":"%s"}`, id, price, quantity, amountText, at, at)
		fromREST, rej2 := NewRowParser(r).Parse([]byte(row))
		if (rej1 == nil) != (rej2 == nil) || rej1 != nil && rej1.Field != rej2.Field {
			t.Fatalf("%s: rejected by one: %+v, %+v", row, rej1, rej2)
		}
		if rej1 == nil && (!bytes.Equal(fromPostgres.Value, fromREST.Value) ||
			fromPostgres.UpdatedAt != fromREST.UpdatedAt || fromPostgres.ID != fromREST.ID) {
			t.Fatalf("%s:\n%x\n%x", row, fromPostgres.Value, fromREST.Value)
		}
	})
}

func TestADatabaseValueThatBreaksTheContractIsRejectedByItsField(t *testing.T) {
	infinity := binary.BigEndian.AppendUint64(nil, 1<<63-1)
	for _, c := range []struct {
		column  int
		value   []byte
		field   string
		err     string
		hasID   bool
		noTime  bool
		rowHold string
	}{
		{0, nil, "id", "found null", false, false, `"id":null`},
		{0, []byte{1}, "id", "int8 that does not fit", false, false, `"id":"\\x01"`},
		{2, []byte("\xffsecret"), "status", "UTF-8", true, false, `"status":"\\xff736563726574"`},
		{2, []byte("se\x00cret"), "status", "of OID 16999 that does not fit", true, false,
			`"status":"se\u0000cret"`},
		{3, binaryOf(t, pgtype.NumericOID, "123456789012345678901.5"), "total_amount", "20 digits", true, false,
			`"total_amount":"123456789012345678901.5"`},
		{3, binaryOf(t, pgtype.NumericOID, "-0.0000000000000000001"), "total_amount", "18 after", true, false,
			`"total_amount":"-0.0000000000000000001"`},
		{3, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, "total_amount", "decimal", true, false,
			`"total_amount":"\\x`},
		{4, infinity, "created_at", `found "infinity", which is no value`, true, false, `"created_at":"infinity"`},
		{5, infinity, "updated_at", `found "infinity", which is no value`, true, true, `"updated_at":"infinity"`},
		{5, nil, "updated_at", "found null", true, true, `"updated_at":null`},
	} {
		values := orderValues(t)
		values[c.column] = c.value
		rec, rej := decoder(t, orderColumns).Decode(values)
		if rej == nil {
			t.Errorf("%s: taken as %x", c.field, rec.Value)
			continue
		}
		if rej.Field != c.field || !strings.Contains(rej.Err, c.err) || rej.HasID != c.hasID ||
			c.hasID && rej.ID != 7 || (rej.UpdatedAt == MinInstant) != c.noTime {
			t.Errorf("%s: %+v", c.field, rej)
		}
		if !json.Valid(rej.Row) || !strings.Contains(string(rej.Row), c.rowHold) ||
			strings.Contains(rej.Err, "secret") {
			t.Errorf("%s: %s; row %s", c.field, rej.Err, rej.Row)
		}
	}
}

func TestARejectedRowIsAnObjectOfTexts(t *testing.T) {
	values := orderValues(t)
	values[4] = binary.BigEndian.AppendUint64(nil, 1<<63)
	_, rej := decoder(t, orderColumns).Decode(values)
	const want = `{"id":"7","user_id":"12","status":"Shipped","total_amount":"49.50",` +
		`"created_at":"-infinity","updated_at":"2026-11-20T17:02:31.123456Z"}`
	if rej == nil || string(rej.Row) != want {
		t.Errorf("got  %s\nwant %s", rej.Row, want)
	}
	if _, rej := decoder(t, orderColumns).Decode(values[:3]); rej == nil || rej.HasID {
		t.Errorf("three values for six columns: %+v", rej)
	}
}

func TestAFloatColumnsMoneyIsTheDecimalThatPostgresPrints(t *testing.T) {
	for _, c := range []struct {
		oid   uint32
		value any
		want  string
	}{
		{pgtype.Float8OID, 59.990001678466797, "59.9900016784668"}, // the shortest of its neighbours
		{pgtype.Float8OID, 2.51874985694885, "2.51874985694885"},
		{pgtype.Float4OID, float32(59.99), "59.99"},
		{pgtype.Float8OID, 0.30000000000000004, "0.30000000000000004"},
		{pgtype.Float8OID, math.Copysign(0, -1), "0"},
		{pgtype.Float8OID, 1e3, "1000"},
		{pgtype.Int2OID, int16(-5), "-5"},
		{pgtype.TextOID, "49.50", "49.5"},
	} {
		d, ok := columnDecimal(c.oid, binaryOf(t, c.oid, c.value), 38, 18)
		if got := printed(d, 18); !ok || got != c.want {
			t.Errorf("%v: %v %s, expected %s", c.value, ok, got, c.want)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e20, 1e-19, 5e-324} {
		if d, ok := columnDecimal(pgtype.Float8OID, pgFloat8(v), 38, 18); ok {
			t.Errorf("%v was taken as %+v", v, d)
		}
		if _, ok := columnLong(pgtype.Float8OID, pgFloat8(v)); ok && v != 1e20 {
			t.Errorf("%v was taken as an integer", v)
		}
	}
	float4 := binaryOf(t, pgtype.Float4OID, float32(0.1))
	if v, ok := doubleCodec.fromColumn(nil, pgtype.Float4OID, float4); !ok || readDouble(v) != 0.1 {
		t.Errorf("float4 0.1 is the double %v", readDouble(v)) // REST prints 0.1
	}
}

func TestATableThatCannotHoldTheResourceIsNamedColumnByColumn(t *testing.T) {
	r := load(t).Get("orders")
	_, err := NewColumnDecoder(r, []column{col("id", pgtype.TextOID), col("status", pgtype.BoolOID),
		col("total_amount", 790), col("updated_at", pgtype.TextOID), col("user_id", enumOID),
		col("channel", pgtype.TextOID)})
	for _, want := range []string{"column id is text: expected one of int2, int4, int8 for an integer",
		"column status is bool: expected one of text, varchar",
		"column total_amount is money",
		"column updated_at is text: expected one of timestamp, timestamptz for a timestamp",
		"column user_id is of OID 16999",
		"column created_at is missing", "column channel: expected one column for each field of record Order"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not named: %s in %v", want, err)
		}
	}
	d, err := NewColumnDecoder(r, []column{col("id", pgtype.Int8OID), col("updated_at", pgtype.TimestampOID),
		col("created_at", pgtype.TextOID)})
	if err != nil {
		t.Fatal(err)
	}
	values := orderValues(t)
	rec, rej := d.Decode([][]byte{values[0], values[5], []byte("2026-11-20 17:02:31+00")})
	if want := mustParse(t, "orders", `{"id":7,`+times+`}`); rej != nil || !bytes.Equal(rec.Value, want.Value) {
		t.Errorf("without nullable columns: %x, %+v; expected %x", rec.Value, rej, want.Value)
	}
}

func TestDecodingARowAllocatesNothing(t *testing.T) {
	d, values := decoder(t, orderColumns), orderValues(t)
	if n := testing.AllocsPerRun(5000, func() { _, _ = d.Decode(values) }); n >= 1 {
		t.Errorf("%v allocations a row", n)
	}
}

func FuzzColumnDecoder(f *testing.F) {
	set := load(f)
	var seed []byte
	for _, v := range orderValues(f) {
		seed = append(append(seed, byte(len(v))), v...)
	}
	f.Add(byte(0), uint64(0), seed)
	f.Add(byte(1), uint64(0x123456789), append(seed, 255))
	f.Fuzz(func(t *testing.T, resource byte, types uint64, data []byte) {
		r := pick(set, resource)
		var cols []column
		var values [][]byte
		for i := range r.Fields {
			choice := typesFor(r, i)
			cols = append(cols, col(r.Fields[i].Name, choice[types%uint64(len(choice))]))
			types = types/3 + 1
			var v []byte
			if len(data) > 0 && data[0] < 255 { // 255 and the end are NULL
				n := min(int(data[0]), len(data)-1)
				v, data = data[1:1+n:1+n], data[1+n:]
			} else if len(data) > 0 {
				data = data[1:]
			}
			values = append(values, v)
		}
		d, err := NewColumnDecoder(r, cols)
		if err != nil {
			t.Fatal(err)
		}
		rec, rej := d.Decode(values)
		if rej == nil {
			checkRecord(t, r, rec)
		} else if !json.Valid(rej.Row) || rej.Field == "" || rej.Err == "" {
			t.Fatalf("%+v", rej)
		}
	})
}
