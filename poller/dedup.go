package poller

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// dedup knows the published version of each row that a later pass may read again, of this poller or of a
// successor. So a read that overlaps the one before publishes a row again only if it changed.
//
// A marked version was published before the replay in hand. It does not suppress an equal row, but it still
// exposes an older one. If the source catches up (Settings.CatchesUp), marked versions are not needed:
// dedup drops all of them when they take too much room. Then the topic may show an older state until the
// source shows the newer one again.
//
// Which versions may be read again, and why dedup knows them:
//   - A row with an updated_at before settled is not read again: passes begin at settled. Such rows are
//     evicted.
//   - A version that the source called final is not, once a watermark says so: its cursor, load or floor lies
//     behind the batch that brought it. Until that watermark is written the version is remembered like any
//     other, because a successor would begin before it. For these, a batch may exceed the memory. While a row
//     is deferred, or lacks its dead letter, none of these moves, so no version counts as final.
//   - Every other version is remembered before it is published. A row that does not fit is not published, and
//     the resource is blocked (state.memoryFull).
//   - A successor finds all versions. In the data topic they are at or after Watermark.DedupFrom, which is no
//     later than the time of any record here. The others are in Watermark.Future.
//   - If the source can use neither cursor nor floor (LostError), final versions may come again after all.
//     Then a takeover reads back everything from settled on. If settled itself goes back, it reads back all.
type dedup struct {
	// rows has the versions, and the Text of their records as notes. The source reads them (find) beside the
	// poller. So the poller holds mu while it changes them during a read.
	rows   *rowset.Set
	mu     sync.Mutex
	future futureRows
	// oldest is no later than any updated_at in rows, but for those of final.
	oldest schemas.Instant
	// final are the rows of the batch in hand that need not be remembered once the watermark lies behind it.
	final []watermark.FutureRow
	// evicted is when rows were last dropped, settled where settled was then.
	evicted time.Time
	settled schemas.Instant
	// lacking counts the records that a takeover could not restore.
	lacking int
	// passedAgain is set once settled went back. dedup has forgotten the rows that settled had passed, and how
	// much earlier than its updated_at a row of the future was written. So a takeover reads the whole topic.
	passedAgain bool
	// catchesUp is that of Settings. unmarkedOnly: marked versions took too much room.
	catchesUp, unmarkedOnly bool
}

// newDedup begins with the rows that the watermark itself keeps.
func newDedup(settings *Settings, mark *watermark.Watermark) *dedup {
	d := &dedup{rows: rowset.New(settings.Memory), oldest: schemas.MaxInstant, settled: schemas.MinInstant,
		catchesUp: settings.CatchesUp, future: futureRows{far: map[int64]*watermark.FutureRow{}}}
	for _, row := range mark.Future {
		if row.UpdatedAt.Millis() >= mark.Settled.Millis() {
			row.Old = row.Old && mark.Replay != nil
			d.put(row, schemas.MinInstant)
		}
	}
	return d
}

// restore takes a record of the data topic during a takeover, which goes on at mark.
func (d *dedup) restore(r watermark.Published, mark *watermark.Watermark) {
	from := max(mark.Settled, mark.DedupFrom)
	if r.Beyond {
		from = mark.Settled // only the watermark that was lost knew whether it is met again
	}
	if r.Tombstone || r.UpdatedAt.Millis() < from.Millis() {
		// No read meets such a row, but its record replaces what an earlier one said of it.
		d.forget(r.ID)
		return
	}
	old := r.Old && mark.Replay != nil && r.UpdatedAt.Millis() >= mark.Replay.From.Millis()
	if old && d.unmarkedOnly {
		d.forget(r.ID) // an earlier record may be unmarked, and this one has replaced it
		return
	}
	d.put(watermark.FutureRow{ID: r.ID, UpdatedAt: r.UpdatedAt, Hash: r.Hash, Old: old}, r.Time)
	d.oldest = min(d.oldest, r.UpdatedAt)
}

// put remembers a row that was published already, with this record time. If it does not fit, the poller is
// blocked before it reads.
func (d *dedup) put(row watermark.FutureRow, recordTime schemas.Instant) {
	v := rowset.VersionOf(row.UpdatedAt, row.Hash)
	v.Marked = row.Old
	if !d.rows.Put(row.ID, v) && (!d.dropMarked() || !v.Marked && !d.rows.Put(row.ID, v)) {
		d.lacking++
	}
	d.future.add(row, recordTime)
}

// dropMarked makes room: it drops all marked versions. If the source does not catch up, or dropMarked has run
// before in this replay, it does nothing and returns false.
func (d *dedup) dropMarked() bool {
	if !d.catchesUp || d.unmarkedOnly {
		return false
	}
	d.unmarkedOnly = true
	d.rows.DropMarked()
	d.findOldest()
	return true
}

// remember notes that the transaction in hand publishes row. It returns false if there is no room, even
// after it dropped the rows that settled has passed. No later pass reads a row below settled. wall is a
// time of the wall clock from before the commit.
func (d *dedup) remember(row *schemas.Record, hash uint64, final bool, settled, wall schemas.Instant) bool {
	if row.UpdatedAt.Millis() < settled.Millis() {
		d.forget(row.ID)
		return true
	}
	known := d.rows.Len()
	for v := rowset.VersionOf(row.UpdatedAt, hash); !d.rows.Put(row.ID, v); known = d.rows.Len() {
		if d.settled < settled { // else they were dropped already
			d.evict(settled)
		} else if !d.dropMarked() {
			if !final {
				return false
			}
			d.rows.PutBeyond(row.ID, v)
			break
		}
	}
	if row.Text != 0 {
		d.rows.Note(row.ID, row.Text)
	}
	if final && d.rows.Len() > known {
		d.final = append(d.final, watermark.FutureRow{ID: row.ID, UpdatedAt: row.UpdatedAt, Hash: hash})
	} else {
		d.oldest = min(d.oldest, row.UpdatedAt)
	}
	// The record's time is that of its writing if updated_at is later. An earlier time than that is safe.
	d.future.add(watermark.FutureRow{ID: row.ID, UpdatedAt: row.UpdatedAt, Hash: hash}, min(wall, row.UpdatedAt))
	return true
}

// find is Request.Find.
func (d *dedup) find(rows []rowset.Noted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows.Find(rows)
}

// forget drops the version of a row.
func (d *dedup) forget(id int64) {
	d.rows.Remove(id)
	delete(d.future.far, id)
}

// batchDealtWith ends a batch. passed is set if the next watermark lies behind it. Then the final rows of the
// batch need not be remembered. forgot is set if dedup forgot one.
func (d *dedup) batchDealtWith(passed bool) (forgot bool) {
	for _, row := range d.final {
		v, known := d.rows.Get(row.ID)
		switch {
		case !known || !v.Equal(row.UpdatedAt.Millis(), row.Hash): // another version came after it
		case passed:
			d.rows.Remove(row.ID) // future keeps it: if the floor is lost, a takeover has to find it
			forgot = true
		default:
			d.oldest = min(d.oldest, row.UpdatedAt)
		}
	}
	d.final = d.final[:0]
	return forgot
}

// from is the watermark's DedupFrom and Future.
func (d *dedup) from(settled schemas.Instant) (schemas.Instant, []watermark.FutureRow) {
	oldest := d.oldest
	for _, row := range d.final {
		oldest = min(oldest, row.UpdatedAt)
	}
	from, far := d.future.from(settled)
	if d.passedAgain {
		return schemas.MinInstant, far
	}
	return min(from, max(oldest, settled)), far
}

// committed ends a transaction. Once in ten seconds, it drops the rows that settled has passed. They do no
// harm before.
func (d *dedup) committed(settled schemas.Instant, now time.Time) {
	if len(d.final) == 0 && now.Sub(d.evicted) >= 10*time.Second { // final rows go by themselves
		d.mu.Lock()
		defer d.mu.Unlock()
		d.evict(settled)
		d.evicted = now
	}
}

// evict drops the rows that settled has passed.
func (d *dedup) evict(settled schemas.Instant) {
	d.settled = settled
	d.rows.Evict(settled)
	d.findOldest()
}

func (d *dedup) findOldest() {
	oldest := int64(math.MaxInt64)
	for _, v := range d.rows.All() {
		oldest = min(oldest, v.Millis)
	}
	switch {
	case d.lacking > 0: // how old those are is not known
		d.oldest = schemas.MinInstant
	case oldest < math.MaxInt64:
		d.oldest = schemas.InstantOfMillis(oldest)
	default:
		d.oldest = schemas.MaxInstant
	}
}

// readAgain makes a takeover read back the rows from settled on, because dedup does not know all of them. If
// a load goes on, no pass reads the earlier rows that it has published, but those that are remembered.
func (d *dedup) readAgain(load *watermark.Load) {
	from := schemas.MinInstant
	if load != nil {
		from = load.Before
	}
	d.oldest = min(d.oldest, from)
}

// replay begins a replay: a version from before it does not suppress an equal row.
func (d *dedup) replay(load *watermark.Load) {
	d.readAgain(load)
	for _, row := range d.future.far {
		row.Old = true
	}
}

// unmark ends a replay.
func (d *dedup) unmark() {
	d.unmarkedOnly = false
	d.rows.Unmark()
	for _, row := range d.future.far {
		row.Old = false
	}
}

// futureRows knows the rows whose updated_at was in the future when they were written: the service's clock
// runs ahead, or a program stamped a date far off. Brokers refuse record times in the future, so such a
// record carries the time of its writing. If a takeover read the topic from settled on, it would not find the
// record, and the row would be published twice. So it begins as much earlier as these records are.
//
// A few that lie far off are kept in the watermark itself: one row of the year 9999 would else make every
// takeover read the whole topic.
type futureRows struct {
	far   map[int64]*watermark.FutureRow
	ahead schemas.Instant // of the others: the most by which an updated_at is after its record's time
	until schemas.Instant // their latest updated_at
}

const (
	// futureMargin allows for a step back of the writer's clock between this and the producer's stamp.
	futureMargin = schemas.Instant(time.Minute / time.Microsecond)
	// Rows that lie further ahead than farAhead are kept one by one, maxFarRows of them: some 90 bytes each
	// in every watermark.
	farAhead   = schemas.Instant(time.Hour / time.Microsecond)
	maxFarRows = 64
)

// add notes a row that is written with this record time. It replaces what an earlier version said.
func (f *futureRows) add(row watermark.FutureRow, recordTime schemas.Instant) {
	if len(f.far) > 0 { // a call for each row shows in a benchmark
		delete(f.far, row.ID)
	}
	if recordTime.Millis() >= row.UpdatedAt.Millis() {
		return
	}
	ahead := row.UpdatedAt - recordTime
	if ahead > farAhead && len(f.far) < maxFarRows {
		kept := row // so that the other rows do not go to the heap
		f.far[row.ID] = &kept
		return
	}
	f.ahead, f.until = max(f.ahead, ahead+futureMargin), max(f.until, row.UpdatedAt)
}

// from returns the earliest record time of a row whose updated_at is at or after settled, or MaxInstant if no
// such row is from the future, and the rows that are kept one by one. It drops what settled has passed: by
// milliseconds, because the topic keeps no more of an updated_at.
//
// It goes by settled and not by the oldest row in memory. If the source loses its floor, a final row may come
// again, and only a successor that has read its record knows how far ahead it is.
func (f *futureRows) from(settled schemas.Instant) (from schemas.Instant, far []watermark.FutureRow) {
	if from = schemas.MaxInstant; f.until.Millis() < settled.Millis() {
		f.ahead = 0
	} else if f.ahead > 0 {
		from = max(settled-f.ahead, schemas.MinInstant)
	}
	for _, id := range slices.Sorted(maps.Keys(f.far)) {
		if row := f.far[id]; row.UpdatedAt.Millis() < settled.Millis() {
			delete(f.far, id)
		} else {
			far = append(far, *row)
		}
	}
	return from, far
}
