package poller

import (
	"fmt"
	"time"

	"github.com/storestream/storestream/schemas"
)

// heldBack keeps the rows that came with an older updated_at than was published of them.
//
// Such a row is either a lie (a replica lags, a cache kept a page) or the truth (two transactions committed
// in the other order, somebody corrected a date). Published at once, a lie would put an old state over a new
// one for ever: compaction keeps the last record. Thrown away, the truth would be lost. So the row is looked
// at again after the overlap. The same older state, met twice and that far apart, is published.
type heldBack struct {
	overlap time.Duration
	rows    map[int64]heldRow
	// beyond counts the rows of the pass in hand for which there was no room, and earliestBeyond is the smallest
	// updated_at among them. Later passes meet them again, because settled stays before them: one after the
	// other finds room when those that are noted have been looked at.
	beyond         int
	earliestBeyond schemas.Instant
}

type heldRow struct {
	updatedAt schemas.Instant
	hash      uint64
	since     time.Time
}

// maxHeldBack bounds the memory and the second looks: some 80 bytes a row.
const maxHeldBack = 10_000

func newHeldBack(overlap time.Duration) heldBack {
	return heldBack{overlap, map[int64]heldRow{}, 0, schemas.MaxInstant}
}

// newPass begins a pass, which meets again what did not find room.
func (h *heldBack) newPass() { h.beyond, h.earliestBeyond = 0, schemas.MaxInstant }

// confirmed notes an older state of a row. It is true when the same state was noted at least overlap ago.
func (h *heldBack) confirmed(row *schemas.Record, hash uint64, now time.Time) bool {
	held, there := h.rows[row.ID]
	switch {
	case there && held.updatedAt == row.UpdatedAt && held.hash == hash:
		return now.Sub(held.since) >= h.overlap
	case there || len(h.rows) < maxHeldBack:
		h.rows[row.ID] = heldRow{row.UpdatedAt, hash, now}
	default:
		h.beyond++
		h.earliestBeyond = min(h.earliestBeyond, row.UpdatedAt)
	}
	return false
}

func (h *heldBack) forget(id int64) {
	if len(h.rows) > 0 {
		delete(h.rows, id)
	}
}

// empty says that no row is held back.
func (h *heldBack) empty() bool { return len(h.rows) == 0 && h.beyond == 0 }

// earliest is the smallest updated_at held back, MaxInstant if there is none.
func (h *heldBack) earliest() schemas.Instant {
	e := h.earliestBeyond
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
	var next time.Time
	for _, held := range h.rows {
		if due := held.since.Add(h.overlap); next.IsZero() || due.Before(next) {
			next = due
		}
	}
	text := fmt.Sprintf("%d rows came back older than they were published; they are looked at again from %s on",
		len(h.rows), schemas.InstantOf(next))
	if h.beyond > 0 {
		text += fmt.Sprintf(", and after them %d more: at most %d are held back at once", h.beyond, maxHeldBack)
	}
	return text
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
