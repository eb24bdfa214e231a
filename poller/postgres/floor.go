package postgres

import (
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

// newFloor returns the floor of the rows stamped `from` or later that shown shows.
func newFloor(shown snapshot, from schemas.Instant) *watermark.Floor {
	return &watermark.Floor{Snapshot: shown.String(), From: from}
}

// trusts returns the snapshot of a floor, or says why a pass from `from` on that begins under c may not go by
// it.
func trusts(f *watermark.Floor, c *clock, from schemas.Instant) (snapshot, *poller.LostError) {
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
