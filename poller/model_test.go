package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// world is a shop to which anything may happen. As a source it satisfies Source's contract and no more: rows
// come in any order, in batches of any size, more often than once. A transaction stamps its rows up to an
// overlap before they can be seen.
type world struct {
	*shop
	t       *rapid.T
	pending []row // stamped, not yet committed
	// previous versions come up once more in a later read, each once (lied, by content). Or, with replicas, each
	// row of each read is shown as it was at some time within the last overlap (history).
	previous map[int64]row
	lied     map[uint64]bool
	replicas bool
	history  map[int64][]past
	// polls are when each poll began, by what our clock said then; the first that it said so of.
	polls map[schemas.Instant]schemas.Instant
	// settled is the largest that a pass has told. What it passed every copy of the service shows alike.
	settled schemas.Instant
	// grain is what the service's stamps are whole multiples of.
	grain schemas.Instant
	// narrow: a pass that need not be complete may read the newest rows alone. heldAt, if it is not MaxInstant,
	// is what settled does not pass for now. lostFrom, if not nil, is where the next pass finds out that what
	// was read before does not count. mostDeferred, if it is not 0, is how many rows are deferred at once.
	// One batch in cutsOff is the last one of its read.
	cutsOff      int
	narrow       bool
	heldAt       schemas.Instant
	lostFrom     *schemas.Instant
	mostDeferred int
	// backwards: updated_at may truly go back.
	backwards bool
	serial    uint64
	// ordered makes the source one that reads in order and has a floor: the number of changes that it has met.
	// written is by which change a row was written last, of changes. lost: the source cannot use floor and
	// cursor, the next time that it gets one.
	ordered, lost bool
	changes       uint64
	written       map[int64]uint64
	// replays are the resets accepted so far, by the length of the topic at that time.
	replays []acceptedReplay
	// What goes on inside a poll is drawn from these, seeded before it: reading and writing run side by side,
	// and rapid draws from one goroutine.
	reading, writing *rand.Rand

	// What only sweeps can repair or must bear (sweep_model_test.go): rows that are nowhere until a time, or
	// shown as they were before; rows whose updated_at went back, or that were deleted; rows that could not
	// be published, or seen, at some time: a replay may have met them then; and rows that lookups do not show,
	// though other reads do.
	hidden   map[int64]schemas.Instant
	unmet    map[int64]bool            // rows that no read has shown since they were hidden
	unborn   map[int64]bool            // rows that no read has ever shown
	blinks   map[int64]schemas.Instant // when the row is updated, and nowhere, once more
	lagging  map[int64]schemas.Instant
	odd      map[int64]bool
	unsure   map[int64]bool
	notFound map[int64]bool
	sweeps   *sweeps // nil: no sweeps

	played rounds.Played
}

// past is a row as it was from a time on.
type past struct {
	row   row
	since schemas.Instant
}

type acceptedReplay struct {
	from schemas.Instant
	at   int
	// settled is where settled stood. What came after that a replica that lags does not show to the pass that
	// ends the replay: such a row was sent just before, and is not sent again.
	settled schemas.Instant
	// ended is the length of the topic when it was cancelled, or was over if it is of a part, and 0 until then.
	ended   int
	request int64
	part    *watermark.Part
	wants   map[int64]bool // rows of a part that were in the topic
}

const modelOverlap = 10 * time.Second

// What a broker says of a transaction that was not committed, or may have been. Here the second one was.
var (
	errAborted = errors.New("aborted")
	errUnknown = errors.New("the outcome is unknown")
)

func newWorld(t *rapid.T, played rounds.Played) *world {
	minuteToMidnight := time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC)
	w := &world{shop: newShop(t, minuteToMidnight), t: t, previous: map[int64]row{}, lied: map[uint64]bool{},
		hidden: map[int64]schemas.Instant{}, blinks: map[int64]schemas.Instant{}, unmet: map[int64]bool{},
		unborn: map[int64]bool{}, notFound: map[int64]bool{}, lagging: map[int64]schemas.Instant{},
		odd: map[int64]bool{}, unsure: map[int64]bool{}, written: map[int64]uint64{}, history: map[int64][]past{},
		polls:   map[schemas.Instant]schemas.Instant{},
		settled: schemas.MinInstant, grain: 1, cutsOff: 20, heldAt: schemas.MaxInstant, played: played}
	w.config.Source, w.publishes, w.config.Sweep = w, w.publish, SweepConfig{}
	w.config.Overlap, w.maxRecordBytes = modelOverlap, 1<<20
	w.maxRows = func() int { return 1 + w.writing.IntN(20) }
	return w
}

// Read is Source's: everything at or after From that was visible when the read began, and whatever else it
// meets.
func (w *world) Read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	return pushed(func(emit func(Batch) error) error { return w.push(ctx, r, emit) })
}

func (w *world) push(_ context.Context, r Request, emit func(Batch) error) error {
	w.find = r.Find
	if r.Kind == Lookup {
		w.now = w.now.Add(time.Duration(w.reading.Int64N(int64(2 * time.Second))))
	}
	settled := w.settles()
	if from := w.lostFrom; r.Kind == Pass && from != nil && r.Floor == nil && r.Cursor == nil &&
		max(r.From, r.Passed) <= max(*from, w.config.Start) {
		w.lostFrom = nil // the watermark says so now
	}
	if from := w.lostFrom; r.Kind == Pass && from != nil {
		return &LostError{Why: "the database's clock went back", From: *from, Sweep: true}
	}
	if w.ordered && r.Kind != Lookup {
		return w.readInOrder(r, settled, emit)
	}
	if r.Kind != Pass {
		// A lookup by day did not look for rows without one.
		everywhere := w.sweeps == nil || r.Everywhere || w.config.Sweep.ByID
		return w.readByDay(w.shown(r), &Done{Started: r.Started, Complete: everywhere}, schemas.MinInstant, emit)
	}
	narrow := w.narrow && !r.Complete && w.reading.IntN(2) == 0
	if narrow {
		r.From = max(r.From, w.now.Add(-modelOverlap))
		settled = schemas.MinInstant
	}
	w.settled = max(w.settled, settled)
	complete := !narrow && w.heldAt == schemas.MaxInstant
	done := &Done{Started: r.Started, Complete: complete, Delayed: w.why()}
	return w.readByDay(w.shown(r), done, settled, emit)
}

// readByDay hands rows over in any order, in batches of any size, some more often than once.
func (w *world) readByDay(rows []row, done *Done, settled schemas.Instant, emit func(Batch) error) error {
	if len(rows) > 0 {
		w.reading.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		rows = append(rows, rows[w.reading.IntN(len(rows)):]...)
	}
	for len(rows) > 0 {
		n := 1 + w.reading.IntN(len(rows))
		b := Batch{Settled: schemas.MinInstant}
		for _, row := range rows[:n] {
			w.put(&b, row)
			w.meet(row.id)
		}
		if err := emit(b); err != nil {
			return err
		}
		rows = rows[n:]
		if w.reading.IntN(w.cutsOff) == 0 {
			return errors.New("connection reset")
		}
	}
	return emit(Batch{Settled: settled, Done: done})
}

// settles is up to where nothing can appear any more, on no copy of the service.
func (w *world) settles() schemas.Instant {
	settled := min(w.now, w.earliestPending()).Add(-modelOverlap)
	for id, row := range w.rows {
		states := w.history[id]
		if w.replicas && len(states) > 0 && states[len(states)-1].since > w.now.Add(-modelOverlap) ||
			w.lagging[id] > w.now && w.previous[id].updatedAt.Millis() == row.updatedAt.Millis() {
			settled = min(settled, row.updatedAt)
		}
	}
	return min(settled, w.heldAt)
}

func (w *world) why() string {
	if w.heldAt == schemas.MaxInstant {
		return ""
	}
	return "a day cannot be closed"
}

// readInOrder reads in the order of updated_at what changed since the floor, goes on at a cursor, settles
// as it goes, and says what is final.
func (w *world) readInOrder(r Request, settled schemas.Instant, emit func(Batch) error) error {
	if w.lost && (r.Floor != nil || r.Cursor != nil) {
		w.lost = false
		return &LostError{Why: "another database", From: schemas.MaxInstant}
	}
	met, floor, started := w.changes, uint64(0), r.Started
	if r.Floor != nil {
		floor, _ = strconv.ParseUint(r.Floor.Snapshot, 10, 64)
	}
	if r.Cursor != nil {
		met, started = min(met, r.Cursor.Xmin), r.Cursor.Started
		settled = min(settled, r.Cursor.HorizonTime) // what came since lies behind the cursor, maybe
	}
	var rows []row
	for id, row := range w.rows {
		behind := r.Cursor != nil && (row.updatedAt < r.Cursor.UpdatedAt ||
			row.updatedAt == r.Cursor.UpdatedAt && id <= r.Cursor.ID)
		if row.updatedAt >= r.From && !behind && w.written[id] > floor {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.updatedAt, b.updatedAt), cmp.Compare(a.id, b.id))
	})
	for len(rows) > 0 {
		n := 1 + w.reading.IntN(len(rows))
		b := Batch{}
		for _, row := range rows[:n] {
			row.put(&b)
			b.Final = append(b.Final, w.written[row.id] <= met)
		}
		last := rows[n-1]
		b.Settled = min(settled, last.updatedAt)
		b.Cursor = &watermark.Cursor{UpdatedAt: last.updatedAt, ID: last.id, Xmin: met, HorizonTime: settled,
			Started: started}
		if err := emit(b); err != nil {
			return err
		}
		rows = rows[n:]
		if w.reading.IntN(w.cutsOff) == 0 {
			return errors.New("connection reset")
		}
	}
	return emit(Batch{Settled: settled, Done: &Done{Started: started, Complete: true, Delayed: w.why(),
		Floor: &watermark.Floor{Snapshot: strconv.FormatUint(met, 10)}}})
}

// shownByReplicas is what replicas show that lag by less than the overlap, each row by another one.
func (w *world) shownByReplicas(r Request) (rows []row) {
	for _, id := range sortedIDs(w.history) {
		at := w.now.Add(-time.Duration(w.reading.Int64N(int64(modelOverlap))))
		if w.reading.IntN(2) == 0 {
			at = w.now
		}
		for _, state := range slices.Backward(w.history[id]) {
			if state.since <= at {
				if r.Kind == Lookup || state.row.updatedAt >= r.From {
					rows = append(rows, state.row)
				}
				break
			}
		}
	}
	return rows
}

func (w *world) shown(r Request) (rows []row) {
	if w.replicas {
		return w.shownByReplicas(r)
	}
	for _, id := range sortedIDs(w.rows) {
		row := w.rows[id]
		if w.hidden[id] > w.now || w.onNoDay(row, r) || w.isNotFound(id, r) {
			continue
		}
		if w.lagging[id] > w.now {
			row = w.previous[id]
		}
		before := w.previous[id]
		readable := (!before.bad || r.Kind == Lookup) && before.updatedAt >= r.From
		if w.mayLie(id) && readable && w.reading.IntN(3) == 0 {
			w.lied[before.content] = true // two versions of a row in one read, the older one maybe last
			rows = append(rows, before)
		}
		if r.Kind == Lookup || row.updatedAt >= r.From || w.reading.IntN(10) == 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// mayLie says whether the row has an older version that did not come up again yet.
func (w *world) mayLie(id int64) bool {
	before, there := w.previous[id]
	millis, now := before.updatedAt.Millis(), w.rows[id].updatedAt.Millis()
	older := millis < now || millis == now && min(before.updatedAt, w.rows[id].updatedAt) >= w.settled
	return there && older && !w.ordered && !w.lied[before.content] && before.content != w.rows[id].content
}

func (w *world) earliestPending() schemas.Instant {
	e := schemas.MaxInstant
	for _, r := range w.pending {
		e = min(e, r.updatedAt.Add(modelOverlap))
	}
	return e
}

func (w *world) publish(_ context.Context, tx watermark.Transaction) error {
	if now := w.clock(); w.mark.Pause.Lasts(now) && tx.Watermark.Pause.Lasts(now) && tx.Len() > 0 {
		w.t.Fatalf("%d records are published in a pause: %+v", tx.Len(), w.mark.Pause)
	}
	outcome := w.writing.IntN(30)
	if outcome == 0 {
		return errAborted
	}
	for _, id := range tx.Deletes {
		if _, there := w.rows[id]; there && !w.unborn[id] {
			w.t.Fatalf("a tombstone for row %d, which the source has", id)
		}
	}
	mark := w.mark
	before, now := mark.Replay, tx.Watermark.Replay
	if err := w.commit(tx); err != nil {
		return err
	}
	w.followReplays(mark)
	if now != nil && (before == nil || before.Request != now.Request) {
		for _, q := range w.asked { // the reset as it was asked for: the watermark's From may be an earlier one's
			if q.ID == now.Request {
				w.replays = append(w.replays, acceptedReplay{from: *q.To, at: len(w.topic), settled: now.Settled,
					request: q.ID})
			}
		}
	}
	if outcome == 1 {
		return errUnknown
	}
	return nil
}

// followReplays notes what the last transaction says of the replays that were in hand before it. A replay of
// a part has sent each row that it wanted, or says how many it left: each has a record since it was accepted.
func (w *world) followReplays(before watermark.Watermark) {
	there := func(all []watermark.Part, p watermark.Part) bool {
		return slices.ContainsFunc(all, func(q watermark.Part) bool { return p.Request == q.Request })
	}
	for _, part := range before.Parts {
		if there(w.mark.Parts, part) {
			continue
		}
		r := &w.replays[slices.IndexFunc(w.replays, func(r acceptedReplay) bool {
			return r.part != nil && r.part.Request == part.Request
		})]
		r.ended = len(w.topic)
		done := w.mark.ResultOf(part.Request, part.RequestUID)
		if done == nil {
			w.t.Fatalf("the replay of a part is over, and has no result: %+v", part)
		}
		w.played.Count("a part is replayed", done.Rows > 0 && done.Left == "")
		w.played.Count("a replay of a part is cancelled", done.Left == "cancelled")
		w.played.Count("it has sent some rows then", done.Left == "cancelled" && done.Rows > 0)
		left, sent := 0, map[int64]bool{}
		_, _ = fmt.Sscanf(done.Left, "not published again: %d", &left)
		for _, record := range w.topic[r.at:] {
			sent[record.ID] = true
		}
		for id := range r.wants {
			if !sent[id] && done.Left != "cancelled" {
				left--
			}
		}
		if left < 0 {
			w.t.Fatalf("a replay of %v sent %v, and says %+v", r.wants, sent, done)
		}
	}
	for _, part := range w.mark.Parts {
		if there(before.Parts, part) {
			continue
		}
		r := acceptedReplay{at: len(w.topic), part: &part, wants: map[int64]bool{}}
		for _, record := range w.topic {
			if r.wants[record.ID] = r.of(record.ID, record.UpdatedAt) && !record.Tombstone &&
				record.UpdatedAt >= w.config.Start; !r.wants[record.ID] {
				delete(r.wants, record.ID)
			}
		}
		w.replays = append(w.replays, r)
	}
	if before.Replay == nil || before.AsOf == schemas.MinInstant {
		return
	}
	for _, q := range w.asked {
		if q.Kind != watermark.Cancels || q.ID <= before.Request || q.ID > w.mark.Request {
			continue
		}
		for i := range w.replays {
			if r := &w.replays[i]; r.part == nil && r.ended == 0 && r.request < q.ID {
				r.ended = len(w.topic)
			}
		}
		w.played.Count("a reset is cancelled", true)
	}
}

// of reports whether the replay sends a row again that was updated then.
func (r *acceptedReplay) of(id int64, updated schemas.Instant) bool {
	if r.part == nil {
		return true
	}
	at := updated.Millis()
	return (r.part.IDs == nil || slices.Contains(r.part.IDs, id)) && at >= r.part.From.Millis() &&
		at < r.part.To.Millis()
}

// work is shop's, with new chances.
func (w *world) work() error {
	seed := rapid.Uint64().Draw(w.t, "seed")
	w.reading, w.writing = rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	before, written, lied := w.mark, len(w.topic), len(w.lied)
	w.blink()
	err := w.shop.work()
	if w.sweeps != nil {
		w.sweeps.settle()
	}
	w.count(err, before, written, lied)
	return err
}

// count notes what came about in a poll: what it ended with, and what was not so before.
func (w *world) count(err error, before watermark.Watermark, written, lied int) {
	var blocked *BlockedError
	deferred, records := &w.poller.state.deferred, w.topic[min(written, len(w.topic)):]
	for what, did := range map[string]bool{
		"a poll":                      true,
		"a poll is cut off":           err != nil && strings.Contains(err.Error(), "connection reset"),
		"a transaction is aborted":    errors.Is(err, errAborted),
		"a commit of unknown outcome": errors.Is(err, errUnknown),
		"a resource is blocked":       errors.As(err, &blocked),
		"an older state is shown":     len(w.lied) > lied,
		"a row is deferred":           !deferred.empty(),
		"more rows than are deferred": deferred.beyond.rows() > 0,
		"rows are published":          len(records) > 0,
		"settled moves":               w.mark.Settled > before.Settled,
		"settled goes back":           w.mark.Settled < before.Settled,
		"as of moves":                 w.mark.AsOf > before.AsOf,
		"a replay begins":             w.mark.Replay != nil && before.Replay == nil,
		"a replay ends":               w.mark.Replay == nil && before.Replay != nil,
		"a pause ends":                w.mark.Pause == nil && before.Pause != nil,
		"a sweep ends":                w.mark.Sweep == nil && before.Sweep != nil,
		"a tombstone":                 slices.ContainsFunc(records, func(r record) bool { return r.Tombstone }),
	} {
		w.played.Count(what, did)
	}
}

func (w *world) poll() {
	asOf := w.mark.AsOf
	if _, there := w.polls[w.clock()]; !there {
		w.polls[w.clock()] = w.now
	}
	err := w.work()
	if err == nil && w.mark.AsOf != asOf {
		w.holdsAllThatWasVisible()
	}
	for _, last := range []error{ErrTakeover, errAborted, errUnknown} {
		if errors.Is(err, last) {
			w.takeOver()
		}
	}
}

// holdsAllThatWasVisible fails unless the topic has what the watermark's as_of promises, after a poll that
// moved it. Nothing changes during a poll. Rows that are deferred are left out, and those of which an older
// state came too.
func (w *world) holdsAllThatWasVisible() {
	began, there := w.polls[w.mark.AsOf]
	if w.replicas || w.backwards || !there || w.sweeps != nil {
		return
	}
	w.played.Count("as of is checked", true)
	newest, deferred := map[int64]row{}, &w.poller.state.deferred
	for _, r := range w.topic {
		newest[r.ID] = r.row
	}
	for id, row := range w.rows {
		_, late := deferred.rows[id]
		late = late || deferred.beyond.rows() > 0 || w.lied[w.previous[id].content] ||
			w.history[id][len(w.history[id])-1].since >= began
		if row.updatedAt >= w.config.Start && newest[id] != row && !late {
			w.t.Fatalf("as of %v, row %d is %+v, the topic has %+v", w.mark.AsOf, id, row, newest[id])
		}
	}
}

// capped draws a memory for so many rows that it may be full.
func (w *world) capped() {
	if rows := rapid.IntRange(2, modelRows+2).Draw(w.t, "rows in memory"); rows <= modelRows {
		w.config.Memory = memoryFor(rows)
	}
}

// holds gives the next takeover more memory after ten holds in a row.
func (w *world) holds(err error, n int) {
	var blocked *BlockedError
	if errors.As(err, &blocked) && n >= 10 {
		w.config.Memory = 0
	}
}

func (w *world) takeOver() {
	w.played.Count("a takeover", true)
	w.shop.takeOver()
	if w.mostDeferred > 0 {
		w.poller.state.deferred.most = w.mostDeferred
	}
	if w.sweeps != nil {
		w.sweeps.waits = false
	}
}

func (w *world) reset() {
	to := w.now.Add(-time.Duration(rapid.IntRange(0, 60_000_000).Draw(w.t, "back")) * time.Microsecond)
	w.ask(watermark.Request{Kind: watermark.Reset, To: &to})
}

// replayPart asks for a replay of a range, or of some rows.
func (w *world) replayPart() int64 {
	r := watermark.Request{Kind: watermark.Replays}
	if rapid.IntRange(0, 3).Draw(w.t, "named") == 0 {
		r.Rows = []int64{rapid.Int64Range(1, modelRows).Draw(w.t, "named row"), modelRows}
	} else {
		from := w.now.Add(-time.Duration(rapid.IntRange(0, 300_000_000).Draw(w.t, "since")) * time.Microsecond)
		to := from.Add(time.Duration(rapid.IntRange(0, 400_000_000).Draw(w.t, "until")) * time.Microsecond)
		r.From, r.To = &from, &to
	}
	return w.ask(r)
}

// pause asks for a pause, of some time or without an end, or ends one.
func (w *world) pause() {
	until := w.clock().Add(time.Duration(rapid.IntRange(0, 60).Draw(w.t, "paused for")) * time.Second)
	switch rapid.IntRange(0, 2).Draw(w.t, "pause") {
	case 0:
		w.ask(watermark.Request{Kind: watermark.Pauses, To: &until})
	case 1:
		w.ask(watermark.Request{Kind: watermark.Pauses})
	default:
		w.ask(watermark.Request{Kind: watermark.Resumes})
	}
}

// cancels lets a replay that was asked for go on for a while, maybe until some of it is done, and cancels it.
func (w *world) cancels() {
	w.cutsOff = 3
	steps := rapid.IntRange(0, 9).Draw(w.t, "steps of the replay")
	if w.sweeps != nil && rapid.Bool().Draw(w.t, "with a part done") {
		steps, w.cutsOff = 40, 20
	}
	for range steps {
		if len(w.mark.Parts) > 0 && w.mark.Parts[0].Rows > 0 {
			break
		}
		if w.poll(); w.sweeps != nil {
			for range rapid.IntRange(0, 40).Draw(w.t, "of the replay") {
				w.sweeps.step(w.t)
			}
		}
		w.change(false)
	}
	w.cutsOff = 20
	w.ask(watermark.Request{Kind: watermark.Cancels})
}

// pass lets time pass.
func (w *world) pass(most time.Duration) {
	d := rapid.IntRange(0, int(most.Microseconds())).Draw(w.t, "time passes")
	w.now = w.now.Add(time.Duration(d) * time.Microsecond)
}

// change is one thing that happens to the table.
func (w *world) change(futures bool) {
	w.serial++
	id := rapid.Int64Range(1, modelRows).Draw(w.t, "id")
	changed := row{id: id, updatedAt: w.stamp(w.now), content: w.serial}
	locked := slices.ContainsFunc(w.pending, func(r row) bool { return r.id == id })
	switch rapid.IntRange(0, 9).Draw(w.t, "change") {
	case 0, 1: // stamped now, seen later; commits come in any order
		if !locked {
			w.pending = append(w.pending, changed)
		}
	case 2, 3, 4:
		if n := len(w.pending); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(w.t, "commits")
			w.set(w.pending[i])
			w.pending = slices.Delete(w.pending, i, i+1)
		}
	case 5:
		if futures {
			ahead := rapid.IntRange(0, 100_000_000).Draw(w.t, "ahead")
			changed.updatedAt = w.stamp(w.now.Add(time.Duration(ahead) * time.Microsecond))
		}
		fallthrough
	default:
		if !locked {
			w.set(changed)
		}
	}
}

func (w *world) set(row row) {
	was, there := w.rows[row.id]
	if w.unborn[row.id] = w.unborn[row.id] || !there; there {
		w.previous[row.id] = was
		if was.updatedAt > row.updatedAt && !w.backwards {
			row.updatedAt = was.updatedAt // a writer that keeps updated_at from going back
		}
	}
	w.serial++
	row.content = w.serial // it counts what became visible
	w.changes++
	w.rows[row.id], w.written[row.id] = row, w.changes
	w.history[row.id] = append(w.history[row.id], past{row, w.now})
}

func (w *world) stamp(at schemas.Instant) schemas.Instant { return at - at%w.grain }

// failOver makes the server another one, which lacks some of the last commits or whose clock is behind: a row
// is again as it was, or is written with a stamp that settled may have passed. The next pass notices. Over
// REST it is the service's clock that is set back, and whole days are read again.
func (w *world) failOver() {
	id := rapid.Int64Range(1, modelRows).Draw(w.t, "id of a failover")
	back := rapid.IntRange(0, 60_000_000).Draw(w.t, "the clock goes back")
	from := w.now.Add(-time.Duration(back) * time.Microsecond)
	if slices.ContainsFunc(w.pending, func(r row) bool { return r.id == id }) {
		return
	}
	w.serial++
	changed := row{id: id, updatedAt: from, content: w.serial}
	switch before, there := w.previous[id]; {
	case !w.ordered:
		changed.updatedAt = w.stamp(from)
		from = schemas.InstantOf(from.Time().Truncate(24 * time.Hour))
	case there && rapid.Bool().Draw(w.t, "a commit is lacking"):
		changed = before
		from = min(from, before.updatedAt)
	}
	w.changes++
	w.rows[id], w.written[id], w.odd[id], w.unsure[id] = changed, w.changes, true, true
	w.history[id] = append(w.history[id], past{changed, w.now})
	delete(w.previous, id)
	if w.lostFrom != nil {
		from = min(from, *w.lostFrom)
	}
	w.lostFrom = &from
}

// newTopic is what a takeover makes of a topic that was created anew: nothing of it is known.
func (w *world) newTopic() {
	request := w.mark.Request
	w.topic, w.replays, w.letters = nil, nil, map[string]uint64{}
	w.mark = watermark.New("orders")
	w.mark.Request = request
	w.takeOver()
}

// step lets our clock step, by up to two hours.
func (w *world) step() {
	us := rapid.Int64Range(-7_200_000_000, 7_200_000_000).Draw(w.t, "our clock is ahead by")
	w.skew = time.Duration(us) * time.Microsecond
}

func (w *world) commitPending() {
	for _, r := range w.pending {
		w.set(r)
	}
	w.pending = nil
}

// Whatever happens in whatever order to the table, the reads, the writes and the process: when all goes quiet
// the topic's newest record of every row is the row (nothing lost), no record is older than the one before it
// (nothing stale), and no version is there twice but for replays (nothing twice). And a replay has sent every
// row since its time again.
func TestWhateverHappensTheTopicConvergesWithoutStaleOrDoubleRecords(t *testing.T) {
	played := rounds.Played{}
	n := rounds.Check(t, 2000, func(t *rapid.T) { // the rarest defects that it found took some thousand
		w := newWorld(t, played)
		w.backwards = rapid.IntRange(0, 3).Draw(t, "backwards") == 0
		futures := rapid.Bool().Draw(t, "rows from the future")
		w.ordered = rapid.Bool().Draw(t, "ordered")
		w.config.CatchesUp = w.ordered
		w.varied(t)
		w.capped()
		w.takeOver()
		pace := time.Duration(rapid.SampledFrom([]int{4000, 400}).Draw(t, "pace")) * time.Millisecond
		for range rapid.IntRange(20, 60).Draw(t, "steps") {
			w.pass(pace)
			switch rapid.IntRange(0, 10).Draw(t, "step") { // the lowest are drawn most often
			case 0, 1, 2:
				w.change(futures)
			case 3, 4, 5, 6:
				w.poll()
			case 7:
				w.takeOver()
			case 8:
				if w.reset(); rapid.Bool().Draw(t, "cancelled") {
					w.cancels()
				}
			case 9:
				w.lost = w.ordered && rapid.IntRange(0, 3).Draw(t, "another database") == 0
				w.change(futures)
			case 10:
				w.mishapOfPolls(t)
			}
		}
		w.commitPending()
		w.ask(watermark.Request{Kind: watermark.Resumes})
		w.narrow, w.heldAt = false, schemas.MaxInstant
		// Quiet, until enough polls in a row went well, an overlap apart for second looks.
		for n, good := 0, 0; good < 3; n++ {
			if n > 1000 {
				t.Fatalf("it does not come to rest: %s", w.poller.state.deferred.delays())
			}
			w.now = w.now.Add(modelOverlap)
			err := w.work()
			if good++; !w.poller.state.deferred.empty() {
				good = 0
			}
			if err != nil {
				good = 0
				w.holds(err, n)
				w.takeOver()
			}
		}
		w.check(t)
	})
	played.Want(t, n, map[string]float64{
		"a row is checked": 2, "a row of a replay is checked": 1.5, "as of is checked": 0.7,
		"rows are published": 2,
		"settled moves":      3, "settled goes back": 0.15, "a replay begins": 0.7, "a replay ends": 0.6,
		"a takeover": 5, "a resource is blocked": 1.5, "a poll is cut off": 0.25, "a transaction is aborted": 0.2,
		"a commit of unknown outcome": 0.25, "an older state is shown": 0.3, "a row is deferred": 0.5,
		"more rows than are deferred": 0.05, "a reset is cancelled": 0.1, "a pause ends": 0.1,
	})
}

// varied draws what kind of a world it is.
func (w *world) varied(t *rapid.T) {
	w.partitions = rapid.Int64Range(1, 3).Draw(t, "partitions")
	w.grain = schemas.Instant(rapid.SampledFrom([]int{1, 1_000_000}).Draw(t, "stamps are multiples of"))
	w.replicas = !w.ordered && !w.backwards && rapid.Bool().Draw(t, "replicas")
	w.narrow = !w.ordered && rapid.Bool().Draw(t, "cheap passes")
	w.texts = !w.ordered && rapid.Bool().Draw(t, "texts are compared")
	w.mostDeferred = rapid.IntRange(0, 2).Draw(t, "rows deferred at once")
	if rapid.IntRange(0, 3).Draw(t, "start") == 0 {
		w.config.Start = w.now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "start at")) * time.Second)
	}
}

// mishapOfPolls is what polls must bear.
func (w *world) mishapOfPolls(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "mishap") {
	case 0:
		w.newTopic()
	case 8, 9:
		w.pause()
	case 1, 2:
		w.step()
	case 3, 4, 5:
		w.failOver()
	default:
		if w.heldAt != schemas.MaxInstant {
			w.heldAt = schemas.MaxInstant
		} else {
			w.heldAt = w.now.Add(-modelOverlap)
		}
	}
}

// check fails unless the topic is right, and the watermark says that all is up to date.
func (w *world) check(t *rapid.T) {
	if asOf := w.mark.AsOf; asOf > w.clock() || asOf < w.clock().Add(-2*modelOverlap) {
		t.Fatalf("as of %v, and the clock says %v", asOf, w.clock())
	}
	newest, at, seenTwice := map[int64]row{}, map[int64]int{}, map[string]int{}
	ours := map[int64]row{} // that nothing else came after
	for i, r := range w.topic {
		if r.foreign || r.Tombstone || w.odd[r.ID] { // whatever stood before it may come again
			maps.DeleteFunc(seenTwice, func(version string, _ int) bool {
				return strings.HasPrefix(version, fmt.Sprintf("%d ", r.ID))
			})
			delete(ours, r.ID)
			if delete(newest, r.ID); !r.Tombstone {
				newest[r.ID], at[r.ID] = r.row, i
			}
			continue
		}
		// A second look publishes a row that went back behind the start: the topic has it, and is to have it right.
		if r.row.updatedAt < w.config.Start && !w.backwards {
			t.Fatalf("%+v is from before the start, %v", r.row, w.config.Start)
		}
		if was, there := ours[r.ID]; there && olderThan(r.row, was) && !w.backwards {
			t.Fatalf("row %d steps back from %v to %v at record %d", r.ID, was, r.row, i)
		}
		version := fmt.Sprint(r.ID, r.row.content)
		if before, there := seenTwice[version]; there && !w.replayed(before, i, r.row) {
			t.Fatalf("version %d of row %d is there twice, at %d and %d", r.row.content, r.ID, before, i)
		}
		ours[r.ID], newest[r.ID], at[r.ID], seenTwice[version] = r.row, r.row, i, i
	}
	for id, row := range w.rows {
		if row.bad || row.updatedAt < w.config.Start {
			continue
		}
		if newest[id] != row {
			t.Fatalf("row %d is %+v, the topic has %+v", id, row, newest[id])
		}
		w.played.Count("a row is checked", true)
		for _, replay := range w.replays {
			if replay.part != nil || replay.ended > 0 {
				continue
			}
			w.played.Count("a row of a replay is checked", row.updatedAt >= replay.from)
			if row.updatedAt >= replay.from && at[id] < replay.at && !w.unsure[id] &&
				(!w.replicas || row.updatedAt < replay.settled) {
				t.Fatalf("row %d was not sent again by the replay from %v", id, replay.from)
			}
		}
	}
}

// olderThan says whether a is an older state of a row than b. Content counts upwards.
func olderThan(a, b row) bool {
	return cmp.Or(cmp.Compare(a.updatedAt.Millis(), b.updatedAt.Millis()), cmp.Compare(a.content, b.content)) < 0
}

// replayed says whether a replay of the row began between the two records, and was not over at the second.
func (w *world) replayed(first, second int, row row) bool {
	return slices.ContainsFunc(w.replays, func(r acceptedReplay) bool {
		return first < r.at && r.at <= second && (r.ended == 0 || second < r.ended) && r.of(row.id, row.updatedAt)
	})
}

func sortedIDs[V any](m map[int64]V) []int64 { return slices.Sorted(maps.Keys(m)) }
