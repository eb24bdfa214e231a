package health

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// Settling is the open part of a resource behind settled. Over REST it has days.
type Settling struct {
	// OverlapSeconds is the configured overlap.
	OverlapSeconds float64 `json:"overlap_seconds"`
	// Days lists ranges of days that are not settled, over REST, in order. They are as the instance that polls the
	// resource knows them. If there are many ranges, the ones before the last are left out.
	Days []Days `json:"days,omitempty"`
	// ByFloor is set if a PostgreSQL poll reads only rows changed since the pass before. These are open rows.
	ByFloor bool `json:"by_floor,omitzero"`
	// Cursor is the updated_at at which a pass continues that was cut short.
	Cursor *schemas.Instant `json:"cursor,omitempty"`
	// LoadsFrom is the updated_at at which a first load or replay began. It is nil if that is not known. The end is
	// now.
	LoadsFrom *schemas.Instant `json:"loads_from,omitempty"`
	// LoadsAt is the updated_at that it has reached.
	LoadsAt *schemas.Instant `json:"loads_at,omitempty"`
	// LoadsPart is the part of the table's blocks that it has read, from 0 to 1. It is set if the table is read in
	// the order of its blocks.
	LoadsPart float64 `json:"loads_part,omitzero"`
}

// Days is a run of consecutive days with the same state.
type Days struct {
	// From is the first day, such as 2026-11-20.
	From string `json:"from"`
	// To is the last day. It is "" if there is no end.
	To string `json:"to,omitzero"`
	// State is `unread`, `closed`, `not_closed` or `open`. An unread day is over, and not read completely yet. A
	// closed one is read completely: it settles with the days before it. A day is not_closed if it could not be
	// read completely. An open day is not over: each poll reads its changes.
	State string `json:"state"`
	// Why is why a day cannot be closed.
	Why string `json:"why,omitzero"`
	// Next is when that is tried again.
	Next time.Time `json:"next,omitzero"`
}
