package rest

import (
	"maps"
	"time"
)

const (
	// A day that cannot be closed costs hundreds of requests. It is tried again after firstPause, then after
	// twice as long each time, at most lastPause.
	firstPause = 30 * time.Second
	lastPause  = time.Hour
)

// days has the past days from settled on that a read has closed, or could not close.
type days map[day]pastDay

// pastDay is what reads have shown of a day. Its zero value is a day that no read has tried to close.
type pastDay struct {
	// closed is set if the day was closed behind one that is not closed. This is good only while all its rows
	// are published.
	closed bool
	// why it could not be closed, "" if it was not tried. next is when it is tried again, and pause how long
	// that was after the last try.
	why   string
	next  time.Time
	pause time.Duration
}

// waits reports whether d could not be closed, and it is too early to try again.
func (d pastDay) waits() bool { return d.why != "" && time.Now().Before(d.next) }

// close records that the days of s are closed.
func (d days) close(s span) {
	for n := s.From; n <= s.To; n++ {
		d[n] = pastDay{closed: true}
	}
}

// leaveOpen records that the days of s could not be closed.
func (d days) leaveOpen(s span, why string) {
	for n := s.From; n <= s.To; n++ {
		pause := min(max(firstPause, 2*d[n].pause), lastPause)
		d[n] = pastDay{why: why, next: time.Now().Add(pause), pause: pause}
	}
}

// forgetClosed forgets which days are closed, because their rows may not be published.
func (d days) forgetClosed() {
	maps.DeleteFunc(d, func(_ day, is pastDay) bool { return is.closed })
}

// freeUntil returns the last day from n to last before the next one that is not to be read.
func (d days) freeUntil(n, last day) day {
	for len(d) > 0 && n < last && !d[n+1].closed && !d[n+1].waits() {
		n++
	}
	if len(d) == 0 {
		return last
	}
	return n
}

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

// ranges returns the state of the UTC days from settled on. The service's days before settled are closed,
// and those up to last are over. A UTC day has rows in so many of its neighbors, and their worst state: not
// closed, then unread, then closed.
func (d days) ranges(settled, last, neighbors day) (all []DayRange) {
	n := settled - neighbors
	for ; n+neighbors <= last; n++ {
		one := DayRange{From: startOf(n).Time(), To: startOf(n).Time(), State: Closed}
		for m := max(settled, n-neighbors); m <= n+neighbors && one.State != NotClosed; m++ {
			if is := d[m]; is.why != "" {
				one.State, one.Why, one.Next = NotClosed, is.why, is.next
			} else if !is.closed {
				one.State = Unread
			}
		}
		if k := len(all) - 1; k >= 0 && all[k].State == one.State && all[k].Why == one.Why {
			all[k].To = one.To
			continue
		}
		all = append(all, one)
	}
	return append(all, DayRange{From: startOf(n).Time(), State: Open})
}
