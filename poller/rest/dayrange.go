package rest

import "time"

// DayRange is a run of consecutive unsettled UTC days with the same state, as the status page shows it.
type DayRange struct {
	// From and To are the beginnings of the first day and of the last; To is zero if there is no end.
	From, To time.Time
	// State of the days. If they are not closed, Why is the reason, and Next when they are tried again.
	State DayState
	Why   string
	Next  time.Time
}

// DayState is how far a day is that is not settled.
type DayState int

// The states of days.
const (
	Unread    DayState = iota // over, and not closed
	Closed                    // settled follows once the days before it are closed, and their rows are published
	NotClosed                 // cannot be closed now
	Open                      // not over
)
