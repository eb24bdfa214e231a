package verify

import "time"

// Wait is what one resource waits for before its rows that differ are looked at again.
type Wait struct {
	Resource string
	Rows     int  // that differ still
	Last     bool // what differs then is different
	// Handover: nobody has the resource now. Whoever gets it has its time from then on.
	Handover bool
	// HeldBack: the running instance holds rows back, which it publishes when they were shown the same for
	// Overlap.
	HeldBack bool
	Overlap  time.Duration
	// Until is when they are looked at again at the latest; zero with Handover, when nobody can say.
	Until time.Time
}
