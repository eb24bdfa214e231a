package postgres

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
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
	replayed  []replayed        // what a standby may show, the oldest first
	ended     uint64            // transactions, so far
}

// replayed is what a standby shows that has replayed the log until some transaction ended.
type replayed struct {
	clock clock
	rows  map[int64]version
}

// mostReplayed is by how many ends a standby may lag, but one.
const mostReplayed = 4

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
	w := &world{
		t: t, now: 1000, open: map[uint64]*transaction{}, rows: map[int64]version{},
		next: rapid.SampledFrom([]uint64{100, 1<<31 - 20, 1<<32 + 3, 1<<33 - 20}).Draw(t, "next"),
	}
	w.completed = w.next - 1
	return w
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
	w.ended++
	at := replayed{w.clock(), maps.Clone(w.rows)}
	at.clock.standby, at.clock.running, at.clock.position = true, nil, w.ended
	w.replayed = append(w.replayed[max(0, len(w.replayed)+1-mostReplayed):], at)
}

// clock is the clock of a primary's transaction in which nothing happens.
func (w *world) clock() clock {
	c := clock{time: w.now, known: true, relation: modelTable, next: w.next}
	c.xmax, c.running = w.completed+1, map[uint64]struct{}{}
	c.xmin = c.xmax
	for id := range w.open {
		c.xmin = min(c.xmin, id)
		if id < c.xmax {
			c.running[id] = struct{}{}
		}
	}
	return c
}

// snapshot is a transaction's first statement: the clock stands since BEGIN, and things go on before the next
// id is read. A standby does not list what runs, and may lag.
func (w *world) snapshot(standby bool) (*clock, map[int64]version) {
	if standby && len(w.replayed) > 0 {
		at := rapid.SampledFrom(w.replayed).Draw(w.t, "replayed")
		return &at.clock, maps.Clone(at.rows)
	}
	began := w.now
	w.stir("between BEGIN and the snapshot")
	c, seen := w.clock(), maps.Clone(w.rows)
	w.stir("between the snapshot and age()")
	c.time, c.next = began, w.next
	return &c, seen
}

const modelTable = 16_385

// model polls a world with the decisions of pass, and takes over what the passes hand over as the poller
// does.
type model struct {
	w *world
	// What the watermark holds.
	settled schemas.Instant
	cursor  *watermark.Cursor
	floor   *watermark.Floor
	topic   map[int64]version
	// What a Source holds.
	horizons horizons
	lineage  lineage
	// alone: there is no standby.
	alone bool
	// final was said of these versions.
	final map[place]bool
}

// age is the server's age() of an id: in 32 bits, as it counts.
func age(id, next uint64) int32 { return int32(uint32(next) - uint32(id)) }

// passes says whether the server lets a row through.
func (f *filter) passes(v version, next uint64) bool {
	return f.low == 0 || age(v.xmin, next) <= age(f.low, next)
}

// isFinal is what the server says of a row that it lets through.
func (f *filter) isFinal(v version, next uint64) bool {
	return f.final != 0 && age(v.xmin, next) > age(f.final, next)
}

// poll is a pass. It may end at any batch: what was committed by then is all that the next one knows.
func (m *model) poll(t *rapid.T) (complete bool) {
	c, visible := m.snapshot()
	p := &pass{horizons: &m.horizons, table: &table{oid: modelTable}, clock: c,
		identity: identity{table: modelTable, system: "7/5", timeline: 1},
		from:     m.settled, at: keyAt(m.settled)}
	cursor := m.cursor
	if p.lags(poller.Request{Cursor: cursor, Floor: m.floor}) {
		return false
	}
	if cursor != nil && !p.follows(cursor) {
		t.Fatalf("a cursor of this database is not trusted: %+v", cursor)
	}
	if cursor != nil && len(m.horizons.noted) == 0 && cursor.HorizonNext > 0 {
		p.horizons.note(horizon{time: cursor.HorizonTime, next: cursor.HorizonNext})
	}
	p.note()
	dropped := p.begin(m.floor, cursor) != "" || m.floor == nil
	if dropped {
		clear(m.final)
	}
	again, from := p.again != nil, p.at
	if again {
		from = p.againFrom
	}
	// After a primary, a standby may show less for a moment (clock.olderThan): a row may be late, not lost.
	late, primary := false, !c.standby
	for place := from; ; {
		m.w.stir("between chunks")
		chunk, rows := m.chunk(p, place)
		late, primary = late || primary && chunk.clock.standby, primary || !chunk.clock.standby
		if rapid.IntRange(0, 19).Draw(t, "crash before the commit") == 0 {
			break
		}
		b := p.batch(chunk)
		if chunk.last && p.again == nil && p.readsUndated() { // there are none
			p.complete(b)
		}
		for i, row := range rows {
			if m.final[row] && m.w.next-row.v.xmin < 1<<31 { // what wraps looks newer than it is
				t.Fatalf("row %d %v was final, and is met again by %+v", row.id, row.v, p.filter)
			}
			if p.again == nil && p.filter.isFinal(row.v, chunk.clock.next) {
				m.final[row] = true
			}
			m.topic[row.id] = rows[i].v
		}
		m.settled, m.cursor = max(m.settled, b.Settled), b.Cursor
		m.check()
		if b.Done != nil {
			m.floor = b.Done.Floor
			m.horizons.prune(p.xmin)
			if (!p.resumed || again) && !late {
				m.met(p, visible)
			}
			return true
		}
		if rapid.IntRange(0, 19).Draw(t, "crash after the commit") == 0 {
			break
		}
		if place = chunk.end; chunk.last {
			p.again, place = nil, p.at
		}
	}
	if rapid.Bool().Draw(t, "successor") {
		m.horizons, m.lineage = horizons{overlap: modelOverlap}, lineage{}
	}
	return false
}

// snapshot is of the primary, or of a standby that shows no less than what was shown before.
func (m *model) snapshot() (*clock, map[int64]version) {
	standby := !m.alone && rapid.IntRange(0, 4).Draw(m.w.t, "standby") == 0
	c, visible := m.w.snapshot(standby)
	if m.lineage.follow(c) != nil {
		if c, visible = m.w.snapshot(false); m.lineage.follow(c) != nil {
			m.w.t.Fatalf("the primary lags: %+v", c)
		}
	}
	return c, visible
}

type place struct {
	id int64
	v  version
}

// chunk reads some rows after k that p's filter lets through, or that it reads again.
func (m *model) chunk(p *pass, k key) (*chunk, []place) {
	c, visible := m.snapshot()
	var rows []place
	f, ahead := p.filter, func(key) bool { return false }
	if p.again != nil {
		f, ahead = *p.again, func(at key) bool { return at.after(keyOf(p.cursor)) }
	}
	for id, v := range visible {
		at := key{at: microsOf(v.stamp), id: id}
		if at.after(k) && !ahead(at) && f.passes(v, c.next) {
			rows = append(rows, place{id, v})
		}
	}
	slices.SortFunc(rows, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.v.stamp, b.v.stamp), cmp.Compare(a.id, b.id))
	})
	limit := rapid.IntRange(1, 5).Draw(m.w.t, "limit")
	chunk := &chunk{clock: c, table: p.table, from: k, end: k, last: len(rows) < limit}
	rows = rows[:min(len(rows), limit)]
	if n := len(rows); chunk.last && p.again != nil {
		chunk.end = keyOf(p.cursor)
	} else if n > 0 {
		chunk.end = key{at: microsOf(rows[n-1].v.stamp), id: rows[n-1].id}
	}
	return chunk, rows
}

// check is the promise: nothing before settled is there that was not read.
func (m *model) check() {
	for id, v := range m.w.rows {
		if v.stamp < m.settled && m.topic[id] != v {
			m.w.t.Fatalf("settled at %d, but row %d %v was never read (read: %v)", m.settled, id, v, m.topic[id])
		}
	}
}

// met is what as of promises: all that was visible when the pass began was met, unless it has changed since.
func (m *model) met(p *pass, visible map[int64]version) {
	for id, v := range visible {
		if m.w.rows[id] == v && v.stamp >= p.from && m.topic[id] != v {
			m.w.t.Fatalf("a pass at %+v by %+v missed row %d %v, has %v", p.clock, p.filter, id, v, m.topic[id])
		}
	}
}

// replay publishes everything from some moment on again.
func (m *model) replay() {
	m.settled = min(m.settled, m.w.now-schemas.Instant(rapid.IntRange(0, 100).Draw(m.w.t, "back")))
	m.cursor, m.floor = nil, nil
	m.w.replayed = nil // nothing is left by which to tell that a standby lags
	clear(m.final)
	for id, v := range m.topic {
		if v.stamp >= m.settled {
			delete(m.topic, id)
		}
	}
}

// reset is pg_resetwal, with nothing open.
func (w *world) reset() {
	for _, id := range slices.Sorted(maps.Keys(w.open)) {
		w.end(id, false)
	}
	w.next += rapid.Uint64Range(1, 5_000_000_000).Draw(w.t, "ids skipped")
	w.completed, w.replayed = w.next-1, nil
}

// Whenever settled moves to X, there is no unread row with an updated_at before X then or later, whatever
// commits when. And each pass meets all that was visible when it began, though it leaves out what was met.
func TestWhateverCommitsWhenNothingBeforeSettledIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		m := &model{
			w: w, horizons: horizons{overlap: modelOverlap}, settled: schemas.MinInstant, topic: map[int64]version{},
			final: map[place]bool{},
		}
		for range rapid.IntRange(1, 25).Draw(t, "polls") {
			w.stir("between polls")
			switch rapid.IntRange(0, 29).Draw(t, "mishap") {
			case 0:
				m.replay()
			case 1:
				w.reset()
			}
			m.poll(t)
		}
		for _, id := range slices.Sorted(maps.Keys(w.open)) {
			w.end(id, true)
			m.check()
		}
		last := w.now
		w.now += schemas.Instant(modelOverlap.Microseconds())
		m.alone = true
		// All is quiet: it settles up to the clock.
		for m.settled <= last-schemas.Instant(modelOverlap.Microseconds()) {
			before := m.settled
			complete := m.poll(t)
			m.check()
			if complete && m.cursor == nil && m.settled == before && len(w.open) == 0 && w.now == last {
				t.Fatalf("settled stands at %d, the clock at %d, and nothing is open", m.settled, w.now)
			}
			for _, id := range slices.Sorted(maps.Keys(w.open)) {
				w.end(id, true)
			}
		}
	})
}
