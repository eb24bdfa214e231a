package verify

import "time"

// Wait is what one resource waits for before its rows that differ are looked at again.
type Wait struct {
	Resource string
	Rows     int  // that differ still
	Last     bool // what differs then is different
	// Handover is set while no instance has the resource. The time of the next owner starts with it.
	Handover bool
	// Deferred: the running instance defers rows, which it publishes when they were shown the same for
	// Overlap.
	Deferred bool
	Overlap  time.Duration
	// Until is when they are looked at again at the latest. With Handover it is unknown, and zero.
	Until time.Time
}
