package status

import "time"

// Settling says what of a resource is settled and what is open behind that. Over REST it goes by days, from
// PostgreSQL by the time alone.
type Settling struct {
	// Settled: no row with an earlier updated_at can still appear. Zero: nothing is settled.
	Settled        time.Time `json:"settled,omitzero"`
	OverlapSeconds float64   `json:"overlap_seconds"` // as configured
	// Days, over REST, are those from Settled on, in order, as the instance knows them that polls the resource.
	// Where there are too many ranges of them, there is a gap before the last.
	Days []Days `json:"days,omitempty"`
	// ByFloor, from PostgreSQL: of what is open a poll reads only what has changed since the pass before.
	ByFloor bool `json:"by_floor,omitzero"`
	// Cursor is the updated_at at which a pass goes on that was cut short.
	Cursor time.Time `json:"cursor,omitzero"`
	// ReplayFrom is where a replay in hand began, ReplayTo where settled stood before.
	ReplayFrom time.Time `json:"replay_from,omitzero"`
	ReplayTo   time.Time `json:"replay_to,omitzero"`
}

// Days are days in a row of which the same is so.
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
	DayUnread    DayState = "unread"    // over, and not read whole yet
	DayReplaying DayState = "replaying" // was settled, and is read and published again
	DayClosed    DayState = "closed"    // read whole: it settles with the days before it
	DayHeld      DayState = "held"      // could not be read whole
	DayOpen      DayState = "open"      // not over: each poll reads what changed
)
