package postgres

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

// world is a model of the server, as far as late commits go: transactions that start, write, open savepoints,
// commit and roll back in any order.
type world struct {
	t         *rapid.T
	now       schemas.Instant
	next      uint64 // the id to be given out next
	completed uint64 // the largest id of a transaction that is over
	open      map[uint64]*transaction
	rows      map[int64]version // committed
}

type transaction struct {
	started schemas.Instant // what now() says in it
	ids     []uint64        // its own and its savepoints'
	writes  map[int64]version
}

type version struct {
	stamp schemas.Instant
	xmin  uint64
}

const modelOverlap = 20 * time.Microsecond

func newWorld(t *rapid.T) *world {
	return &world{
		t: t, now: 1000, next: 100, completed: 99, open: map[uint64]*transaction{}, rows: map[int64]version{},
	}
}

// stir lets some things happen.
func (w *world) stir(label string) {
	for range rapid.IntRange(0, 6).Draw(w.t, label) {
		w.step()
	}
}

func (w *world) step() {
	switch op := rapid.IntRange(0, 9).Draw(w.t, "op"); {
	case op < 2:
		w.now += schemas.Instant(rapid.IntRange(1, 15).Draw(w.t, "ticks"))
	case op < 4:
		w.begin()
	case len(w.open) == 0:
	case op < 7:
		tx := w.open[rapid.SampledFrom(slices.Sorted(maps.Keys(w.open))).Draw(w.t, "writer")]
		if op == 6 {
			tx.ids = append(tx.ids, w.next) // a savepoint that writes
			w.next++
		}
		w.write(tx)
	default:
		w.end(rapid.SampledFrom(slices.Sorted(maps.Keys(w.open))).Draw(w.t, "ends"), op < 9)
	}
}

// begin starts a transaction that makes its first write now, and may have started up to overlap ago: the one
// thing that is assumed of writers.
func (w *world) begin() {
	ago := schemas.Instant(rapid.IntRange(0, int(modelOverlap.Microseconds())).Draw(w.t, "started"))
	tx := &transaction{started: w.now - ago, ids: []uint64{w.next}, writes: map[int64]version{}}
	w.open[w.next] = tx
	w.next++
	w.write(tx)
}

// write stamps now() (the start of the transaction), the clock, or the future.
func (w *world) write(tx *transaction) {
	row := rapid.Int64Range(1, 12).Draw(w.t, "row")
	for _, other := range w.open {
		if _, locked := other.writes[row]; locked && other != tx {
			return
		}
	}
	stamp := []schemas.Instant{tx.started, w.now, w.now + 50}[rapid.IntRange(0, 2).Draw(w.t, "stamp")]
	tx.writes[row] = version{stamp: stamp, xmin: tx.ids[len(tx.ids)-1]}
}

func (w *world) end(id uint64, commit bool) {
	tx := w.open[id]
	delete(w.open, id)
	w.completed = max(w.completed, slices.Max(tx.ids))
	if commit {
		maps.Copy(w.rows, tx.writes)
	}
}

// snapshot is a transaction's first statement: the clock stands since BEGIN, and things go on before the next
// id is read.
func (w *world) snapshot() (*clock, map[int64]version) {
	c := &clock{time: w.now, known: true}
	w.stir("between BEGIN and the snapshot")
	c.xmax, c.running = w.completed+1, map[uint64]struct{}{}
	c.xmin = c.xmax
	for id := range w.open {
		c.xmin = min(c.xmin, id)
		if id < c.xmax {
			c.running[id] = struct{}{}
		}
	}
	seen := maps.Clone(w.rows)
	w.stir("between the snapshot and age()")
	c.next = w.next
	return c, seen
}

// model reads a world as Source does, in chunks, with the same horizons and frontier.
type model struct {
	w        *world
	horizons horizons
	settled  schemas.Instant
	front    *frontier
	topic    map[int64]version
}

// scan reads the rows after (at, id) in the order of the keyset, chunk by chunk, other things happening in
// between.
func (m *model) scan(from schemas.Instant, keep func(version) bool, each func(*clock, schemas.Instant)) {
	place := version{stamp: from}
	after := int64(0)
	for {
		c, rows := m.w.snapshot()
		limit := rapid.IntRange(1, 5).Draw(m.w.t, "limit")
		ids := slices.DeleteFunc(slices.Collect(maps.Keys(rows)), func(id int64) bool {
			v := rows[id]
			return v.stamp < place.stamp || v.stamp == place.stamp && id <= after || !keep(v)
		})
		slices.SortFunc(ids, func(a, b int64) int {
			if d := rows[a].stamp - rows[b].stamp; d != 0 {
				return int(d)
			}
			return int(a - b)
		})
		end := schemas.MaxInstant
		if len(ids) >= limit {
			ids = ids[:limit]
			place, after = rows[ids[limit-1]], ids[limit-1]
			end = place.stamp
		}
		for _, id := range ids {
			m.topic[id] = rows[id]
		}
		each(c, end)
		if end == schemas.MaxInstant {
			return
		}
		m.w.stir("between chunks")
	}
}

// complete is a completePass.
func (m *model) complete() {
	xmin := uint64(math.MaxUint64)
	var first *clock
	from := m.settled
	m.scan(from, func(version) bool { return true }, func(c *clock, end schemas.Instant) {
		if first == nil {
			first = c
		}
		m.horizons.note(c.horizon())
		xmin = min(xmin, c.xmin)
		m.settled = max(m.settled, min(end, m.horizons.reach(xmin)))
	})
	m.horizons.prune(xmin)
	m.front = newFrontier(modelOverlap, first, m.settled)
}

// cheap is a cheap pass. It checks that it met all that was visible when it began.
func (m *model) cheap() {
	c, rows := m.w.snapshot()
	m.horizons.note(c.horizon())
	from, filter := m.front.reach(c)
	keep := func(v version) bool { return v.xmin >= filter.writer || v.stamp >= filter.newest }
	m.scan(max(from, m.settled), keep, func(*clock, schemas.Instant) {})
	m.front.advance(c)
	for id, v := range rows {
		if stayed := m.w.rows[id] == v; stayed && v.stamp >= m.settled && m.topic[id] != v {
			m.w.t.Fatalf("a cheap pass from %d on (%+v) missed row %d %v, has %v", from, filter, id, v, m.topic[id])
		}
	}
}

// check is the promise: nothing before settled is there that was not read.
func (m *model) check() {
	for id, v := range m.w.rows {
		if v.stamp < m.settled && m.topic[id] != v {
			m.w.t.Fatalf("settled at %d, but row %d %v was never read (read: %v)", m.settled, id, v, m.topic[id])
		}
	}
}

// Whenever settled moves to X, there is no unread row with an updated_at before X then or later, whatever
// commits when. And while settled is held back, cheap passes miss nothing either.
func TestWhateverCommitsWhenNothingBeforeSettledIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		m := &model{
			w: w, horizons: horizons{overlap: modelOverlap}, settled: schemas.MinInstant, topic: map[int64]version{},
		}
		for range rapid.IntRange(1, 25).Draw(t, "polls") {
			w.stir("between polls")
			if m.front != nil && rapid.IntRange(0, 2).Draw(t, "kind") > 0 {
				m.cheap()
			} else {
				m.complete()
			}
			m.check()
		}
		for id := range maps.Clone(w.open) {
			w.end(id, true)
			m.check()
		}
		last := w.now
		w.now += schemas.Instant(modelOverlap.Microseconds())
		// All is quiet: it settles up to the clock.
		for m.settled <= last-schemas.Instant(modelOverlap.Microseconds()) {
			before := m.settled
			m.complete()
			m.check()
			if m.settled == before && len(w.open) == 0 && w.now == last {
				t.Fatalf("settled stands at %d, the clock at %d, and nothing is open", m.settled, w.now)
			}
			for id := range maps.Clone(w.open) {
				w.end(id, true)
			}
		}
	})
}
