package postgres

import (
	"fmt"
	"math"
	"strings"

	"github.com/storestream/storestream/schemas"
)

// question makes the statement for the next chunk of a read: at most limit rows after k.
type question func(t *table, k key, limit int) statement

// noFilter is for changed: no row is left out.
const noFilter uint64 = math.MaxUint64

// changed asks for rows in the order (updated_at, id) after k. A row that is updated meanwhile moves ahead of the cursor, so none is skipped.
//
// Where oldest is not noFilter, rows stamped before newest are left out unless a transaction with that id or a later one wrote them. The filter lets more
// pass than it must, never less: age(xmin) counts down modulo 2^32 from the next id, so a row that a transaction since oldest
// has written has at most the age of oldest. Freezing does not hide such a row: since PostgreSQL 9.4 VACUUM FREEZE and COPY FREEZE leave
// xmin in place and only mark it. A row with xmin 2, FrozenTransactionId, has the greatest age there is and is left out: such rows come from
// pg_upgrade of an older server, so nobody has written them since. A row frozen for more than 2^31 transactions has a negative age, and passes. A savepoint's id is
// later than its transaction's, so it passes.
func changed(newest schemas.Instant, oldest uint64) question {
	return func(t *table, k key, limit int) statement {
		s := statement{}
		s.param(t.updatedOID, int8Param(k.at))
		s.param(oidInt8, int8Param(k.id))
		s.param(oidInt8, int8Param(int64(limit)))
		filter := ""
		if oldest != noFilter && t.hasXmin {
			s.param(oidXid, xidParam(oldest))
			s.param(t.updatedOID, int8Param(microsOf(newest)))
			filter = ` AND (age(xmin) <= age($4) OR updated_at >= $5)`
		}
		s.sql = fmt.Sprintf(`SELECT %s FROM %s WHERE (updated_at, id) > ($1, $2)%s ORDER BY updated_at, id LIMIT $3`, t.list, t.name, filter)
		return s
	}
}

// undated asks for the rows that the order (updated_at, id) never meets: those without updated_at.
func undated(t *table, k key, limit int) statement {
	s := statement{sql: fmt.Sprintf(`SELECT %s FROM %s WHERE updated_at IS NULL AND id > $1 ORDER BY id LIMIT $2`, t.list, t.name)}
	s.param(oidInt8, int8Param(k.id))
	s.param(oidInt8, int8Param(int64(limit)))
	return s
}

// byID asks for every row created or updated at or after from, or without updated_at, in the order of id, which never changes.
func byID(from schemas.Instant) question {
	return func(t *table, k key, limit int) statement {
		s := statement{}
		s.param(oidInt8, int8Param(k.id))
		s.param(oidInt8, int8Param(int64(limit)))
		where := []string{"id > $1"}
		if from > schemas.MinInstant {
			s.param(t.updatedOID, int8Param(microsOf(from)))
			either := "updated_at >= $3 OR updated_at IS NULL"
			if t.createdOID != 0 {
				s.param(t.createdOID, int8Param(microsOf(from)))
				either += " OR created_at >= $4"
			}
			where = append(where, "("+either+")")
		}
		s.sql = fmt.Sprintf(`SELECT %s FROM %s WHERE %s ORDER BY id LIMIT $2`, t.list, t.name, strings.Join(where, " AND "))
		return s
	}
}

// named asks for the rows with these ids.
func named(ids []int64) question {
	return func(t *table, k key, limit int) statement {
		s := statement{sql: fmt.Sprintf(`SELECT %s FROM %s WHERE id = ANY($1) AND id > $2 ORDER BY id LIMIT $3`, t.list, t.name)}
		s.param(oidInt8Array, int8ArrayParam(ids))
		s.param(oidInt8, int8Param(k.id))
		s.param(oidInt8, int8Param(int64(limit)))
		return s
	}
}
