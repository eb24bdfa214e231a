package dialect

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// The values of UpdatedTo and CreatedTo.
const (
	Whole    = "whole"
	Midnight = "midnight"
)

// UpdatedTo and CreatedTo ask how much of day D is in the answer to `updated_to=D` and `created_to=D`.
// Nothing says that the service reads both alike.
//
// The document says "on or before the date". A service that compares times with the date takes that for "at
// or before its midnight", and leaves out all the rest of D. If it does, the last day of every window is
// asked for with the day after. That adds no more than the midnight itself, which the next window shows
// again.
var (
	UpdatedTo = toDate("updated_to")
	CreatedTo = toDate("created_to")
)

func toDate(name string) *Property {
	return &Property{
		Name:     name,
		Question: "Which rows of day D does " + name + "=D include?",
		Plain:    Whole,
		Means: map[string]string{
			Whole:    "the service takes in all of the last day",
			Midnight: "the service reads to_ dates as midnights: they are asked for with the day after",
		},
	}
}

const (
	// Quarter divides the midnights of all zones.
	Quarter = 15 * 60 * schemas.Instant(1e6)
	// latestMidnight is when a day begins in the last zone, after it began in UTC.
	latestMidnight = 12 * time.Hour
)

// ToDate is the proof, within one read, that a to_ date takes in its whole day. Its zero value has shown
// nothing. Two kinds of rows would be missing if the to_ date took in only the midnight. One is a row later
// than any zone's midnight of the last day asked for. The other comes from a day that was asked for alone: a
// row at no zone's midnight, or rows at two times of day.
type ToDate struct {
	// Whole is set once days were shown to be whole.
	Whole bool
	// alone is the time of day of all rows that days asked for alone have shown: perhaps it is the service's
	// midnight, and then such rows are missed by no reading. hasAlone is set if there was such a row.
	alone    schemas.Instant
	hasAlone bool
}

// Met takes the time of a row in the answer to days. The last of these days begins at last.
func (t *ToDate) Met(at, last schemas.Instant) {
	t.Whole = t.Whole || at > last.Add(latestMidnight)
}

// MetAlone takes the time of a row in the answer to one day.
func (t *ToDate) MetAlone(at schemas.Instant) {
	t.Whole = t.Whole || at%Quarter != 0 || t.hasAlone && t.Decides(at)
	t.alone, t.hasAlone = timeOfDay(at), true
}

// Decides tells whether a row of that time, asked for in a day alone, can tell the two values apart. A row at
// the one time of day that such days have shown cannot.
func (t *ToDate) Decides(at schemas.Instant) bool { return !t.hasAlone || timeOfDay(at) != t.alone }

func timeOfDay(at schemas.Instant) schemas.Instant { return at - at.Day() }

// NotMidnight notes that an answer contradicts Midnight. Until now, rows of the day after may have been taken
// for rows of another zone. So Days is unknown again too, unless the configuration sets it.
func (d *Dialect) NotMidnight(to *Property, evidence string) {
	d.Prove(to, "", evidence)
	d.mu.Lock()
	_, set := d.set[Days.Name]
	d.mu.Unlock()
	if !set {
		d.Prove(Days, "", "it was shown while "+to.Name+" was taken for a midnight")
	}
}

// PastMidnight tells whether a row of that time contradicts Midnight. The to_ date was the day that begins at
// last: the row is later than that day's midnight in any zone.
func PastMidnight(at, last schemas.Instant) bool { return at > last.Add(latestMidnight+Grace) }
