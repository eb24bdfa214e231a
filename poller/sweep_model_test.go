package poller

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// sweeps lets a world's poller sweep. The sweep's goroutine runs in lockstep with the model, so that anything
// can happen between any two of its steps.
type sweeps struct {
	w      *world
	parked chan struct{} // it waits for its next step
	resume chan struct{}
	waits  bool
	draws  *rand.Rand
	showed map[int64]bool // rows, in the last full reading
}

func newSweeps(w *world) *sweeps {
	s := &sweeps{w: w, parked: make(chan struct{}), resume: make(chan struct{}),
		showed: map[int64]bool{}}
	w.config.Sweep = SweepConfig{Tombstone: true, Source: func() Source { return s }, Topic: s.topic,
		Turn: make(chan struct{}, 1)}
	if rapid.Bool().Draw(w.t, "in parts") {
		w.config.Sweep.ByID = rapid.Bool().Draw(w.t, "by id")
		if rapid.Bool().Draw(w.t, "in a file") { // for more than three rows
			w.config.Sweep.Memory, w.config.Sweep.Scratch = 256, 1<<20
		}
		w.config.Sweep.MaxSuspects = rapid.IntRange(2, 5).Draw(w.t, "suspects")
	}
	return s
}

// settle returns when the goroutine that the sweeper may have started waits for its next step, or has ended.
func (s *sweeps) settle() {
	sweep := s.w.poller.sweeper.inHand
	if sweep == nil || sweep.working == nil || s.waits {
		return
	}
	select {
	case <-s.parked:
		s.waits = true
	case err := <-sweep.working:
		sweep.working <- err
	}
}

// step lets the goroutine do one step.
func (s *sweeps) step(t *rapid.T) bool {
	if !s.waits {
		return false
	}
	seed := rapid.Uint64().Draw(t, "sweep")
	s.draws, s.waits = rand.New(rand.NewPCG(seed, 3)), false
	s.resume <- struct{}{}
	s.settle()
	return true
}

func (s *sweeps) yield(ctx context.Context) error {
	select {
	case s.parked <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-s.resume:
		return nil
	case <-ctx.Done(): // whoever ended the sweep waits until it has ended
		s.waits = false
		return ctx.Err()
	}
}

func (s *sweeps) topic(ctx context.Context, from []int64, wanted func(int64) bool,
	fold func(watermark.Published) error) ([]int64, error) {
	// Else it is the repair, in the poller's own goroutine: nothing happens in between.
	if s.w.poller.sweeper.inHand.working != nil {
		if err := s.yield(ctx); err != nil {
			return nil, err
		}
	}
	return s.w.readTopic(ctx, from, wanted, fold)
}

// Read is Source's, row by row: between two rows anything may happen. Now and then it shows a row as it was
// before.
func (s *sweeps) Read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	return pushed(func(emit func(Batch) error) error { return s.push(ctx, r, emit) })
}

func (s *sweeps) push(ctx context.Context, r Request, emit func(Batch) error) error {
	w := s.w
	for id := range int64(modelRows + 1) {
		if r.Kind == Full {
			delete(s.showed, id)
		}
		if err := s.yield(ctx); err != nil {
			return err
		}
		row, there := w.rows[id]
		if !there || w.hidden[id] > w.now || w.onNoDay(row, r) || w.isNotFound(id, r) {
			continue
		}
		before := w.previous[id]
		if w.lagging[id] > w.now {
			row = before
		} else if w.mayLie(id) && !before.bad && s.draws.IntN(3) == 0 {
			w.lied[before.content] = true
			row = before
		}
		b := Batch{Settled: schemas.MinInstant}
		row.put(&b)
		w.meet(id)
		if s.draws.IntN(40) == 0 {
			return fmt.Errorf("connection reset")
		}
		if err := emit(b); err != nil {
			return err
		}
		s.showed[id] = s.showed[id] || r.Kind == Full
	}
	return emit(Batch{Settled: schemas.MinInstant, Done: &Done{Started: r.Started, Complete: true}})
}

// onNoDay says that a source that reads by day cannot find the row: passes meet it, and lookups by the day of
// its update.
func (w *world) onNoDay(row row, r Request) bool {
	return row.dayless && r.Kind != Pass && !r.Everywhere && !w.config.Sweep.ByID &&
		!slices.ContainsFunc(r.Suspects, func(x Suspect) bool {
			return x.ID == row.id && x.UpdatedAt.Day() == row.updatedAt.Day()
		})
}

// isNotFound says that r is a question that does not show the row, though the sweep's full reading has shown
// it.
func (w *world) isNotFound(id int64, r Request) bool {
	return w.notFound[id] && w.sweeps.showed[id] && r.Kind == Lookup
}

const modelRows = 6

// mishap is something that no poll can see, or nobody should do.
func (w *world) mishap() {
	id := rapid.Int64Range(1, modelRows).Draw(w.t, "id of a mishap")
	changed, there := w.rows[id]
	w.serial++
	switch rapid.IntRange(0, 11).Draw(w.t, "mishap") {
	case 11:
		w.pause()
	case 8:
		w.step()
	case 9: // the topic is emptied, and nothing tells it from the one before
		w.poller.sweeper.end()
		w.topic, w.replays, w.mark.Replay, w.mark.Parts = nil, nil, nil, nil
		w.takeOver()
	case 0: // an update that does not touch updated_at
		if there {
			changed.content = w.serial
			w.rows[id] = changed
		}
	case 1: // a row that comes far later than its updated_at says
		if !there {
			at := w.now.Add(-time.Duration(rapid.IntRange(0, 100_000_000).Draw(w.t, "late")) * time.Microsecond)
			w.rows[id], w.odd[id], w.unborn[id] = row{id: id, updatedAt: at, content: w.serial}, true, true
		}
	case 2:
		delete(w.rows, id)
		delete(w.previous, id)
		w.odd[id] = w.odd[id] || there // a transaction that is open may bring it back with an older stamp
	case 3: // somebody writes into the topic
		stamp := rapid.IntRange(-60_000_000, 60_000_000).Draw(w.t, "stamp")
		at := w.now.Add(time.Duration(stamp) * time.Microsecond)
		tampered := rapid.Int64Range(1, modelRows+3).Draw(w.t, "tampered")
		forged := w.published(row{id: tampered, updatedAt: at, content: w.serial})
		forged.Time = w.now
		w.forge(forged)
	case 4:
		w.forge(w.tombstone(id))
	case 5: // it can no longer be published, or again
		if there {
			changed.bad, changed.dayless = !changed.bad, false
			w.rows[id], w.unsure[id] = changed, true
		}
	case 6: // it was updated, and is nowhere for a while
		w.previous[id] = changed
		if w.rows[id] = (row{id: id, updatedAt: max(w.now, changed.updatedAt), content: w.serial}); !there {
			delete(w.previous, id)
			w.unborn[id] = true
		}
		w.hide(id, w.shortOfOverlap("hidden"))
	case 7: // for a while the service shows an older state of it
		if there && w.mayLie(id) && !w.previous[id].bad {
			w.lied[w.previous[id].content] = true
			w.unsure[id] = true
			w.lagging[id] = w.now.Add(w.shortOfOverlap("lagging"))
		}
	case 10: // an update takes its created_at: a source that is read by day shows the row to passes alone
		if there && changed.updatedAt < w.now {
			w.set(row{id: id, updatedAt: w.now, content: w.serial, bad: true, dayless: true})
			delete(w.previous, id)
			delete(w.lagging, id)
			delete(w.hidden, id)
		}
	}
}

// confirms lets polls, a sweep and an erase go on for as long as they take to confirm that a row is gone.
// Meanwhile a row is nowhere, is shown for a moment, and is nowhere again, as over REST while it is updated
// twice.
func (w *world) confirms(t *rapid.T) {
	id := rapid.Int64Range(1, modelRows).Draw(t, "id of a row that blinks")
	if w.askSweep(); rapid.Bool().Draw(t, "erased too") {
		delete(w.notFound, id)
		w.erase(id)
	}
	if _, there := w.rows[id]; there {
		w.update(id)
		w.hide(id, time.Duration(rapid.IntRange(1, 9).Draw(t, "seconds"))*time.Second)
		w.blinks[id] = w.hidden[id].Add(1500 * time.Millisecond)
	}
	for range 25 {
		w.now = w.now.Add(time.Second)
		w.poll()
		for w.sweeps.step(t) {
		}
	}
}

// meet notes that a read shows a row.
func (w *world) meet(id int64) {
	delete(w.unmet, id)
	delete(w.unborn, id)
}

// blink updates the rows whose time has come once more, and hides them.
func (w *world) blink() {
	for _, id := range sortedIDs(w.blinks) {
		if w.blinks[id] > w.now || w.unmet[id] {
			continue
		}
		if delete(w.blinks, id); w.rows[id] != (row{}) {
			w.update(id)
			w.hide(id, w.shortOfOverlap("hidden again"))
			w.played.Count("a row blinks", true)
		}
	}
}

func (w *world) update(id int64) {
	w.serial++
	w.previous[id] = w.rows[id]
	w.rows[id] = row{id: id, updatedAt: max(w.now, w.rows[id].updatedAt), content: w.serial}
}

// hide lets a row be nowhere for a while. A row that no read has shown since it was hidden last is not hidden
// again: it would be nowhere for more than an overlap, as far as anybody can tell.
func (w *world) hide(id int64, d time.Duration) {
	delete(w.notFound, id) // else no read would show it
	if !w.unmet[id] {
		w.unmet[id], w.hidden[id] = true, w.now.Add(d)
	}
}

func (w *world) shortOfOverlap(what string) time.Duration {
	us := rapid.Int64Range(modelOverlap.Microseconds()/2, modelOverlap.Microseconds()-1).Draw(w.t, what)
	return time.Duration(us) * time.Microsecond
}

// Whatever happens to the table and to the topic, also what no poll can see, while sweeps go on and are cut
// off at any step: after a last sweep the topic is the source, its dead letters are the rows that cannot be
// published, no row that is there had a tombstone, and no record of ours steps back or is there twice for
// nothing.
func TestASweepRepairsWhateverPollsCannotSee(t *testing.T) {
	played := rounds.Played{}
	n := rounds.Check(t, 333, func(t *rapid.T) { // each takes as long as several of the topic model
		w := newWorld(t, played)
		w.sweeps = newSweeps(w)
		w.capped()
		w.partitions = rapid.Int64Range(1, 3).Draw(t, "partitions")
		w.texts = rapid.Bool().Draw(t, "texts are compared")
		w.grain = schemas.Instant(rapid.SampledFrom([]int{1, 1_000_000}).Draw(t, "stamps are multiples of"))
		w.rows[0] = row{id: 0, updatedAt: w.now} // an empty source is another matter
		for id := range int64(modelRows + 1) {
			if rapid.IntRange(0, 4).Draw(t, "lookups find it") == 4 {
				w.notFound[id] = true
			}
		}
		w.takeOver()
		defer func() { w.poller.sweeper.end() }()
		for range rapid.IntRange(20, 80).Draw(t, "steps") {
			w.pass(500 * time.Millisecond)
			switch rapid.IntRange(0, 18).Draw(t, "step") { // the lowest are drawn most often
			case 0, 1, 2:
				for range rapid.IntRange(1, 20).Draw(t, "of the sweep") {
					w.sweeps.step(t)
				}
			case 3, 4, 5:
				w.change(false)
			case 6, 7, 8, 9:
				w.poll()
			case 10, 11, 12:
				w.mishap()
			case 13:
				if rapid.Bool().Draw(t, "planned") {
					w.mark.HandSweepOver()
				}
				w.takeOver()
			case 14:
				w.askSweep()
			case 15:
				if w.reset(); rapid.IntRange(0, 2).Draw(t, "cancelled") == 2 {
					w.cancels()
				}
			case 18:
				if w.replayPart(); rapid.Bool().Draw(t, "cancelled") {
					w.cancels()
				}
			case 16:
				id := rapid.Int64Range(1, modelRows+3).Draw(t, "erased")
				delete(w.notFound, id) // an erase has no full reading: it goes by its looks alone
				w.erase(id)
			case 17:
				w.confirms(t)
			}
		}
		w.commitPending()
		w.ask(watermark.Request{Kind: watermark.Resumes})
		if len(w.notFound) > 0 { // a sweep that leaves these rows as they are
			w.rest(t, w.askSweep())
			clear(w.notFound)
		}
		w.rest(t, w.askSweep())
		// A row that was shown in several states is left to the next sweep. Each older state is shown once, so
		// there is an end of it.
		for range 3 {
			if w.mark.Swept.Left != "" {
				w.rest(t, w.askSweep())
			}
		}
		if w.mark.Swept.Left != "" {
			t.Fatalf("sweeps end with %q", w.mark.Swept.Left)
		}
		w.replayedWhole(t)
		w.check(t)
		w.checkSwept(t)
	})
	played.Want(t, n, map[string]float64{
		"a row is checked": 2, "rows are published": 2, "a sweep ends": 1, "a tombstone": 0.1, "settled moves": 3,
		"a replay ends": 0.6, "a takeover": 5, "a resource is blocked": 2, "a poll is cut off": 0.4,
		"an older state is shown": 0.4, "a row is deferred": 0.5, "a row blinks": 0.3,
		"a part is replayed": 0.9, "a replay of a part is cancelled": 0.1, "a reset is cancelled": 0.08,
	})
}

// replayedWhole replays every row, until a replay leaves only those that cannot be published any more. Each
// older state is shown once.
func (w *world) replayedWhole(t *rapid.T) {
	everything := schemas.MinInstant
	for range 4 {
		w.rest(t, w.ask(watermark.Request{Kind: watermark.Replays, From: &everything}))
		left := 0
		_, _ = fmt.Sscanf(w.result().Left, "not published again: %d", &left)
		for id, row := range w.rows {
			if _, there := w.newest(id); there && row.bad {
				left--
			}
		}
		if left <= 0 {
			return
		}
	}
	t.Fatalf("replays of every row end with %+v", w.result())
}

// rest lets time pass until the sweep that was asked for by request id is finished.
func (w *world) rest(t *rapid.T, id int64) {
	for n, good := 0, 0; good < 3 || w.mark.Sweep != nil || len(w.mark.Parts) > 0 || w.mark.Request < id; n++ {
		if n > 1000 {
			t.Fatalf("the sweep does not end: %+v", w.poller.Status().Sweep)
		}
		w.now = w.now.Add(modelOverlap)
		if sweep := w.mark.Sweep; sweep != nil && sweep.NotBefore != nil {
			w.now = max(w.now, sweep.NotBefore.Add(-w.skew)) // it died, and waits
		}
		err := w.work()
		if good++; !w.poller.state.deferred.empty() {
			good = 0
		}
		if err != nil {
			good = 0
			w.holds(err, n)
			w.takeOver()
		}
		for w.sweeps.step(t) {
		}
	}
}

func (w *world) checkSwept(t *rapid.T) {
	newest := map[int64]record{}
	for _, r := range w.topic {
		newest[r.ID] = r
	}
	for id, r := range newest {
		if _, there := w.rows[id]; !there && !r.Tombstone {
			t.Fatalf("row %d is deleted, the topic has %+v; swept: %+v", id, r, w.mark.Swept)
		}
	}
	want := map[string]uint64{}
	for id, row := range w.rows {
		if row.bad {
			want[fmt.Sprintf("orders/%d", id)] = watermark.DeadLetterHash(row.reject().Row)
		}
	}
	if fmt.Sprint(w.letters) != fmt.Sprint(want) {
		t.Fatalf("dead letters %v, want %v", w.letters, want)
	}
}
