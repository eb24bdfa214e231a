package status

import "time"

// Settling is the settled part of a resource and the open part behind it. Over REST it has days, from
// PostgreSQL only the time.
type Settling struct {
	// Settled is the time before which no row can still appear, by updated_at. It is zero at first.
	Settled        time.Time `json:"settled,omitzero"`
	OverlapSeconds float64   `json:"overlap_seconds"` // as configured
	// Days, over REST, are those from Settled on, in order, as the instance knows them that polls the resource.
	// Where there are too many ranges of them, there is a gap before the last.
	Days []Days `json:"days,omitempty"`
	// ByFloor is set if a poll of PostgreSQL reads only the open rows that have changed since the pass before.
	ByFloor bool `json:"by_floor,omitzero"`
	// Cursor is the updated_at at which a pass goes on that was cut short.
	Cursor time.Time `json:"cursor,omitzero"`
	// ReplayFrom is the start of a replay in hand. ReplayTo is settled before it.
	ReplayFrom time.Time `json:"replay_from,omitzero"`
	ReplayTo   time.Time `json:"replay_to,omitzero"`
}

// Days is a run of consecutive days with the same state.
type Days struct {
	From  string   `json:"from"`        // 2026-11-20
	To    string   `json:"to,omitzero"` // the last of them; "": there is no end
	State DayState `json:"state"`
	// Why a day cannot be closed, and Next when it is tried again.
	Why  string    `json:"why,omitzero"`
	Next time.Time `json:"next,omitzero"`
}

// DayState is how far a day is that is not settled.
type DayState string

// The states of days.
const (
	DayUnread    DayState = "unread"     // over, and not read whole yet
	DayReplaying DayState = "replaying"  // was settled, and is read and published again
	DayClosed    DayState = "closed"     // read whole: it settles with the days before it
	DayNotClosed DayState = "not_closed" // could not be read whole
	DayOpen      DayState = "open"       // not over: each poll reads what changed
)
