package health

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// Settling is the open part of a resource behind settled. Over REST it has days.
type Settling struct {
	OverlapSeconds float64 `json:"overlap_seconds"` // as configured
	// Days, over REST, are those that are not settled, in order, as the instance knows them that polls the
	// resource. If there are many ranges of them, the ones before the last are left out.
	Days []Days `json:"days,omitempty"`
	// ByFloor is set if a poll of PostgreSQL reads only the open rows that have changed since the pass before.
	ByFloor bool `json:"by_floor,omitzero"`
	// Cursor is the updated_at at which a pass goes on that was cut short.
	Cursor *schemas.Instant `json:"cursor,omitempty"`
	// LoadsFrom and LoadsAt say how far a first load or a replay has come, by updated_at: LoadsFrom is where it
	// began, nil if that is not known. Its end is now.
	LoadsFrom *schemas.Instant `json:"loads_from,omitempty"`
	LoadsAt   *schemas.Instant `json:"loads_at,omitempty"`
	// LoadsPart says how far a first load or a replay has come that reads a table in the order of its blocks:
	// the part of them that was read, from 0 to 1.
	LoadsPart float64 `json:"loads_part,omitzero"`
}

// Days is a run of consecutive days with the same state.
type Days struct {
	From string `json:"from"`        // 2026-11-20
	To   string `json:"to,omitzero"` // the last of them; "": there is no end
	// State is unread (over, and not read whole yet), closed (read whole: it settles with the days before it),
	// not_closed (it could not be read whole) or open (not over: each poll reads what changed).
	State string `json:"state"`
	// Why a day cannot be closed, and Next when it is tried again.
	Why  string    `json:"why,omitzero"`
	Next time.Time `json:"next,omitzero"`
}
