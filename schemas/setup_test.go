package schemas

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// load returns the built-in schemas.
func load(t testing.TB) *Set {
	t.Helper()
	s, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pick is one of the set's resources, for fuzz tests.
func pick(s *Set, i byte) *Resource { return s.All()[int(i)%len(declared)] }

// binaryOf is a value as a Postgres server sends it, by pgx's encoder. A numeric is given as text.
func binaryOf(t testing.TB, oid uint32, v any) []byte {
	t.Helper()
	if text, ok := v.(string); ok && oid == pgtype.NumericOID {
		var n pgtype.Numeric
		if err := n.Scan(text); err != nil {
			t.Fatalf("pgtype cannot read %q: %v", text, err)
		}
		v = n
	}
	b, err := pgtype.NewMap().Encode(oid, pgtype.BinaryFormatCode, v, nil)
	if err != nil {
		t.Fatalf("pgtype cannot encode %v: %v", v, err)
	}
	return b
}

func pgFloat8(v float64) []byte { return binary.BigEndian.AppendUint64(nil, math.Float64bits(v)) }

// column is a column of a result, and col makes one.
type column = pgconn.FieldDescription

func col(name string, oid uint32) column { return column{Name: name, DataTypeOID: oid} }
