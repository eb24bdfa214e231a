package postgres

import (
	"fmt"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

const (
	// maxRunning limits the transactions in flight that a floor names, because every watermark has a floor.
	maxRunning = 64
	// maxBehind limits the distance from a floor to the next id. age() has 32 bits: from 2^31 on new rows would
	// look old.
	maxBehind = 1_000_000_000
)

// newFloor returns the floor of the rows stamped from or later that the snapshot shown shows.
func newFloor(shown snapshot, from schemas.Instant) *watermark.Floor {
	return &watermark.Floor{Snapshot: shown.String(), From: from}
}

// trusts returns the snapshot of a floor, or why a pass that begins at from under c may not use it.
func trusts(f *watermark.Floor, c *clock, from schemas.Instant) (snapshot, *poller.LostError) {
	s, err := parseSnapshot(f.Snapshot)
	switch {
	case err != nil:
		return s, lost(false, "%v", err)
	case f.From > from:
		return s, lost(false, "the floor does not cover rows before %s", f.From)
	case s.xmax > c.next:
		return s, lost(true, "the server has not given out the transaction ids of the floor: it lags, or was "+
			"restored")
	case c.next-s.low(c) > maxBehind:
		return s, lost(false, "more than a billion transactions have passed")
	}
	return s, nil
}

// lost returns an error for a pass that cannot use the results of earlier ones. settled stays.
func lost(sweep bool, format string, args ...any) *poller.LostError {
	return &poller.LostError{Why: fmt.Sprintf(format, args...), From: schemas.MaxInstant, Sweep: sweep}
}
