package poller

import (
	"fmt"
	"time"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// heldBack keeps the rows that may be older than what was published of them: those with an older updated_at,
// and those with the same one and other content.
//
// An older updated_at is either a lie (a replica lags, a cache kept a page) or the truth (two transactions
// committed in the other order, somebody corrected a date). Published at once, a lie would put an old state
// over a new one for ever: compaction keeps the last record. Thrown away, the truth would be lost. So the row
// is looked at again after the overlap. The same older state, met twice and that far apart, is published.
//
// The same updated_at tells nothing: REST stamps whole seconds, and a row may change twice within one. Then
// replicas that lag differently show A B A B, and each would be a change of the one before. It is no help to
// remember that A was published before B: it may not have been, where the first answer came from the replica
// that was ahead. So whatever differs from what was published is held back, whichever of the two it is. Once
// it is looked at again, every replica that lags by less than the overlap shows what was published, or what
// came after it:
//
//	read from  ahead  behind  ahead  behind             both, an overlap later
//	shows      B      A       B      A                  B
//	           |      |       |      |                  |
//	           sent   noted   a repeat, forgets A       again a repeat
//
//	shows      A      B                                 B
//	           sent   noted                             the same twice, an overlap apart: it is published
//
// The second change within one second, or one that leaves updated_at alone, is late by an overlap, if a poll
// came between the two. Not from a source that catches up (PostgreSQL): it goes by no replica that shows less
// than was read before, so other content is newer content.
type heldBack struct {
	overlap time.Duration
	most    int // rows at once
	rows    map[int64]heldRow
	// beyond are the rows for which there was no room. One after the other finds room when those that are
	// noted have been looked at.
	beyond leftovers
}

type heldRow struct {
	updatedAt schemas.Instant
	hash      uint64
	since     time.Time
}

// maxHeldBack bounds the memory and the second looks: some 80 bytes a row.
const maxHeldBack = 10_000

func newHeldBack(overlap time.Duration) heldBack {
	return heldBack{overlap, maxHeldBack, map[int64]heldRow{}, newLeftovers()}
}

// confirmed notes another state of a row, which the source may have had as early as at shown. It returns true
// if the same state was noted at least overlap before shown. It goes by shown, because an answer from a cache
// says nothing about the time since it was made. Otherwise a cache could show a lagging server's state for
// longer than an overlap.
func (h *heldBack) confirmed(row *schemas.Record, hash uint64, now, shown time.Time) bool {
	held, there := h.rows[row.ID]
	switch {
	case there && held.updatedAt == row.UpdatedAt && held.hash == hash:
		return shown.Sub(held.since) >= h.overlap
	case there || len(h.rows) < h.most:
		h.rows[row.ID] = heldRow{row.UpdatedAt, hash, now}
	default:
		h.beyond.add(row.UpdatedAt)
	}
	return false
}

func (h *heldBack) forget(id int64) {
	if len(h.rows) > 0 {
		delete(h.rows, id)
	}
}

// empty says that no row is held back.
func (h *heldBack) empty() bool { return len(h.rows) == 0 && h.beyond.all() == nothingLeft }

// earliest is the smallest updated_at held back, MaxInstant if there is none.
func (h *heldBack) earliest() schemas.Instant {
	e := h.beyond.all().earliest
	for _, held := range h.rows {
		e = min(e, held.updatedAt)
	}
	return e
}

// says is what people are told of the rows that are held back, "" if there are none.
func (h *heldBack) says() string {
	if h.empty() {
		return ""
	}
	text := fmt.Sprintf("%s came back older than published, or with the same updated_at and other content: "+
		"looked at again from %s on", terminal.Plural(len(h.rows), "row"), schemas.InstantOf(h.nextDue()))
	if n := h.beyond.all().rows; n > 0 {
		text += fmt.Sprintf(", and after that %s more: at most %s are held back at once", terminal.Count(n),
			terminal.Count(h.most))
	}
	return text
}

// nextDue is when the first row is to be looked at again; the zero time: none is.
func (h *heldBack) nextDue() (next time.Time) {
	for _, held := range h.rows {
		if due := held.since.Add(h.overlap); next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next
}

// due returns the rows to be looked at again now, by id.
func (h *heldBack) due(now time.Time) map[int64]Suspect {
	rows := map[int64]Suspect{}
	for id, held := range h.rows {
		if now.Sub(held.since) >= h.overlap {
			rows[id] = Suspect{ID: id, UpdatedAt: held.updatedAt, CreatedAt: schemas.MinInstant}
		}
	}
	return rows
}

// giveUp forgets the rows that were looked at again and are still due: the source no longer shows that state.
// If there is another one, a pass meets it.
func (h *heldBack) giveUp(lookedAt map[int64]Suspect, now time.Time) {
	for id := range lookedAt {
		if held, there := h.rows[id]; there && now.Sub(held.since) >= h.overlap {
			delete(h.rows, id)
		}
	}
}
