package postgres

import (
	"cmp"
	"errors"
	"time"
)

// lagPatience limits the time that a standby may lag. After that it belongs to another cluster.
const lagPatience = 10 * time.Minute

// errLagging means that a server shows less than the one that answered before.
var errLagging = errors.New("the server shows less than the one that answered before: " +
	"the pooler leads to servers that are not equally up to date")

// lineage makes sure that every chunk follows those before it in one history of the database.
type lineage struct {
	latest   *clock // of the last transaction that was used, or nil
	timeline uint32 // zero if it is not known
	// lagging is the time since which servers have shown less than latest. Zero means that they do not.
	lagging time.Time
}

// follow makes c the latest clock, or returns why a chunk that was read under it may not be used:
// errLagging, or a *poller.LostError, after which a pass begins a new lineage.
func (l *lineage) follow(c *clock) error {
	if l.latest != nil {
		replaced := c.timeline != 0 && c.timeline < l.timeline // a primary that was replaced still answers
		switch {
		case !replaced && !c.standby && c.next < l.latest.xmax: // ids are given out again. A standby may only lag
			return lostDatabase("the next transaction gets id %d, and %d was over", c.next, l.latest.xmax-1)
		case l.timeline != 0 && c.timeline > l.timeline:
			return lostDatabase("its timeline is %d, and was %d", c.timeline, l.timeline)
		case replaced, c.olderThan(l.latest):
			if err := l.wait(); err != nil {
				return err
			}
			return lostDatabase("it has shown less than before for too long")
		}
	}
	*l = lineage{latest: c, timeline: cmp.Or(c.timeline, l.timeline)}
	return nil
}

// join makes l follow what another source has read of the same database, too. A nil other has read nothing.
func (l *lineage) join(other *lineage) {
	if other == nil || other.latest == nil {
		return
	}
	if l.latest == nil || l.latest.olderThan(other.latest) {
		l.latest = other.latest
	}
	l.timeline = max(l.timeline, other.timeline)
}

// wait returns errLagging, for as long as lagPatience.
func (l *lineage) wait() error {
	if l.lagging.IsZero() {
		l.lagging = time.Now()
	}
	if time.Since(l.lagging) < lagPatience {
		return errLagging
	}
	return nil
}

// lostDatabase returns the error for a database, or a history of it, that is not the one that was read
// before. No horizon counts any more, and rows that were read may be gone.
func lostDatabase(format string, args ...any) error {
	return lost(true, "the database was restored or promoted, or is another one: "+format, args...)
}

// reached records the timeline at the beginning of a pass. A standby's timeline counts too, because no
// primary of an earlier one may be read. If the timeline has risen, reached returns a *poller.LostError.
func (l *lineage) reached(timeline uint32) error {
	if before := l.timeline; before != 0 && timeline > before {
		return lostDatabase("its timeline is %d, and was %d", timeline, before)
	}
	l.timeline = max(l.timeline, timeline)
	return nil
}
