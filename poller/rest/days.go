package rest

import (
	"maps"
	"time"

	"github.com/storestream/storestream/internal/health"
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

// note records that the days of s are closed, or why they could not be.
func (d days) note(s span, why string) {
	for n := s.From; n <= s.To; n++ {
		pause := min(max(firstPause, 2*d[n].pause), lastPause)
		d[n] = pastDay{closed: why == "", why: why, next: time.Now().Add(pause), pause: pause}
	}
}

// forgetClosed forgets which days are closed, because their rows may not be published.
func (d days) forgetClosed() {
	maps.DeleteFunc(d, func(_ day, is pastDay) bool { return is.closed })
}

// freeUntil returns the last day from n to last before the next one that is not to be read.
func (d days) freeUntil(n, last day) day {
	for n < last && !d[n+1].closed && !d[n+1].waits() {
		n++
	}
	return n
}

// ranges returns the state of the UTC days from settled on. The service's days before settled are closed, and
// those up to last are over. neighbors is how many of the service's days on each side may have rows of a UTC
// day. So a UTC day has the worst state among these days (not closed, unread, closed).
func (d days) ranges(settled, last, neighbors day) (all []health.Days) {
	n := settled - neighbors
	for ; n+neighbors <= last; n++ {
		one := health.Days{From: n.String(), To: n.String(), State: "closed"}
		for m := max(settled, n-neighbors); m <= n+neighbors && one.Why == ""; m++ {
			if is := d[m]; is.why != "" {
				one.State, one.Why, one.Next = "not_closed", is.why, is.next.UTC()
			} else if !is.closed {
				one.State = "unread"
			}
		}
		if k := len(all) - 1; k >= 0 && all[k].State == one.State && all[k].Why == one.Why {
			all[k].To = one.To
			continue
		}
		all = append(all, one)
	}
	return append(all, health.Days{From: n.String(), State: "open"})
}
