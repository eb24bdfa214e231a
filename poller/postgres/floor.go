package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
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
const identitySQL = `(SELECT system_identifier FROM pg_control_system())::text || '/' ||
	(SELECT oid FROM pg_database WHERE datname = current_database()),
CASE WHEN pg_is_in_recovery() THEN
	(SELECT greatest(c.timeline_id, r.min_recovery_end_timeline) FROM pg_control_checkpoint() c,
		pg_control_recovery() r)
ELSE ` + timelineSQL + ` END,
CASE WHEN NOT pg_is_in_recovery() THEN
	greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time()) END,
(SELECT attnum FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'updated_at')`

// identity is a table of a database in one history. In another timeline (after a failover or a restore), or
// after another start, ids below a floor may have been given out a second time.
type identity struct {
	table    uint32 // oid
	system   string // of the cluster and the database in it; "": the role may not ask
	timeline uint32
	started  schemas.Instant // or recovered; MinInstant: a standby
	// updatedAt is the number of that column: another one may have taken its name.
	updatedAt int16
}

// take takes what identitySQL selects.
func (id *identity) take(v [][]byte) error {
	switch {
	case len(v) != 4 || len(v[1]) != 4:
		return errors.New("ask which database this is: an answer of another shape than PostgreSQL's")
	case len(v[3]) != 2:
		return errRetyped
	}
	id.system, id.timeline = string(v[0]), binary.BigEndian.Uint32(v[1])
	id.started, id.updatedAt = timeOf(v[2]), int16(binary.BigEndian.Uint16(v[3]))
	return nil
}

// timeOf reads a timestamptz; MinInstant for NULL.
func timeOf(v []byte) schemas.Instant {
	if len(v) != 8 {
		return schemas.MinInstant
	}
	return instantOf(int64(binary.BigEndian.Uint64(v)))
}

// floor is the floor of everything from `from` on that shown shows.
func (id *identity) floor(shown snapshot, from schemas.Instant) *watermark.Floor {
	return &watermark.Floor{Snapshot: shown.String(), From: from, Table: id.table, System: id.system,
		Timeline: id.timeline, Started: id.started, UpdatedAt: id.updatedAt}
}

// differs says why f speaks of something else than id; nil: it speaks of the same.
//
// Rows that were read there may be missing here, or be as they were before, with stamps below settled: only a
// sweep meets those. It is so after a mere restart: the server may have crashed and lost what was committed
// with synchronous_commit off, or a copy of its files may have been put back.
func (id *identity) differs(f *watermark.Floor) *poller.LostError {
	switch {
	case f.System != id.system:
		return lost(true, "another database answers")
	case f.Timeline != id.timeline:
		return lost(true, "the database was promoted or restored: it is on timeline %d, and was on %d",
			id.timeline, f.Timeline)
	case f.Table != id.table:
		return lost(true, "another table has its name: oid %d, and it was %d", id.table, f.Table)
	case f.UpdatedAt != id.updatedAt && f.UpdatedAt != 0:
		return lost(true, "another column is called updated_at: number %d of the table, and it was %d",
			id.updatedAt, f.UpdatedAt)
	case f.Started != id.started && f.Started != schemas.MinInstant && id.started != schemas.MinInstant:
		return lost(true, "the server has started or recovered at %s, and may give out ids "+
			"again that were over before", id.started)
	}
	return nil
}

// trusts returns the snapshot of a floor, or says why a pass from `from` on that begins under c may not go by
// it.
func (id *identity) trusts(f *watermark.Floor, c *clock, from schemas.Instant) (snapshot, *poller.LostError) {
	if lost := id.differs(f); lost != nil {
		return snapshot{}, lost
	}
	s, err := parseSnapshot(f.Snapshot)
	switch {
	case err != nil:
		return s, lost(false, "%v", err)
	case f.From > from:
		return s, lost(false, "the floor says nothing of what lies before %s", f.From)
	case s.xmax > c.next:
		return s, lost(true, "the server has not given out the transaction ids of the floor: it lags, or was "+
			"restored")
	case c.next-s.low(c) > maxBehind:
		return s, lost(false, "more than a billion transactions have passed")
	}
	return s, nil
}

// lost says why a pass cannot go by what was read before. settled stays.
func lost(sweep bool, format string, args ...any) *poller.LostError {
	return &poller.LostError{Why: fmt.Sprintf(format, args...), From: schemas.MaxInstant, Sweep: sweep}
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
