package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// Column is one column of a PostgreSQL result: its name and the OID of its type.
type Column struct {
	Name string
	OID  uint32
}

// The types that columns may have (src/include/catalog/pg_type.dat of PostgreSQL).
const (
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidFloat4      = 700
	oidFloat8      = 701
	oidBPChar      = 1042
	oidVarchar     = 1043
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidNumeric     = 1700
	oidName        = 19

	// firstUserOID is the first OID of types that users create. The binary form of an enum or of citext is its
	// text.
	firstUserOID = 16384
)

// IsText returns whether the column's values are texts of any length.
func (c Column) IsText() bool { return c.OID == oidText || c.OID == oidVarchar || c.OID == oidBPChar }

// IsUserType returns whether a user created the column's type. storestream does not know such types.
func (c Column) IsUserType() bool { return c.OID >= firstUserOID }

var typeNames = map[uint32]string{
	oidInt8: "int8", oidInt2: "int2", oidInt4: "int4", oidText: "text", oidFloat4: "float4", oidFloat8: "float8",
	oidBPChar: "char", oidVarchar: "varchar", oidTimestamp: "timestamp", oidTimestamptz: "timestamptz",
	oidNumeric: "numeric", oidName: "name",
	16: "bool", 17: "bytea", 114: "json", 790: "money", 1082: "date", 1083: "time", 1266: "timetz",
	1186: "interval", 2950: "uuid", 3802: "jsonb",
}

func typeName(oid uint32) string {
	if name, ok := typeNames[oid]; ok {
		return name
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
	numberTypes = []uint32{oidInt2, oidInt4, oidInt8, oidNumeric, oidFloat4, oidFloat8,
		oidText, oidVarchar, oidBPChar}

	// The database compares and sorts by id and updated_at, so they cannot be text.
	idTypes        = []uint32{oidInt2, oidInt4, oidInt8, oidNumeric}
	updatedAtTypes = []uint32{oidTimestamp, oidTimestamptz}
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
func matchColumns(r *Resource, cols []Column) ([]int, error) {
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
		if !slices.Contains(types, c.OID) && (codec != textCodec || !c.IsUserType()) {
			wrong = append(wrong, fmt.Sprintf("column %s is %s: expected one of %s for %s",
				c.Name, typeName(c.OID), typeList(types), codec.kind))
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
