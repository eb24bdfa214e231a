package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/schemas"
)

// clockSQL is the first query of each transaction, so it runs under the same snapshot as the query for the
// rows.
//
// The order of evaluation matters, and the query forces it. BEGIN fixes now(). The snapshot is taken before a
// query runs. The CTE is materialized before age() looks at the counter. If the next id were read before the
// clock, a transaction could start, write and stamp in between: its id would lie past the horizon, and its
// stamp before the horizon by more than overlap allows. On a standby the clock is the commit time of the last
// transaction that it replayed. The primary logged all records that are replayed later after that commit.
//
// The snapshot's xmax is the last *completed* id plus one. With one open writer on a quiet database it
// stands still, below the id of that writer, and "xmin >= xmax" is true at once. age() counts from the id
// that is given out next, so it makes that id out of xmax.
//
// $1 is the name of the table, NULL for none. So the next chunk notices that the table was swapped, or that
// rows of it are hidden. It also notices another primary, if the role may ask for the timeline.
//
// It also has the server send the texts of this transaction as UTF-8. The role may have another encoding
// set, and bytes in another encoding may happen to be valid UTF-8 of another text. A database with encoding
// SQL_ASCII converts no text. With UTF-8 it would check, and would send no row of a chunk that has one bad
// row. With SQL_ASCII it sends the bytes, and the decoder refuses only the bad row.
//
// And it puts temporary tables after all others, for the statements that follow. PostgreSQL looks for a
// table or a type among the temporary ones first, even for a name of pg_catalog, and they belong to the
// client that had the connection before. So this query names the schema of each table and type. $2
// is the DSN's search_path, NULL for the role's.
const clockSQL = `WITH c AS MATERIALIZED (
  SELECT pg_is_in_recovery() AS standby, pg_last_xact_replay_timestamp() AS replayed,
         CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END AS position)
SELECT CASE WHEN c.standby THEN c.replayed ELSE now() END, c.standby,
       coalesce((c.position - '0/0'::pg_catalog.pg_lsn)::bigint, 0), s::pg_catalog.text,
       pg_snapshot_xmax(s)::pg_catalog.text::bigint + age(pg_snapshot_xmax(s)::pg_catalog.xid),
       coalesce(to_regclass($1)::pg_catalog.oid, 0::pg_catalog.oid),
       coalesce(row_security_active(to_regclass($1)::pg_catalog.oid), false), coalesce(%s, 0),
       coalesce((SELECT relfilenode FROM pg_catalog.pg_class WHERE oid = to_regclass($1)), 0::pg_catalog.oid)
FROM c, pg_current_snapshot() AS s
WHERE set_config('client_encoding',
  CASE current_setting('server_encoding') WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END, true) <> ''
AND set_config('search_path',
  concat_ws(', ', nullif(coalesce($2, current_setting('search_path')), ''), 'pg_temp'), true) <> ''`

// timelineSQL asks a primary for its timeline.
const timelineSQL = `('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int`

// clockQuery asks for the clock, and for the table that t's name leads to.
func clockQuery(t *table, searchPath any) *statement {
	name, timeline := any(nil), "NULL::int"
	if t != nil {
		name = t.plainName
		if t.history == histories[0] {
			timeline = "CASE WHEN NOT c.standby THEN " + timelineSQL + " END"
		}
	}
	q := &statement{sql: fmt.Sprintf(clockSQL, timeline)}
	q.param(pgtype.TextOID, name)
	q.param(pgtype.TextOID, searchPath)
	return q
}

// readClock reads the answer to clockQuery.
func readClock(tx *transaction) (*clock, error) {
	c, shown := &clock{}, ""
	var at *time.Time
	err := tx.scan(&at, &c.standby, &c.position, &shown, &c.next, &c.relation, &c.hidden, &c.timeline,
		&c.file)
	if err != nil {
		return nil, err
	}
	if c.known = at != nil; c.known {
		c.time = schemas.InstantOf(*at)
	}
	c.snapshot, err = parseSnapshot(shown)
	return c, err
}

// clock is the moment of a transaction of ours, by the server's clock and by its transaction ids, and the
// table that the name led to.
type clock struct {
	// time is the server's clock. No transaction with an id of next or more had written before it. A standby
	// that has replayed no transaction since it started has no clock (known is false).
	time  schemas.Instant
	known bool
	// A standby does not list running transactions: there only those below xmin are known to be over.
	snapshot
	// next is the next transaction id, read after the snapshot was taken.
	next    uint64
	standby bool
	// position is how far a standby had replayed the log.
	position uint64
	// relation is the oid that the table's name led to, or 0. hidden is set if row security may hide rows of it.
	relation uint32
	hidden   bool
	// file is the number of the file that holds the table, or 0. A table that is rewritten gets another one.
	file uint32
	// timeline is a primary's timeline. Zero means that it is not known.
	timeline uint32
	// asked and answered are times of our clock, before and after.
	asked, answered time.Time
}

// shown returns the part of c that is certain.
func (c *clock) shown() snapshot {
	if c.standby {
		return coarse(c.xmin)
	}
	return c.snapshot
}

// olderThan returns true if c shows less than before did: a transaction that was over in before is not over
// in c. This happens behind a pooler that leads to several servers. A row that moved ahead of the key
// between two such chunks would be in neither.
//
// Two primaries are compared by their running transactions, two standbys by their replay positions. For a
// primary and a standby a race of microseconds is left. It can make a row late, not lost, because settling
// and the floor use only the xmin of a standby.
func (c *clock) olderThan(before *clock) bool {
	if c.xmin < before.xmin || c.xmax < before.xmax {
		return true
	}
	if before.standby && c.standby {
		return c.position < before.position
	}
	return !before.standby && !c.standby && !c.covers(&before.snapshot)
}
