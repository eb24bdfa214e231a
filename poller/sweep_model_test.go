package poller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

// sweeps lets a world's poller sweep: its goroutine runs in lockstep with the model, so that anything can happen between any two of its steps.
type sweeps struct {
	w      *world
	parked chan struct{} // it waits for its next step
	resume chan struct{}
	waits  bool
	draws  *rand.Rand
}

func (s *sweeps) config(w *world) SweepConfig {
	if s == nil {
		return SweepConfig{}
	}
	s.w, s.waits = w, false
	return SweepConfig{Tombstone: true, Source: func() Source { return s }, Topic: s.topic}
}

// on is a poller's sweepOn, until the goroutine that it may have started waits or has ended.
func (s *sweeps) on(w *world) error {
	err := w.poller.sweepOn(context.Background(), nil)
	s.settle()
	return err
}

func (s *sweeps) settle() {
	sweep := s.w.poller.sweep
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
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sweeps) topic(ctx context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error) {
	if s.w.poller.sweep.step != mending { // else it is the poller's own goroutine, and nothing happens between
		if err := s.yield(ctx); err != nil {
			return nil, err
		}
	}
	at := int64(0)
	if from != nil {
		at = from[0]
	}
	for _, r := range s.w.topic[at:] {
		if err := fold(s.w.published(r)); err != nil {
			return nil, err
		}
	}
	return []int64{int64(len(s.w.topic))}, nil
}

// Read is Source's, row by row: between two rows anything may happen. Now and then it shows a row as it was before.
func (s *sweeps) Read(ctx context.Context, r Request, emit func(Batch) error) error {
	for id := range int64(modelRows + 1) {
		if err := s.yield(ctx); err != nil {
			return err
		}
		row, there := s.w.visible[id]
		if !there || s.w.hidden[id] > s.w.now {
			continue
		}
		if s.w.lagging[id] > s.w.now {
			row = s.w.previous[id]
		} else if before, was := s.w.previous[id]; was && !before.bad && before.updatedAt.Millis() < row.updatedAt.Millis() && !s.w.lied[before.serial] && s.draws.IntN(3) == 0 {
			s.w.lied[before.serial] = true
			row = before
		}
		b := Batch{Settled: schemas.MinInstant}
		s.w.put(&b, row)
		if s.draws.IntN(40) == 0 {
			return fmt.Errorf("connection reset")
		}
		if err := emit(b); err != nil {
			return err
		}
	}
	return emit(Batch{Settled: schemas.MinInstant, Done: &Done{Started: r.Started, Complete: true}})
}

const modelRows = 6

// mishap is something that no poll can see, or nobody should do.
func (w *world) mishap() {
	id := rapid.Int64Range(1, modelRows).Draw(w.t, "id of a mishap")
	row, there := w.visible[id]
	w.serial++
	switch rapid.IntRange(0, 7).Draw(w.t, "mishap") {
	case 0: // an update that does not touch updated_at
		if there {
			row.serial = w.serial
			w.visible[id] = row
		}
	case 1: // a row that comes far later than its updated_at says
		if !there {
			at := w.now.Add(-time.Duration(rapid.IntRange(0, 100_000_000).Draw(w.t, "late")) * time.Microsecond)
			w.visible[id], w.odd[id] = modelRow{id: id, updatedAt: at, serial: w.serial}, true
		}
	case 2:
		delete(w.visible, id)
		delete(w.previous, id)
		w.odd[id] = w.odd[id] || there // a transaction that is open may bring it back with an older stamp
	case 3: // somebody writes into the topic
		at := w.now.Add(time.Duration(rapid.IntRange(-60_000_000, 60_000_000).Draw(w.t, "stamp")) * time.Microsecond)
		w.topic = append(w.topic, topicRecord{modelRow: modelRow{id: rapid.Int64Range(1, modelRows+3).Draw(w.t, "tampered"), updatedAt: at, serial: w.serial}, time: w.now, foreign: true})
	case 4:
		w.topic = append(w.topic, topicRecord{modelRow: modelRow{id: id}, time: w.now, tombstone: true, foreign: true})
	case 5: // it can no longer be published, or again
		if there {
			row.bad = !row.bad
			w.visible[id], w.unsure[id] = row, true
		}
	case 6: // it was updated, and is nowhere for a while
		w.previous[id] = row
		if w.visible[id] = (modelRow{id: id, updatedAt: max(w.now, row.updatedAt), serial: w.serial}); !there {
			delete(w.previous, id)
		}
		w.hidden[id] = w.now.Add(w.shortOfOverlap("hidden"))
	case 7: // for a while the service shows an older state of it
		before, was := w.previous[id]
		if was && there && !before.bad && before.updatedAt.Millis() < row.updatedAt.Millis() && !w.lied[before.serial] {
			w.lied[before.serial] = true
			w.unsure[id] = true
			w.lagging[id] = w.now.Add(w.shortOfOverlap("lagging"))
		}
	}
}

func (w *world) shortOfOverlap(what string) time.Duration {
	return time.Duration(rapid.Int64Range(modelOverlap.Microseconds()/2, modelOverlap.Microseconds()-1).Draw(w.t, what)) * time.Microsecond
}

// Whatever happens to the table and to the topic, also what no poll can see, while sweeps go on and are cut off at any step: after a last sweep the topic is
// the source, its dead letters are the rows that cannot be published, no row that is there had a tombstone, and no record of ours steps back or is there
// twice for nothing.
func TestASweepMendsWhateverPollsCannotSee(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, now: schemas.InstantOf(time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC)), visible: map[int64]modelRow{}, mark: watermark.New("orders"),
			previous: map[int64]modelRow{}, lied: map[uint64]bool{}, letters: map[string]uint64{}, hidden: map[int64]schemas.Instant{}, lagging: map[int64]schemas.Instant{}, odd: map[int64]bool{}, unsure: map[int64]bool{},
			sweeps: &sweeps{parked: make(chan struct{}), resume: make(chan struct{})}}
		w.visible[0] = modelRow{id: 0, updatedAt: w.now} // an empty source is another matter
		w.takeOver()
		defer func() { w.poller.endSweep() }()
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 500_000).Draw(t, "time passes")) * time.Microsecond)
			switch rapid.IntRange(0, 15).Draw(t, "step") {
			case 0:
				w.takeOver()
			case 1:
				w.ask(watermark.Request{Kind: watermark.Sweeps})
			case 2:
				to := w.now.Add(-time.Duration(rapid.IntRange(0, 60_000_000).Draw(t, "back")) * time.Microsecond)
				w.ask(watermark.Request{Kind: watermark.Reset, To: &to})
			case 3, 4, 5, 6:
				w.poll()
			case 7, 8, 9, 10:
				for range rapid.IntRange(1, 20).Draw(t, "of the sweep") {
					w.sweeps.step(t)
				}
			case 11, 12:
				w.mishap()
			default:
				w.change(false)
			}
		}
		for _, r := range w.pending {
			w.set(r)
		}
		w.pending = nil
		w.ask(watermark.Request{Kind: watermark.Sweeps})
		w.rest(t)
		w.judge(t)
		w.judgeSwept(t)
	})
}

func (w *world) ask(r watermark.Request) {
	r.ID, r.Resource = int64(len(w.asked)+3), "orders"
	w.asked = append(w.asked, r)
}

// rest lets time pass until the sweep that was asked for last is finished.
func (w *world) rest(t *rapid.T) {
	for n, good := 0, 0; good < 3 || w.mark.Sweep != nil || w.mark.Request < w.asked[len(w.asked)-1].ID; n++ {
		if n > 1000 {
			t.Fatalf("the sweep does not end: %+v", w.poller.Status().Sweep)
		}
		w.now = w.now.Add(modelOverlap)
		if good++; w.work() != nil {
			good = 0
			w.takeOver()
		}
		for w.sweeps.step(t) {
		}
	}
}

func (w *world) judgeSwept(t *rapid.T) {
	newest := map[int64]topicRecord{}
	for _, r := range w.topic {
		newest[r.id] = r
	}
	for id, r := range newest {
		if _, there := w.visible[id]; !there && !r.tombstone {
			t.Fatalf("row %d is gone, the topic has %+v; swept: %+v", id, r, w.mark.Swept)
		}
	}
	want := map[string]uint64{}
	for id, row := range w.visible {
		if row.bad {
			want[fmt.Sprintf("orders/%d", id)] = watermark.DeadLetterHash(fmt.Appendf(nil, "%d", row.serial))
		}
	}
	if fmt.Sprint(w.letters) != fmt.Sprint(want) {
		t.Fatalf("dead letters %v, want %v", w.letters, want)
	}
}
