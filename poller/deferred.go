package poller

import (
	"fmt"
	"time"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// deferred keeps the rows that wait for a second look, because they may be older than their published
// version: those with an older updated_at, and those with the same one and other content.
//
// An older updated_at is either false (a replica lags, a cache kept a page) or true (two transactions
// committed in the other order, a person corrected a date). If a false one were published at once, an old
// state would replace a new one in the topic, because compaction keeps the last record. If a true one were
// dropped, it would be lost. So the poller looks at the row again after the overlap, and publishes an older
// state that the source has shown twice, that far apart.
//
// The same updated_at says nothing. REST stamps whole seconds, and a row may change twice within one. Then
// replicas that lag differently show A B A B, and each would be a change of the one before. It does not
// help to remember that A was published before B: if the first answer came from the replica that is ahead,
// A was not. So any state that differs from the published one is deferred. After an overlap, every replica
// that lags by less than that shows the published state or a later one:
//
//	read from  ahead  behind  ahead  behind             both, an overlap later
//	shows      B      A       B      A                  B
//	           |      |       |      |                  |
//	           sent   noted   a repeat, forgets A       again a repeat
//
//	shows      A      B                                 B
//	           sent   noted                             the same twice, an overlap apart: it is published
//
// If a poll came between two changes within one second, the second one is late by an overlap. So is a
// change that leaves updated_at alone. A source that catches up (PostgreSQL) defers neither: it uses no
// replica that shows less than was read before, so other content is newer content.
type deferred struct {
	overlap time.Duration
	most    int // rows at once
	rows    map[int64]reconcile.Confirmation
	// beyond are the rows for which there was no room. They find room when the others have been looked at.
	beyond leftovers
}

// maxDeferred limits the memory, some 80 bytes a row, and the second looks.
const maxDeferred = 10_000

func newDeferred(overlap time.Duration) deferred {
	return deferred{overlap, maxDeferred, map[int64]reconcile.Confirmation{}, newLeftovers()}
}

// note notes another state of a row, which the source may have had as early as at shown. It reports
// whether that state counts by now. It goes by shown, because an answer from a cache says nothing about the
// time since it was made. Otherwise a cache could show a lagging server's state for longer than an overlap.
func (d *deferred) note(row *schemas.Record, hash uint64, now, shown time.Time) (counts bool) {
	noted, there := d.rows[row.ID]
	if !there && len(d.rows) >= d.most {
		d.beyond.add(row.UpdatedAt)
		return false
	}
	state := rowset.VersionOf(row.UpdatedAt, hash)
	noted.Shown(state, shown, now)
	d.rows[row.ID] = noted
	return noted.Counts(state, d.overlap)
}

// empty reports whether no row is deferred.
func (d *deferred) empty() bool { return len(d.rows) == 0 && d.beyond.rows() == 0 }

// earliest returns the smallest updated_at that is deferred, or MaxInstant.
func (d *deferred) earliest() schemas.Instant {
	e := d.beyond.earliest()
	for _, row := range d.rows {
		e = min(e, schemas.InstantOfMillis(row.State().Millis))
	}
	return e
}

// delays returns why the deferred rows delay settling, "" if there are none.
func (d *deferred) delays() string {
	if d.empty() {
		return ""
	}
	return fmt.Sprintf("%s came back older than published, or with the same updated_at and other content: "+
		"looked at again from %s on, at most %s at a time", terminal.Plural(len(d.rows)+d.beyond.rows(), "row"),
		schemas.InstantOf(d.nextDue()), terminal.Count(d.most))
}

// nextDue returns when the next row is to be looked at again, or the zero time.
func (d *deferred) nextDue() (next time.Time) {
	for _, row := range d.rows {
		if due := row.Due(d.overlap); next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next
}

// due returns the rows to be looked at again now, by id.
func (d *deferred) due(now time.Time) map[int64]Suspect {
	rows := map[int64]Suspect{}
	for id, row := range d.rows {
		if !now.Before(row.Due(d.overlap)) {
			rows[id] = Suspect{ID: id, UpdatedAt: schemas.InstantOfMillis(row.State().Millis),
				CreatedAt: schemas.MinInstant}
		}
	}
	return rows
}

// giveUp forgets the rows that are still due after a look at them: the source no longer shows that state. If
// there is another one, a pass reads it.
func (d *deferred) giveUp(lookedAt map[int64]Suspect, now time.Time) {
	for id := range lookedAt {
		if row, there := d.rows[id]; there && !now.Before(row.Due(d.overlap)) {
			delete(d.rows, id)
		}
	}
}
