package schemas

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/sys/unix"
)

// onCPU reports the CPU time of an operation beside its wall time. On a shared machine wall time says little.
func onCPU(b *testing.B) (report func()) {
	b.Helper()
	used := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

const benchUser = `{"id": 45211, "first_name": "Kimberly", "last_name": "Rodriguez", ` +
	`"email": "kimberlyrodriguez@example.org", "age": 34, "gender": "F", "state": "São Paulo", ` +
	`"street_address": "81233 Thomas Ports Suite 812", "postal_code": "08115-100", "city": "null", ` +
	`"country": "Brasil", "latitude": -23.473987519, "longitude": -46.36498273, "traffic_source": "Search", ` +
	`"created_at": "2023-11-21T09:12:44Z", "updated_at": "2026-11-20T17:02:31Z"}`

func BenchmarkUserFromJSON(b *testing.B) {
	p := NewRowParser(load(b).Get("users"))
	raw := []byte(benchUser)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	defer onCPU(b)()
	for b.Loop() {
		if _, rej := p.Parse(raw); rej != nil {
			b.Fatal(rej.Field, rej.Err)
		}
	}
}

func BenchmarkOrderFromPostgres(b *testing.B) {
	r := load(b).Get("orders")
	d, err := NewColumnDecoder(r, []column{col("id", pgtype.Int8OID), col("user_id", pgtype.Int8OID),
		col("status", pgtype.TextOID), col("total_amount", pgtype.NumericOID),
		col("created_at", pgtype.TimestamptzOID), col("updated_at", pgtype.TimestamptzOID)})
	if err != nil {
		b.Fatal(err)
	}
	values := [][]byte{binary.BigEndian.AppendUint64(nil, 123456), binary.BigEndian.AppendUint64(nil, 45211),
		[]byte("Complete"),
		binaryOf(b, pgtype.NumericOID, "59.990001678466797"),
		binaryOf(b, pgtype.TimestamptzOID, time.Date(2026, 11, 20, 17, 2, 31, 0, time.UTC)),
		binaryOf(b, pgtype.TimestamptzOID, time.Date(2026, 11, 20, 17, 2, 31, 123456000, time.UTC))}
	b.ReportAllocs()
	defer onCPU(b)()
	for b.Loop() {
		if _, rej := d.Decode(values); rej != nil {
			b.Fatal(rej.Field, rej.Err)
		}
	}
}

func BenchmarkMoney(b *testing.B) {
	var buf [32]byte
	for _, text := range []string{"49", "49.5", "59.990001678466797", "2.51874985694885",
		"12345678901234567890.123456789012345678"} {
		b.Run("text/"+text, func(b *testing.B) {
			raw := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				d, _ := parseDecimal(raw, 38, 18)
				_ = d.appendBytes(buf[:0])
			}
		})
		b.Run("numeric/"+text, func(b *testing.B) {
			raw := binaryOf(b, pgtype.NumericOID, text)
			b.ReportAllocs()
			for b.Loop() {
				d, _ := columnDecimal(pgtype.NumericOID, raw, 38, 18)
				_ = d.appendBytes(buf[:0])
			}
		})
	}
}

func BenchmarkReadValue(b *testing.B) {
	r := load(b).Get("users")
	rec, rej := NewRowParser(r).Parse([]byte(benchUser))
	if rej != nil {
		b.Fatal(rej.Field, rej.Err)
	}
	v, err := NewValueReader(r, "")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Read(rec.Value); err != nil {
			b.Fatal(err)
		}
	}
}

// The cost of policies: of none, and of hash on one and on three fields.
func BenchmarkUserFromJSONHashed(b *testing.B) {
	for _, n := range []int{0, 1, 3} {
		set := load(b)
		p := Privacy{Key: testKey, Fields: map[string]Policy{}}
		for _, field := range []string{"users.email", "users.street_address", "users.last_name"}[:n] {
			p.Fields[field] = PolicyHash
		}
		set.Protect(p)
		b.Run(fmt.Sprintf("fields=%d", n), func(b *testing.B) {
			parser, raw := NewRowParser(set.Get("users")), []byte(benchUser)
			b.ReportAllocs()
			defer onCPU(b)()
			for b.Loop() {
				if _, rej := parser.Parse(raw); rej != nil {
					b.Fatal(rej.Field, rej.Err)
				}
			}
		})
	}
}
