package health

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// Settling is the open part of a resource behind settled. Over REST it has days.
type Settling struct {
	// OverlapSeconds is `resources.*.overlap`.
	OverlapSeconds float64 `json:"overlap_seconds"`
	// Days lists ranges of unsettled days (REST). They are in order, and as the instance that polls the resource
	// knows them. If there are many ranges, the ones before the last are left out.
	Days []Days `json:"days,omitempty"`
	// ByFloor is set if polls read only changed rows (PostgreSQL). These are the open rows that changed since
	// the pass before.
	ByFloor bool `json:"by_floor,omitzero"`
	// Cursor is the updated_at at which an interrupted pass continues.
	Cursor *schemas.Instant `json:"cursor,omitempty"`
	// LoadsFrom and LoadsAt are start and position of a load, by updated_at. The load is a first load or a
	// replay. LoadsFrom is nil if it is not known. The end is now.
	LoadsFrom *schemas.Instant `json:"loads_from,omitempty"`
	LoadsAt   *schemas.Instant `json:"loads_at,omitempty"`
	// LoadsPart is the part of the blocks that a load has read, 0 to 1. It is set if the table is read in the
	// order of its blocks.
	LoadsPart float64 `json:"loads_part,omitzero"`
}

// Days is a run of consecutive days with the same state.
type Days struct {
	// From and To are the first and last day. To is "" if there is no end. The form is 2026-11-20.
	From string `json:"from"`
	To   string `json:"to,omitzero"`
	// State is `unread`, `closed`, `not_closed` or `open`. An unread day is over, and not read completely yet. A
	// closed one is read completely: it settles with the days before it. A day is not_closed if it could not be
	// read completely. An open day is not over: each poll reads its changes.
	State string `json:"state"`
	// Why and Next are why it cannot be closed, and the next try.
	Why  string    `json:"why,omitzero"`
	Next time.Time `json:"next,omitzero"`
}
