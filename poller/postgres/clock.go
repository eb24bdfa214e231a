package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/storestream/storestream/schemas"
)

// clockSQL is the first query of each transaction, so it runs under the same snapshot as the query for the
// rows.
//
// The order of evaluation matters, and the query forces it. BEGIN fixes now(). The snapshot is taken before a
// query runs. The CTE is materialized before age() looks at the counter. If the next id were read before the
// clock, a transaction could start, write and stamp in between: its id would lie past the horizon, and its
// stamp before the horizon by more than overlap allows. On a standby the clock is the commit time of the last
// transaction that it replayed: the primary logged whatever is replayed later after that commit.
//
// The snapshot's xmax is the last *completed* id plus one. With one open writer on a quiet database it stands
// still, below the id of that writer, and "xmin >= xmax" is true at once. age() counts from the id that is
// given out next, so it makes that id out of xmax.
const clockSQL = `WITH c AS MATERIALIZED (
  SELECT pg_is_in_recovery() AS standby, pg_last_xact_replay_timestamp() AS replayed,
         CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END AS position)
SELECT now(), c.standby, c.replayed, c.position, s::text,
       pg_snapshot_xmax(s)::text::bigint + age(pg_snapshot_xmax(s)::xid)
FROM c, pg_current_snapshot() AS s`

// clock says when a transaction of ours ran, by the server's clock and by its transaction ids. Ids are 64
// bits wide.
type clock struct {
	// time: no transaction with an id of next or more had written anything before it. A standby that has
	// replayed no transaction since it started has none (known is false).
	time  schemas.Instant
	known bool
	// The snapshot: ids below xmin are over. Ids from xmax on, and those in running, are not.
	xmin, xmax uint64
	running    map[uint64]struct{}
	// next is the id that is given out next, read after the snapshot was taken.
	next    uint64
	standby bool
	// position is how far a standby had replayed the log.
	position uint64
}

func (c *clock) horizon() horizon { return horizon{time: c.time, next: c.next} }

// inFlight says whether the transaction was running, or had not begun, under this snapshot. A standby does
// not list its running transactions: there, only what is below xmin is known to be over.
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

// olderThan says whether c shows less than before did: a transaction that was over in before is not over in
// c. Only another server can do that, behind a pooler that leads to several. A row that moved ahead of the
// key between two such chunks would be read in neither.
//
// Two standbys, or a primary and a standby, are compared by what each tells: by the running transactions
// where both list them, by the replay position where both are standbys. What then is left is a race of
// microseconds. It can make a row late, not lost: settling looks at ids alone.
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

// rewound says whether c cannot follow before in one history: a primary will give out ids that were used up
// before. The database was restored, or is another one, and no horizon holds any more. A standby may merely
// lag.
func (c *clock) rewound(before *clock) bool { return !c.standby && c.next < before.xmax }

// parseClock reads a row of clockSQL, in binary format.
func parseClock(v [][]byte) (*clock, error) {
	if len(v) != 6 || len(v[0]) != 8 || len(v[1]) != 1 || len(v[5]) != 8 {
		return nil, errors.New("read the server's clock: an answer of another shape than PostgreSQL's")
	}
	at := v[0]
	c := &clock{standby: isTrue(v[1]), next: binary.BigEndian.Uint64(v[5]), known: true}
	if c.standby {
		at, c.known = v[2], len(v[2]) == 8
		if len(v[3]) == 8 {
			c.position = binary.BigEndian.Uint64(v[3])
		}
	}
	if c.known {
		c.time = instantOf(int64(binary.BigEndian.Uint64(at)))
	}
	if err := c.parseSnapshot(string(v[4])); err != nil {
		return nil, fmt.Errorf("read the server's snapshot %q: expected xmin:xmax:ids: %w", v[4], err)
	}
	return c, nil
}

// parseSnapshot reads pg_snapshot's text form, xmin:xmax:id,id,...
func (c *clock) parseSnapshot(text string) error {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return fmt.Errorf("%d parts", len(parts))
	}
	var err error
	if c.xmin, err = strconv.ParseUint(parts[0], 10, 64); err != nil {
		return err
	}
	if c.xmax, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return err
	}
	c.running = map[uint64]struct{}{}
	if parts[2] == "" {
		return nil
	}
	for text := range strings.SplitSeq(parts[2], ",") {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		c.running[id] = struct{}{}
	}
	return nil
}
