package postgres

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/schemas"
)

// statement is one query with typed parameters.
type statement struct {
	sql    string
	values []any
	oids   []uint32
	// locks is set if the transaction has to lock the table before it takes the snapshot.
	locks bool
}

// stamp is the oid of a parameter that is a stamp in PostgreSQL's own microseconds. It takes the type of the
// column that it is compared with, timestamp or timestamptz. A naive timestamp means UTC here, in any zone of
// the session.
const stamp uint32 = 0

// param adds a parameter and returns its place: $1, $2 and so on.
func (s *statement) param(oid uint32, value any) string {
	s.oids, s.values = append(s.oids, oid), append(s.values, value)
	return "$" + strconv.Itoa(len(s.oids))
}

// place adds k as two parameters, for a comparison with (updated_at, id).
func (s *statement) place(k key) string {
	return "(" + s.param(stamp, k.at) + ", " + s.param(pgtype.Int8OID, k.id) + ")"
}

// add adds s to a batch.
func (s *statement) add(batch *pgconn.Batch, types *pgtype.Map) error {
	encoded := make([][]byte, len(s.values))
	for i, value := range s.values {
		var err error
		encoded[i], err = types.Encode(cmp.Or(s.oids[i], pgtype.Int8OID), pgtype.BinaryFormatCode, value, nil)
		if err != nil {
			return err
		}
	}
	batch.ExecParams(s.sql, encoded, s.oids, binaryFormat, binaryFormat)
	return nil
}

// binaryFormat is the format of all parameters, and of all columns of a result.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

// query makes the statement for the next rows of a read: at most limit rows after a place, and none after
// until, if it is not nil.
type query func(t *table, after key, until *key, limit int) statement

// query asks for the rows of a part. For the order (updated_at, id) it goes by p.final as it is at each
// statement. A row that is updated meanwhile moves ahead, so no row is skipped.
//
// The filter lets more pass than it must, never less. age(xmin) counts down from the next id, modulo 2^32, so
// a row that low or a later transaction has written is at most as old as low. Freezing does not hide such a
// row: since PostgreSQL 9.4 VACUUM FREEZE and COPY FREEZE leave xmin in place and only flag it. A row with
// xmin 2, FrozenTransactionId, has the greatest age and is left out: such rows come from pg_upgrade of an
// older server, so no transaction has written them since. A row frozen for more than 2^31 transactions has a
// negative age, and passes. A savepoint's id is later than its transaction's, so it passes.
//
// The planner has no statistics for tableoid and assumes that all rows pass. So it uses the index on the key.
//
// The fewer rows pass the filter, the further a statement looks for them: too far, if an old transaction ends
// after millions of changes. A smaller LIMIT is no help then. So if the server has cancelled a statement, the
// rows that earlier passes have met come too, for the rest of the read, and chunkReader.next leaves them out:
// the added column is NULL for them. For other rows it is true if they are final.
func (p *pass) query(r *chunkReader, part part) query {
	if part.undated {
		return undated
	}
	return func(t *table, after key, until *key, limit int) (s statement) {
		low, final := part.low, p.final
		if t.noFloor != "" { // since the pass began: its xmin may be forbidden
			low, final = 0, 0
		}
		before := func(id uint64) string { // for rows whose writer has a smaller id
			return fmt.Sprintf("(age(%[1]s.xmin) > (SELECT age(%[2]s)) AND %[1]s.tableoid = %[3]s)", t.plainName,
				s.param(pgtype.XIDOID, uint32(id)), s.param(pgtype.OIDOID, p.table.oid))
		}
		where, added := "(updated_at, id) > "+s.place(after), ""
		if until == nil || part.until != nil && until.after(*part.until) {
			until = part.until
		}
		if until != nil {
			where += " AND (updated_at, id) <= " + s.place(*until)
		}
		if final != 0 {
			added = before(final)
		}
		switch {
		case low == 0:
		case r.unfiltered:
			added = "CASE WHEN NOT " + before(low) + " THEN " + cmp.Or(added, "false") + " END"
		default:
			where += " AND NOT " + before(low)
		}
		if added != "" {
			added = ", " + added
		}
		s.sql = fmt.Sprintf("SELECT %s%s FROM %s WHERE %s ORDER BY updated_at, id LIMIT %s", t.list, added, t.name,
			where, s.param(pgtype.Int8OID, int64(limit)))
		return s
	}
}

// undated asks for the rows that the order (updated_at, id) does not contain: those without updated_at.
var undated = byID(func(*statement, *table) string { return "updated_at IS NULL" })

// since asks for the rows that were created or updated at or after from, or are without updated_at, in the
// order of id. MinInstant is -infinity there.
func since(from schemas.Instant) query {
	return byID(func(s *statement, t *table) string {
		where := "(updated_at IS NULL OR updated_at >= " + s.param(stamp, microsOf(from))
		if t.createdIsTime {
			where += " OR created_at >= " + s.param(stamp, microsOf(from))
		}
		return where + ")"
	})
}

// named asks for the rows with these ids, in the order of id.
func named(ids []int64) query {
	return byID(func(s *statement, _ *table) string {
		return "id = ANY(" + s.param(pgtype.Int8ArrayOID, ids) + ")"
	})
}

// byID asks for the rows of a condition in the order of id, which never changes. The smallest int64 has no id
// before it, so the place before all rows is not an id that lies before it.
func byID(where func(s *statement, t *table) string) query {
	return func(t *table, after key, until *key, limit int) (s statement) {
		compared := ">"
		if after == beforeAll {
			compared = ">="
		}
		ids := "id " + compared + " " + s.param(pgtype.Int8OID, after.id)
		if until != nil {
			ids += " AND id <= " + s.param(pgtype.Int8OID, until.id)
		}
		s.sql = fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s ORDER BY id LIMIT %s", t.list, t.name, ids,
			where(&s, t), s.param(pgtype.Int8OID, int64(limit)))
		return s
	}
}
