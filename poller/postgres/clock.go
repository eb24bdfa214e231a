package postgres

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/storestream/storestream/schemas"
)

// clockSQL is the first query of each transaction, so it is read under the snapshot that the rows are read under.
//
// The order of evaluation matters, and is forced: now() is fixed by BEGIN; the snapshot is taken before a query runs; the CTE is
// materialized before age() looks at the counter. If the next id were read before the clock, a transaction could start, write and
// stamp in between: with an id past the mark, and with a stamp before it by more than overlap allows. On a standby the clock is the commit time
// of the last transaction replayed: whatever is replayed later was written to the log after that commit.
//
// The snapshot's xmax is the last *completed* id plus one: with one writer open on a quiet database it stands still, below the id of that
// writer, and "xmin >= xmax" is true at once. age() counts from the id to be given out next, so it makes that id out of xmax.
const clockSQL = `WITH c AS MATERIALIZED (
  SELECT pg_is_in_recovery() AS standby, pg_last_xact_replay_timestamp() AS replayed,
         CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END AS position)
SELECT now(), c.standby, c.replayed, c.position, s::text,
       pg_snapshot_xmax(s)::text::bigint + age(pg_snapshot_xmax(s)::xid)
FROM c, pg_current_snapshot() AS s`

// clock is what a transaction says about when it ran.
type clock struct {
	// time: no transaction with an id of next or more had written anything before it. Unknown (known is false) on a standby that has
	// replayed no transaction since it started.
	time  schemas.Instant
	known bool
	// The snapshot: ids below xmin are over; ids from xmax on, and those in running, are not. All ids are 64 bits wide.
	xmin, xmax uint64
	running    map[uint64]struct{}
	// next is the id to be given out next, read after the snapshot was taken.
	next    uint64
	standby bool
	// position is how far a standby had replayed.
	position uint64
}

func (c *clock) mark() mark { return mark{time: c.time, next: c.next} }

// inFlight says whether the transaction was running, or not yet begun, under this snapshot. A standby does not list its running
// transactions: there, only what is below xmin is known to be over.
func (c *clock) inFlight(id uint64) bool {
	if id < c.xmin {
		return false
	}
	if id >= c.xmax || c.standby {
		return true
	}
	_, running := c.running[id]
	return running
}

// olderThan says whether c shows less than before did, which only another server can do (a pooler in front of replicas): a transaction
// that was over in before is not over in c. Rows that moved ahead of the cursor between the two would be read in neither chunk.
//
// Two standbys, or a primary and a standby, are compared by what each tells: the list of running transactions where both have one, the
// replay position where both are standbys. What then is left is a race of microseconds, and costs lateness: the settle rule looks at ids alone.
func (c *clock) olderThan(before *clock) bool {
	if c.xmin < before.xmin || c.xmax < before.xmax {
		return true
	}
	if before.standby && c.standby {
		return c.position < before.position
	}
	if before.standby || c.standby {
		return false
	}
	for id := range c.running {
		if !before.inFlight(id) {
			return true
		}
	}
	return false
}

// rewound says whether c cannot follow before in one history: a primary that will give out ids which were already used up. The database was
// restored, or is another one, and no mark holds any more. A standby may merely lag.
func (c *clock) rewound(before *clock) bool { return !c.standby && c.next < before.xmax }

// parseClock reads a row of clockSQL, in binary format.
func parseClock(v [][]byte) (clock, error) {
	if len(v) != 6 || len(v[0]) != 8 || len(v[1]) != 1 || len(v[5]) != 8 {
		return clock{}, fmt.Errorf("read the server's clock: an answer of another shape than PostgreSQL's")
	}
	c := clock{standby: v[1][0] != 0, next: binary.BigEndian.Uint64(v[5]), time: instantOf(int64(binary.BigEndian.Uint64(v[0]))), known: true}
	if c.standby {
		c.known = len(v[2]) == 8
		if c.known {
			c.time = instantOf(int64(binary.BigEndian.Uint64(v[2])))
		}
		if len(v[3]) == 8 {
			c.position = binary.BigEndian.Uint64(v[3])
		}
	}
	return c, c.parseSnapshot(string(v[4]))
}

// parseSnapshot reads pg_snapshot's text form, xmin:xmax:id,id,...
func (c *clock) parseSnapshot(text string) error {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return fmt.Errorf("read the server's snapshot %q: expected xmin:xmax:ids", text)
	}
	var err error
	if c.xmin, err = strconv.ParseUint(parts[0], 10, 64); err != nil {
		return fmt.Errorf("read the server's snapshot: xmin: %w", err)
	}
	if c.xmax, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return fmt.Errorf("read the server's snapshot: xmax: %w", err)
	}
	c.running = map[uint64]struct{}{}
	for id := range strings.SplitSeq(parts[2], ",") {
		if id == "" {
			continue
		}
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return fmt.Errorf("read the server's snapshot: a running transaction: %w", err)
		}
		c.running[n] = struct{}{}
	}
	return nil
}
