package rest

import "time"

// DayRange is UTC days in a row that are not settled, and of which the same is so: for people.
type DayRange struct {
	// From and To are the beginnings of the first day and of the last; To is zero where there is no end.
	From, To time.Time
	// State is what is so. Why a day is held, and Next when it is tried again.
	State DayState
	Why   string
	Next  time.Time
}

// DayState is how far a day is that is not settled.
type DayState int

// The states of days.
const (
	Unread DayState = iota // over, and not closed
	Closed                 // settled follows once the days before it are, and what was read is published
	Held                   // cannot be closed now
	Open                   // not over
)
