package poller

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
	"pgregory.net/rapid"
)

// world is a table whose rows change, and a topic, as far as a Poller can tell them apart: it satisfies Source's contract and no more.
// Rows come in any order, in batches of any size, more often than once; a transaction stamps its rows up to an overlap before they can
// be seen.
type world struct {
	t       *rapid.T
	now     schemas.Instant
	visible map[int64]modelRow
	pending []modelRow // stamped, not yet committed
	// previous versions come up once more in a later read, each once.
	previous map[int64]modelRow
	lied     map[uint64]bool
	// backwards: updated_at may truly go back.
	backwards bool
	serial    uint64
	topic     []topicRecord
	mark      watermark.Watermark
	asked     []watermark.Request
	// replays are the resets accepted so far, by the length of the topic at that time.
	replays []acceptedReplay
	poller  *Poller
	// What goes on inside a poll is drawn from these, seeded before it: reading and writing run side by side, and rapid draws from one goroutine.
	reading, writing *rand.Rand

	// What only sweeps can mend or must bear (sweep_model_test.go): rows that cannot be published, those that are nowhere until a time, the dead letters, and the rows
	// whose updated_at went back, or that were deleted.
	hidden  map[int64]schemas.Instant
	lagging map[int64]schemas.Instant // shown as they were before until then
	letters map[string]uint64
	odd     map[int64]bool
	unsure  map[int64]bool // that could not be published, or seen, at some time: a replay may have met them then
	sweeps  *sweeps        // nil: no sweeps
}

type modelRow struct {
	id        int64
	updatedAt schemas.Instant
	serial    uint64 // the content
	bad       bool   // it cannot be published
}

type topicRecord struct {
	modelRow
	time               schemas.Instant
	tombstone, foreign bool // foreign: somebody else wrote it
}

type acceptedReplay struct {
	from schemas.Instant
	at   int
}

const modelOverlap = 10 * time.Second

func (w *world) value(r modelRow) schemas.Record {
	v := make([]byte, schemas.HeaderSize, schemas.HeaderSize+16)
	v = binary.BigEndian.AppendUint64(v, uint64(r.updatedAt.Millis()))
	v = binary.BigEndian.AppendUint64(v, r.serial)
	return schemas.Record{ID: r.id, UpdatedAt: r.updatedAt, Value: v}
}

// Read is Source's: everything at or after From that was visible when the read began, and whatever else it meets.
func (w *world) Read(_ context.Context, r Request, emit func(Batch) error) error {
	settled := min(w.now, w.earliestPending()).Add(-modelOverlap)
	began := r.Started
	var rows []modelRow
	for _, id := range sortedIDs(w.visible) {
		row := w.visible[id]
		if w.hidden[id] > w.now {
			continue
		}
		if w.lagging[id] > w.now {
			row = w.previous[id]
		}
		if before, there := w.previous[id]; there && (!before.bad || r.Kind == Lookup) && before.updatedAt >= r.From && before.updatedAt.Millis() < w.visible[id].updatedAt.Millis() && !w.lied[before.serial] && w.reading.IntN(3) == 0 {
			w.lied[before.serial] = true // two versions of a row in one read, the older one maybe last (K26)
			rows = append(rows, before)
		}
		if r.Kind == Lookup || row.updatedAt >= r.From || w.reading.IntN(10) == 0 {
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 {
		w.reading.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		rows = append(rows, rows[w.reading.IntN(len(rows)):]...)
	}
	for len(rows) > 0 {
		n := 1 + w.reading.IntN(len(rows))
		b := Batch{Settled: schemas.MinInstant}
		for _, row := range rows[:n] {
			w.put(&b, row)
		}
		if err := emit(b); err != nil {
			return err
		}
		rows = rows[n:]
		if w.reading.IntN(20) == 0 {
			return errors.New("connection reset")
		}
	}
	if r.Kind == Lookup {
		return emit(Batch{Settled: schemas.MinInstant, Done: &Done{Started: began, Complete: true}})
	}
	return emit(Batch{Settled: settled, Done: &Done{Started: began, Complete: true}})
}

func (w *world) put(b *Batch, row modelRow) {
	if !row.bad {
		b.Rows = append(b.Rows, w.value(row))
		return
	}
	b.Rejects = append(b.Rejects, schemas.Reject{ID: row.id, HasID: true, UpdatedAt: row.updatedAt, Row: fmt.Appendf(nil, "%d", row.serial), Err: "bad"})
}

func (w *world) earliestPending() schemas.Instant {
	e := schemas.MaxInstant
	for _, r := range w.pending {
		e = min(e, r.updatedAt.Add(modelOverlap))
	}
	return e
}

func (w *world) publish(_ context.Context, tx watermark.Transaction) error {
	outcome := w.writing.IntN(30)
	if outcome == 0 {
		return errors.New("aborted")
	}
	for _, r := range tx.Rows {
		w.topic = append(w.topic, topicRecord{modelRow: modelRow{id: r.ID, updatedAt: r.UpdatedAt, serial: binary.BigEndian.Uint64(r.Value[schemas.HeaderSize+8:])},
			time: schemas.InstantOfMillis(min(r.UpdatedAt, w.now).Millis())})
	}
	for _, id := range tx.Deletes {
		if _, there := w.visible[id]; there {
			w.t.Fatalf("a tombstone for row %d, which the source has", id)
		}
		w.topic = append(w.topic, topicRecord{modelRow: modelRow{id: id}, time: w.now, tombstone: true})
	}
	for _, l := range tx.DeadLetters {
		if w.letters[l.Key] = watermark.DeadLetterHash(l.Row); l.Row == nil {
			delete(w.letters, l.Key)
		}
	}
	if tx.Watermark.Replay != nil && (w.mark.Replay == nil || w.mark.Replay.Request != tx.Watermark.Replay.Request) {
		for _, q := range w.asked { // the reset as it was asked for: the watermark's From may be an earlier one's
			if q.ID == tx.Watermark.Replay.Request {
				w.replays = append(w.replays, acceptedReplay{*q.To, len(w.topic)})
			}
		}
	}
	w.mark = tx.Watermark
	if outcome == 1 {
		return errors.New("the outcome is unknown: it was committed")
	}
	return nil
}

// takeOver starts a new Poller from what the topic says, as the producer does it.
func (w *world) takeOver() {
	clock := func() time.Time { return w.now.Time() }
	if w.poller != nil {
		w.poller.endSweep()
	}
	p := New(Config{
		Resource: &schemas.Resource{Declaration: schemas.Declaration{Name: "orders"}}, Source: w, SourceName: "postgres", Interval: time.Second, Overlap: modelOverlap, Start: schemas.MinInstant,
		Watermark: w.mark, DeadLetters: w.letters, Sweep: w.sweeps.config(w), Publish: w.publish, MaxRows: func() int { return 1 + w.writing.IntN(20) },
		MaxRecordBytes: 1 << 20, EndOffsets: func(context.Context) ([]int64, error) { return []int64{int64(len(w.topic))}, nil },
		Requests: func(after int64) []watermark.Request {
			i, _ := slices.BinarySearchFunc(w.asked, after+1, func(r watermark.Request, id int64) int { return int(r.ID - id) })
			return w.asked[i:]
		},
		Changed: func() <-chan struct{} { return nil }, Now: clock, Metrics: metrics.New(prometheus.NewRegistry()).Resource("orders"), Log: zap.NewNop(),
	})
	first := slices.IndexFunc(w.topic, func(r topicRecord) bool { return r.time.Millis() >= w.mark.DedupFrom.Millis() })
	for i := max(first, 0); first >= 0 && i < len(w.topic); i++ {
		r := w.topic[i]
		published := w.published(r)
		published.Old = w.mark.Replay != nil && int64(i) < w.mark.Replay.Ends[0]
		p.RestorePublished(published)
	}
	w.poller = p
}

func (w *world) published(r topicRecord) watermark.Published {
	if r.tombstone {
		return watermark.Published{ID: r.id, Time: r.time, Tombstone: true}
	}
	return watermark.Published{ID: r.id, UpdatedAt: schemas.InstantOfMillis(r.updatedAt.Millis()), Hash: schemas.Hash(w.value(r.modelRow).Value), Time: r.time}
}

// work is what Run does between two waits.
func (w *world) work() error {
	seed := rapid.Uint64().Draw(w.t, "seed")
	w.reading, w.writing = rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	if err := w.poller.acceptRequests(context.Background()); err != nil {
		return err
	}
	if err := w.poller.poll(context.Background(), nil); err != nil || w.sweeps == nil {
		return err
	}
	return w.sweeps.on(w)
}

func (w *world) poll() {
	err := w.work()
	var write *writeError
	if errors.As(err, &write) || errors.Is(err, ErrReplay) || err != nil && err.Error() == "aborted" || err != nil && err.Error() == "the outcome is unknown: it was committed" {
		w.takeOver()
	}
}

// change is one thing that happens to the table.
func (w *world) change(futures bool) {
	w.serial++
	id := rapid.Int64Range(1, 6).Draw(w.t, "id")
	row := modelRow{id: id, updatedAt: w.now, serial: w.serial}
	switch rapid.IntRange(0, 9).Draw(w.t, "change") {
	case 0, 1, 2: // stamped now, seen later; commits come in any order
		if !slices.ContainsFunc(w.pending, func(r modelRow) bool { return r.id == id }) { // its row lock is held
			w.pending = append(w.pending, row)
		}
	case 3, 4, 5:
		if n := len(w.pending); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(w.t, "commits")
			w.set(w.pending[i])
			w.pending = slices.Delete(w.pending, i, i+1)
		}
	case 6:
		if futures {
			row.updatedAt = w.now.Add(time.Duration(rapid.IntRange(0, 100_000_000).Draw(w.t, "ahead")) * time.Microsecond)
		}
		fallthrough
	default:
		if !slices.ContainsFunc(w.pending, func(r modelRow) bool { return r.id == id }) {
			w.set(row)
		}
	}
}

func (w *world) set(row modelRow) {
	was, there := w.visible[row.id]
	if there {
		w.previous[row.id] = was
		if was.updatedAt > row.updatedAt && !w.backwards {
			row.updatedAt = was.updatedAt // a writer that keeps updated_at from going back
		}
	}
	w.visible[row.id] = row
}

// Whatever happens in whatever order to the table, the reads, the writes and the process: when all goes quiet the topic's newest
// record of every row is the row (nothing lost), no record is older than the one before it (nothing stale), and no version
// is there twice but for replays (nothing twice). And a replay has sent every row since its time again.
func TestWhateverHappensTheTopicConvergesWithoutStaleOrDoubleRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, now: schemas.InstantOf(time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC)), visible: map[int64]modelRow{}, mark: watermark.New("orders"),
			previous: map[int64]modelRow{}, lied: map[uint64]bool{}, letters: map[string]uint64{}, backwards: rapid.IntRange(0, 3).Draw(t, "backwards") == 0}
		futures := rapid.Bool().Draw(t, "rows from the future")
		w.takeOver()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 4_000_000).Draw(t, "time passes")) * time.Microsecond)
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				w.takeOver()
			case 1:
				to := w.now.Add(-time.Duration(rapid.IntRange(0, 60_000_000).Draw(t, "back")) * time.Microsecond)
				w.asked = append(w.asked, watermark.Request{ID: int64(len(w.asked) + 3), Resource: "orders", Kind: watermark.Reset, To: &to})
			case 2, 3, 4:
				w.poll()
			default:
				w.change(futures)
			}
		}
		for _, r := range w.pending {
			w.set(r)
		}
		w.pending = nil
		for good := 0; good < 3; { // quiet: until enough polls in a row went through, an overlap apart for second looks
			w.now = w.now.Add(modelOverlap)
			if good++; w.work() != nil {
				good = 0
				w.takeOver()
			}
		}
		w.judge(t)
	})
}

func (w *world) judge(t *rapid.T) {
	newest, at, seenTwice := map[int64]modelRow{}, map[int64]int{}, map[string]int{}
	ours := map[int64]modelRow{} // that nothing else came after
	for i, r := range w.topic {
		if r.foreign || r.tombstone || w.odd[r.id] { // whatever stood before it may come again
			maps.DeleteFunc(seenTwice, func(version string, _ int) bool { return strings.HasPrefix(version, fmt.Sprintf("%d ", r.id)) })
			delete(ours, r.id)
			if delete(newest, r.id); !r.tombstone {
				newest[r.id], at[r.id] = r.modelRow, i
			}
			continue
		}
		if was, there := ours[r.id]; there && r.updatedAt.Millis() < was.updatedAt.Millis() && !w.backwards {
			t.Fatalf("row %d steps back from %v to %v at record %d", r.id, was.updatedAt, r.updatedAt, i)
		}
		version := fmt.Sprint(r.id, r.serial)
		if before, there := seenTwice[version]; there && !w.replayed(before, i) {
			t.Fatalf("version %d of row %d is there twice, at %d and %d", r.serial, r.id, before, i)
		}
		ours[r.id], newest[r.id], at[r.id], seenTwice[version] = r.modelRow, r.modelRow, i, i
	}
	for id, row := range w.visible {
		if row.bad {
			continue
		}
		if newest[id] != row {
			t.Fatalf("row %d is %+v, the topic has %+v", id, row, newest[id])
		}
		for _, replay := range w.replays {
			if row.updatedAt >= replay.from && at[id] < replay.at && !w.unsure[id] {
				t.Fatalf("row %d was not sent again by the replay from %v", id, replay.from)
			}
		}
	}
}

// replayed says whether a replay began between the two records.
func (w *world) replayed(first, second int) bool {
	return slices.ContainsFunc(w.replays, func(r acceptedReplay) bool { return first < r.at && r.at <= second })
}

func sortedIDs[V any](m map[int64]V) []int64 { return slices.Sorted(maps.Keys(m)) }
