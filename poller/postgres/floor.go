package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

const (
	// maxRunning is how many transactions in flight a floor names at most: it is in every watermark.
	maxRunning = 64
	// maxBehind is how far a floor may lie behind the next id. age() is 32 bits wide: from 2^31 on it would
	// take new rows for old.
	maxBehind = 1_000_000_000
)

// identitySQL asks which database this is, of which history, and since when the server has given out ids in
// turn. Every role may ask, unless somebody has revoked it. A standby only knows the timeline that it has
// noted on disk, which may be some minutes late.
//
// A server that crashes gives out again the ids of which nothing was flushed: those of transactions that were
// rolled back, or committed with synchronous_commit off. A snapshot may have shown them as over. If only one
// of its processes dies, the server recovers in the same way and keeps its start time; but its statistics
// begin anew. A standby gives out no ids, and replays none that were not flushed.
const identitySQL = `SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' ||
	(SELECT oid FROM pg_database WHERE datname = current_database()),
CASE WHEN pg_is_in_recovery() THEN
	(SELECT greatest(c.timeline_id, r.min_recovery_end_timeline) FROM pg_control_checkpoint() c,
		pg_control_recovery() r)
ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int END,
CASE WHEN NOT pg_is_in_recovery() THEN
	greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time()) END`

// identity is a table of a database in one history. In another timeline (after a failover or a restore), or
// after another start, ids below a floor may have been given out a second time.
type identity struct {
	table    uint32 // oid
	system   string // of the cluster and the database in it; "": the role may not ask
	timeline uint32
	started  schemas.Instant // or recovered; MinInstant: a standby
}

// take reads a row of identitySQL.
func (id *identity) take(_ *clock, rows *pgconn.ResultReader) error {
	for rows.NextRow() {
		if v := rows.Values(); len(v) == 3 && len(v[1]) == 4 {
			id.system, id.timeline, id.started = string(v[0]), binary.BigEndian.Uint32(v[1]), schemas.MinInstant
			if len(v[2]) == 8 {
				id.started = instantOf(int64(binary.BigEndian.Uint64(v[2])))
			}
		}
	}
	return nil
}

// floor is the floor of everything from `from` on that shown shows.
func (id *identity) floor(shown snapshot, from schemas.Instant) *watermark.Floor {
	return &watermark.Floor{Snapshot: shown.String(), From: from, Table: id.table, System: id.system,
		Timeline: id.timeline, Started: id.started}
}

// differs says why f speaks of something else than id; "": it speaks of the same.
func (id *identity) differs(f *watermark.Floor) string {
	switch {
	case f.Table != id.table:
		return fmt.Sprintf("it speaks of another table: oid %d, now %d", f.Table, id.table)
	case f.System != id.system:
		return "it speaks of another database"
	case f.Timeline != id.timeline:
		return fmt.Sprintf("it comes from another timeline: %d, now %d", f.Timeline, id.timeline)
	case f.Started != id.started && f.Started != schemas.MinInstant && id.started != schemas.MinInstant:
		return fmt.Sprintf("the server has started or recovered at %s, and may give out ids again that were over "+
			"before", id.started)
	}
	return ""
}

// trusts returns the snapshot of a floor, or says why a pass from `from` on that begins under c may not go by
// it.
func (id *identity) trusts(f *watermark.Floor, c *clock, from schemas.Instant) (s snapshot, why string) {
	if why := id.differs(f); why != "" {
		return s, why
	}
	s, err := parseSnapshot(f.Snapshot)
	switch {
	case err != nil:
		return s, err.Error()
	case f.From > from:
		return s, fmt.Sprintf("it says nothing of what lies before %s", f.From)
	case s.xmax > c.next:
		return s, "the server has not given out its transaction ids: it lags, or was restored"
	case c.next-s.low(c) > maxBehind:
		return s, "more than a billion transactions have passed since"
	}
	return s, ""
}

// filter leaves out the rows that earlier passes have met: those of `table` whose writer's id is smaller than
// low. Rows of any other relation pass: one that was attached, or swapped in under the table's name, since
// the catalogue was asked, brings rows that nobody has written since.
type filter struct {
	low   uint64 // 0: leave out no row
	table uint32
	// final asks with each row whether its writer's id is smaller than this; 0: do not ask.
	final uint64
}
