package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// histories ask since when the server has given out ids in turn, and for the database and its history. Every
// role may ask, unless the right to these functions was revoked. Some clouds' servers raise errors in some of
// them. So describe takes the first one that succeeds. After any but the first one the table has no floor.
var histories = []string{startedSQL + ", " + historySQL, startedSQL + ", '', 0",
	"CASE WHEN NOT pg_is_in_recovery() THEN pg_postmaster_start_time() END, '', 0"}

// historySQL asks for the database and its history. A standby only knows the timeline that it has noted on
// disk, which may be some minutes late.
const historySQL = `(SELECT system_identifier FROM pg_control_system())::text || '/' ||
	(SELECT oid FROM pg_database WHERE datname = current_database()),
CASE WHEN pg_is_in_recovery() THEN
	(SELECT greatest(c.timeline_id, r.min_recovery_end_timeline) FROM pg_control_checkpoint() c,
		pg_control_recovery() r)
ELSE ` + timelineSQL + ` END`

// startedSQL asks a primary since when it has given out ids in turn.
//
// After a crash, a server gives out some ids again: those of transactions whose WAL was not flushed, because
// they were rolled back, or committed with synchronous_commit off. A snapshot may have shown them as over. If
// only one of its processes dies, the server recovers in the same way. It keeps its start time then, but its
// statistics are reset: all of them. A person who resets some (pg_stat_reset_shared) leaves others, so the
// earliest time counts. A standby gives out no ids, and replays only flushed ones.
const startedSQL = `CASE WHEN NOT pg_is_in_recovery() THEN greatest(pg_postmaster_start_time(), least(
	pg_stat_get_bgwriter_stat_reset_time(), (SELECT stats_reset FROM pg_stat_get_archiver()),
	(SELECT min(stats_reset) FROM pg_stat_get_slru()))) END`

// identitySQL asks whether the name $1 leads to another table now. $2 is the full name of the known one.
//
// The clock does not show every change of a table. Another schema of the search_path may have a table of the
// name, a table that was alone may get children, and a view may lead elsewhere.
const identitySQL = "SELECT to_regclass($2) IS DISTINCT FROM to_regclass($1), "

// identify reads the clock and the identity of t.
func identify(ctx context.Context, r *chunkReader, t *table) (*clock, watermark.Identity, error) {
	id := watermark.Identity{Table: t.oid, Schema: t.schema, Kind: t.kind, Started: schemas.MinInstant,
		LeadsTo: strconv.FormatUint(xxhash.Sum64String(t.leadsTo), 16)}
	with, tables := "", aloneSQL
	if !t.alone {
		with, tables = belowSQL, elsewhereSQL+", "+leadsToSQL
	}
	q := statement{sql: with + identitySQL + tables + ", " + t.history}
	q.param(pgtype.TextOID, t.bareName)
	q.param(pgtype.TextOID, t.plainName)
	var swapped bool
	var elsewhere, leadsTo string
	var started *time.Time
	c, err := r.db.ask(ctx, t, &r.lineage, &q, &swapped, &elsewhere, &leadsTo, &started, &id.System,
		&id.Timeline)
	switch {
	case err != nil:
		return nil, id, err
	case elsewhere != "":
		return nil, id, isElsewhere(t.plainName, elsewhere)
	case swapped, leadsTo != t.leadsTo:
		return nil, id, errChanged
	}
	if started != nil {
		id.Started = schemas.InstantOf(*started)
	}
	return c, id, nil
}

// differs returns how the identity id differs from before, under which earlier rows were read, or nil.
//
// In another history the server may have given out ids below a floor a second time. Rows that were read
// before may be missing here, or may have earlier values, with stamps below settled: only a sweep finds
// those. A mere restart counts too. The server may have crashed and lost commits that were made with
// synchronous_commit off, or a copy of its files may have been put back.
func differs(id, before *watermark.Identity) *poller.LostError {
	switch {
	case before == nil:
		return nil
	case before.System != "" && id.System != "" && id.System != before.System:
		return lost(true, "another database answers")
	case before.Timeline != 0 && id.Timeline != 0 && id.Timeline != before.Timeline:
		return lost(true, "the database was promoted or restored: it is on timeline %d, and was on %d",
			id.Timeline, before.Timeline)
	case before.Table != 0 && (id.Table != before.Table || id.LeadsTo != before.LeadsTo):
		return lost(true, "its name leads to other tables (oid %d, and it was %d), a view or policy below it was "+
			"replaced, or another column is called updated_at", id.Table, before.Table)
	case min(before.Started, id.Started) != schemas.MinInstant && id.Started != before.Started:
		return lost(true, "the server has started or recovered at %s, and may give out ids "+
			"again that were over before", id.Started)
	}
	return nil
}

// kinds names the relkinds. Those of f and m are not read.
var kinds = map[string]string{"r": "a table", "p": "a partitioned table", "v": "a view",
	"f": "a foreign table", "m": "a materialized view"}

// isAnother returns a *poller.BlockedError if t is another table than the one that was read before, and no
// person has confirmed it by a request that names its schema.
//
// A schema has a name only once. So if another table of the same kind has the name in the same schema, the
// owner of the first one has dropped or renamed it: the table was created again, as in a swap by renaming. If
// the name leads to another schema, the owner has done neither. Instead the search_path was changed, or a
// table was created in a schema that comes first. (A table that was moved to another schema is the same one.)
func (t *table) isAnother(before *watermark.Identity, r *schemas.Resource) error {
	if before == nil || before.Schema == "" || t.oid == before.Table ||
		t.schema == before.Schema && (before.Kind == "" || t.kind == before.Kind) {
		return nil
	}
	back := "drop or rename the one that took its name"
	if t.schema != before.Schema {
		back = "restore the search_path of role and database, or set search_path in postgres.dsn"
	}
	return &poller.BlockedError{What: fmt.Sprintf("the name %[1]s leads to another table: %[2]s, which is "+
		"%[3]s, and was %[4]s in schema %[5]s. storestream does not read it, because it would publish its rows as "+
		"those of the other one. If the other one is right, put it back: %[6]s. If this one is right, confirm it: "+
		"storestream watermark reset %[7]s --confirm-schema %[8]s --to TIME publishes it from TIME on, and a "+
		"sweep follows", t.bareName, t.plainName, kinds[t.kind], cmp.Or(kinds[before.Kind], "a relation"),
		before.Schema, back, r.Name, t.schema)}
}
