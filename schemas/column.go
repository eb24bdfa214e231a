package schemas

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// firstUserOID is the first OID of types that users create. The binary form of an enum or of citext is its
// text.
const firstUserOID = 16384

// IsText returns whether the values of a column with this type are texts of any length.
func IsText(oid uint32) bool {
	return oid == pgtype.TextOID || oid == pgtype.VarcharOID || oid == pgtype.BPCharOID
}

// IsUserType returns whether a user created the type. storestream does not know such types.
func IsUserType(oid uint32) bool { return oid >= firstUserOID }

// moneyOID is the type money, which pgx does not know: its text depends on the server's locale.
const moneyOID = 790

func typeName(oid uint32) string {
	if oid == moneyOID {
		return "money"
	}
	if t, ok := pgtype.NewMap().TypeForOID(oid); ok {
		return t.Name
	}
	return fmt.Sprintf("of OID %d", oid)
}

func typeList(oids []uint32) string {
	names := make([]string, len(oids))
	for i, oid := range oids {
		names[i] = typeName(oid)
	}
	return strings.Join(names, ", ")
}

var (
	// numberTypes are the types of columns of numbers. If a data frame library loaded the table, integers come
	// as float8 and times as text.
	numberTypes = []uint32{pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.Float4OID,
		pgtype.Float8OID, pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID}

	// The database compares and sorts by id and updated_at, so they cannot be text.
	idTypes        = []uint32{pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID}
	updatedAtTypes = []uint32{pgtype.TimestampOID, pgtype.TimestamptzOID}
)

// typesFor returns the column types that can hold r's field i.
func typesFor(r *Resource, i int) []uint32 {
	switch i {
	case 0:
		return idTypes
	case r.updatedAt:
		return updatedAtTypes
	default:
		return r.Fields[i].codec.columns
	}
}

// matchColumns returns the column of each field of r, -1 for none. The error names every column that is
// wrong.
func matchColumns(r *Resource, cols []pgconn.FieldDescription) ([]int, error) {
	places := slices.Repeat([]int{-1}, len(r.Fields))
	var wrong []string
	for place, c := range cols {
		i, ok := r.index[c.Name]
		if !ok || places[i] >= 0 {
			wrong = append(wrong, fmt.Sprintf("column %s: expected one column for each field of record %s",
				c.Name, r.RecordName))
			continue
		}
		places[i] = place
		codec, types := r.Fields[i].codec, typesFor(r, i)
		if !slices.Contains(types, c.DataTypeOID) && (codec != textCodec || !IsUserType(c.DataTypeOID)) {
			wrong = append(wrong, fmt.Sprintf("column %s is %s: expected one of %s for %s",
				c.Name, typeName(c.DataTypeOID), typeList(types), codec.kind))
		}
	}
	for i, f := range r.Fields {
		if places[i] < 0 && !f.Nullable {
			wrong = append(wrong, fmt.Sprintf("column %s is missing: expected it as one of %s",
				f.Name, typeList(typesFor(r, i))))
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("table of %s: %s; change the table, or the field in %s.avsc in schemas.dir",
			r.Name, strings.Join(wrong, "; "), r.RecordName)
	}
	return places, nil
}
