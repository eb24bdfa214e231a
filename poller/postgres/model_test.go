package postgres

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

// world is a model of the server: transactions that start, write, open savepoints, commit and roll back in
// any order, a clock that is set, a column that comes and goes, a standby that is promoted, and the primary
// before it that answers still. The relation is a table, or one whose rows cannot be told by their
// transactions; another one takes its place or its name, and another client leaves a search_path.
type world struct {
	t         *rapid.T
	now       schemas.Instant // by the server's clock
	ours      schemas.Instant // by ours, which nobody sets
	set       []setting       // of the server's clock
	next      uint64          // the id to be given out next
	completed uint64          // the largest id of a transaction that is over
	open      map[uint64]*writer
	rows      map[int64]version // committed
	replayed  []replayed        // what a standby may show, the oldest first
	ended     uint64            // transactions, so far
	timeline  uint32
	replaced  *replayed // what the primary before shows; nil: there was none
	gone      bool      // a column is
	relation  relationOf
	// file is the number of the relation's file. first is the id that was given out first.
	file  uint32
	first uint64
	// changed: nobody has looked since the name leads to other rows. elsewhere: the role's search_path leads to
	// another table, session: that of the client which had the connection before does. known: somebody has read
	// the first one.
	changed, elsewhere, session, known bool
	calm                               int  // no mishaps happen
	standby                            bool // somebody reads one
	// unseen: nobody has looked since the clock was set, or since a standby was promoted.
	unseen, promoted bool
	kind             kind
	played           rounds.Played
}

// kind is what a world is prone to. Most defects take two mishaps of one sort, or one right before something
// else: where anything may happen at any time, that comes about in one round of thousands.
type kind struct {
	mishaps []string
	every   int // in how many ticks there is a mishap
	ticks   int // at most, at once
	owners  int // in how many polls of 30 another owner begins
}

var (
	anything = kind{[]string{"column", "clock", "clock", "clock", "promotion", "promotion", "rewritten"},
		20, 15, 1}
	rewrites = kind{[]string{"rewritten"}, 8, 15, 6}
	forward  = kind{[]string{"clock forward"}, 8, 1, 1}
	back     = kind{[]string{"clock back"}, 4, 15, 10}
	promoted = kind{[]string{"promotion"}, 3, 40, 1}
	swapped  = kind{[]string{"relation", "relation", "elsewhere", "session"}, 4, 15, 3}
)

// relationOf is what the table's name leads to.
type relationOf struct {
	oid     uint32
	leadsTo string
	noFloor string
}

// setting is by how much the server's clock is ahead of ours from some moment on.
type setting struct{ from, ahead schemas.Instant }

// replayed is what a standby shows that has replayed the log until some transaction ended.
type replayed struct {
	clock clock
	rows  map[int64]version
}

// mostReplayed is by how many ends a standby may lag, but one.
const mostReplayed = 4

type writer struct {
	started schemas.Instant // what now() says in it
	ids     []uint64        // its own and its savepoints'
	writes  map[int64]version
}

type version struct {
	stamp schemas.Instant
	xmin  uint64
	null  bool // read without the column that comes and goes
}

const modelOverlap = 20 * time.Microsecond

func newWorld(t *rapid.T, played rounds.Played) *world {
	kinds := []kind{anything, forward, forward, back, promoted, promoted, swapped, rewrites}
	w := &world{
		kind: rapid.SampledFrom(kinds).Draw(t, "kind"), played: played,
		t: t, now: 1000, ours: 1000, open: map[uint64]*writer{}, rows: map[int64]version{}, timeline: 1,
		next: rapid.SampledFrom([]uint64{100, 1<<31 - 20, 1<<32 + 3, 1<<33 - 20}).Draw(t, "next"),
	}
	w.completed, w.first, w.file = w.next-1, w.next, 1
	w.standby = rapid.Bool().Draw(t, "standby")
	w.relation = relationOf{oid: modelTable}
	if rapid.IntRange(0, 2).Draw(t, "relation") == 0 {
		w.relation.noFloor = "it is a view"
	}
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
		w.tick(schemas.Instant(rapid.IntRange(1, w.kind.ticks).Draw(w.t, "ticks")))
		if w.calm == 0 && rapid.IntRange(1, w.kind.every).Draw(w.t, "rare") == 1 {
			w.mishap()
		}
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
	tx := &writer{started: w.at(w.ours - ago), ids: []uint64{w.next}, writes: map[int64]version{}}
	w.open[w.next] = tx
	w.next++
	w.write(tx)
}

// write stamps now() (the start of the transaction), the clock, or the future.
func (w *world) write(tx *writer) {
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
	at.clock.standby, at.clock.running, at.clock.position, at.clock.timeline = true, nil, w.ended, 0
	w.replayed = append(w.replayed[max(0, len(w.replayed)+1-mostReplayed):], at)
}

// clock is the clock of a primary's transaction in which nothing happens.
func (w *world) clock() clock {
	c := clock{time: w.now, known: true, relation: w.relation.oid, next: w.next, timeline: w.timeline,
		file: w.file}
	c.asked = w.ours.Time()
	c.answered = c.asked
	c.xmax = w.completed + 1
	c.xmin = c.xmax
	for _, id := range slices.Sorted(maps.Keys(w.open)) {
		c.xmin = min(c.xmin, id)
		if id < c.xmax {
			c.running = append(c.running, id)
		}
	}
	return c
}

// snapshot is a transaction's first statement: the clock stands since BEGIN, and things go on before the next
// id is read. A standby does not list what runs, and may lag.
func (w *world) snapshot(standby bool) (*clock, map[int64]version) {
	if standby && len(w.replayed) > 0 {
		at := rapid.SampledFrom(w.replayed).Draw(w.t, "replayed")
		at.clock.asked, at.clock.answered = w.ours.Time(), w.ours.Time()
		return &at.clock, maps.Clone(at.rows)
	}
	began := w.clock()
	w.calm++ // a transaction does not outlive its server
	w.stir("between BEGIN and the snapshot")
	c, seen := w.clock(), maps.Clone(w.rows)
	w.stir("between the snapshot and age()")
	w.calm--
	c.time, c.asked, c.answered, c.next = began.time, began.asked, began.answered, w.next
	return &c, seen
}

// tick lets time pass.
func (w *world) tick(ticks schemas.Instant) { w.now, w.ours = w.now+ticks, w.ours+ticks }

// at is what the server's clock said at some moment of ours.
func (w *world) at(ours schemas.Instant) schemas.Instant {
	ahead := schemas.Instant(0)
	for _, s := range w.set {
		if s.from <= ours {
			ahead = s.ahead
		}
	}
	return ours + ahead
}

// blocks is how many the relation has when id is given out. Each few transactions bring another one.
func (w *world) blocks(id uint64) int64 { return 3 + min(max(int64(id-w.first), 0)/4, 20) }

// block is where a version lies: in any block that there was when it was written, and another one after the
// relation was rewritten.
func (w *world) block(id int64, v version) int64 {
	h := ((uint64(id)*31+uint64(v.stamp))*31+v.xmin)*31 + uint64(w.file)
	return int64(h * 0x9E3779B97F4A7C15 >> 32 % uint64(w.blocks(v.xmin)))
}

// mishap happens to the server as a whole, once until somebody looks.
func (w *world) mishap() {
	switch what := rapid.SampledFrom(w.kind.mishaps).Draw(w.t, "mishap"); {
	case what == "column":
		w.gone = !w.gone
		w.played.Count("a column is gone", w.gone)
	case what == "relation":
		w.change()
	case what == "rewritten": // by VACUUM FULL, which waits for nobody's snapshot
		w.file++
		w.replayed = nil // what a standby shows lies in the file that it has
		w.played.Count("the table is rewritten", true)
	case what == "elsewhere":
		w.elsewhere = w.known && !w.elsewhere
	case what == "session":
		w.session = !w.session
	case w.unseen:
	case what != "promotion":
		w.setClock(what)
	case len(w.replayed) > 0:
		w.promote(rapid.SampledFrom(w.replayed).Draw(w.t, "promoted"))
		w.played.Count("a standby is promoted", true)
	}
}

// change makes the name lead to other rows that no transaction writes: another table is renamed to it, or
// what is below it changes. Some rows are as they were before, some are gone, and some come.
func (w *world) change() {
	for _, id := range slices.Sorted(maps.Keys(w.open)) {
		w.end(id, rapid.Bool().Draw(w.t, "commits before the change"))
	}
	rows := maps.Clone(w.rows)
	for range rapid.IntRange(1, 4).Draw(w.t, "rows that change") {
		id := rapid.Int64Range(1, 12).Draw(w.t, "row")
		if _, there := rows[id]; there && rapid.Bool().Draw(w.t, "gone") {
			delete(rows, id)
			continue
		}
		before := schemas.Instant(rapid.IntRange(1, 100).Draw(w.t, "stamped before"))
		rows[id] = version{stamp: w.now - before, xmin: w.completed}
	}
	w.rows, w.replayed, w.replaced, w.changed = rows, nil, nil, true
	w.file++
	w.played.Count("the relation changes", true)
	if w.relation.noFloor == "" || rapid.Bool().Draw(w.t, "replaced") {
		w.relation.oid++
		return
	}
	w.relation.leadsTo += "+"
}

// setClock sets the server's clock. A step forward does not show on a standby.
func (w *world) setClock(which string) {
	step := schemas.Instant(rapid.IntRange(-100, 100).Draw(w.t, "step"))
	switch {
	case w.standby, which == "clock back":
		step = min(step, -step)
	case which == "clock forward":
		step = max(step, -step)
	}
	w.played.Count("the clock is set back", step < 0)
	w.played.Count("the clock is set forward", step > 0)
	w.now, w.unseen = w.now+step, true
	w.set = append(w.set, setting{w.ours, w.now - w.ours})
}

// promote makes a standby the primary, which may lack the last transactions: their ids are given out again.
func (w *world) promote(at replayed) {
	before := replayed{w.clock(), w.rows}
	w.replaced, w.unseen, w.promoted = &before, true, true
	w.rows, w.open = maps.Clone(at.rows), map[uint64]*writer{}
	w.next, w.completed, w.replayed = at.clock.xmax, at.clock.xmax-1, nil
	w.timeline++
}

const modelTable = 16_385

// model polls a world with the decisions of pass, and takes over what the passes hand over as the poller
// does.
type model struct {
	w *world
	// What the watermark holds.
	settled  schemas.Instant
	cursor   *watermark.Cursor
	load     *watermark.Load
	floor    *watermark.Floor
	identity *watermark.Identity
	fields   []string
	topic    map[int64]version
	// What a Source holds.
	horizons horizons
	lineage  lineage
	reader   chunkReader
	// alone: there is no standby.
	alone bool
	// loaded: a load has just ended, and the same owner goes on.
	loaded bool
	// final was said of these versions.
	final map[place]bool
}

// age is the server's age() of an id: in 32 bits, as it counts.
func age(id, next uint64) int32 { return int32(uint32(next) - uint32(id)) }

// passes says whether the server lets a row through.
func (p part) passes(v version, next uint64) bool {
	return p.low == 0 || age(v.xmin, next) <= age(p.low, next)
}

// isFinal is what the server says of a row that it lets through.
func (p *pass) isFinal(v version, next uint64) bool {
	return p.final != 0 && age(v.xmin, next) > age(p.final, next)
}

// poll is a pass. It may end at any batch: what was committed by then is all that the next one knows.
func (m *model) poll(t *rapid.T) {
	if n := len(m.w.set); n > 0 && m.horizons.began == nil {
		// A step forward less than an overlap before an owner begins is not found out (doc.go).
		since := m.w.ours - m.w.set[n-1].from
		m.w.tick(max(0, 1+schemas.Instant(modelOverlap.Microseconds())-since))
	}
	played := m.w.played
	played.Count("a poll", true)
	table := m.table()
	if played.Count("a poll that a missing column blocks", table == nil); table == nil {
		return
	}
	before := m.lineage
	c, visible := m.snapshot()
	if c == nil {
		return
	}
	r := poller.Request{From: m.settled, Cursor: m.cursor, Load: m.load, Floor: m.floor, Identity: m.identity}
	p := newPass(r, schemas.MinInstant, &m.horizons, nil)
	p.table, p.clock = table, c
	p.identity = watermark.Identity{Table: table.oid, Schema: table.schema, Kind: table.kind,
		LeadsTo: m.w.relation.leadsTo, System: "7/5", Timeline: cmp.Or(c.timeline, m.w.timeline)}
	if p.lags(r) {
		played.Count("a poll of a server that lags", true)
		m.lineage = before
		return
	}
	if !m.begin(p, r) {
		return
	}
	again := len(p.parts) > 0 && p.parts[0].until != nil
	played.Count("a load", p.load != nil)
	// After a primary, a standby may show less for a moment (clock.olderThan): a row may be late, not lost.
	late, primary := false, !c.standby
	for place := p.parts[0].after; ; {
		m.w.stir("between chunks")
		part := p.parts[0]
		chunk, rows := m.chunk(p, place)
		if chunk == nil {
			break
		}
		late, primary = late || primary && chunk.clock.standby, primary || !chunk.clock.standby
		if rapid.IntRange(0, 19).Draw(t, "crash before the commit") == 0 {
			break
		}
		b, err := p.batch(chunk)
		if err != nil { // of another table than the pass began with
			m.lose(err)
			return
		}
		for i, row := range rows {
			if m.final[row] && m.w.next-row.v.xmin < 1<<31 { // what wraps looks newer than it is
				t.Fatalf("row %d %v was final, and is met again by %+v", row.id, row.v, p.parts[0])
			}
			if part.blocks || part.until == nil && p.isFinal(row.v, chunk.clock.next) {
				m.final[row] = true
			}
			m.topic[row.id] = rows[i].v
		}
		played.Count("settled moves", b.Settled > m.settled)
		m.settled, m.cursor, m.identity, m.w.known = max(m.settled, b.Settled), b.Cursor, b.Identity, true
		m.load = b.Load
		m.check()
		if b.Done != nil {
			m.floor, m.fields = b.Done.Floor, b.Done.Fields
			m.horizons.prune(p.xmin)
			played.Count("a complete pass", true)
			if (!p.resumed || again) && !late && !m.w.changed {
				m.met(p, visible)
			}
			return
		}
		if rapid.IntRange(0, 19).Draw(t, "crash after the commit") == 0 {
			break
		}
		if place = chunk.end; chunk.last {
			if p.parts = p.parts[1:]; len(p.parts) == 0 { // the load has ended
				played.Count("a load ends", true)
				m.loaded = true
				m.poll(t)
				return
			}
			place = p.parts[0].after
		}
	}
	if rapid.Bool().Draw(t, "successor") {
		m.takeover()
	}
}

// begin decides as Source.pass does. False: what was read before does not count.
func (m *model) begin(p *pass, r poller.Request) bool {
	w, watched := m.w, p.horizons.began != nil && !p.clock.standby
	p.inherit(r)
	p.horizons.observe(p.clock, true)
	lost := p.lost(r, schemas.MinInstant)
	known := r.Identity != nil && r.Identity.Table != 0
	if w.changed {
		switch {
		case known && lost == nil:
			w.t.Fatalf("nobody notices that the name leads to other rows: %+v, was %+v", p.identity, r.Identity)
		case !known: // nothing says so, and a sweep repairs it
			m.sweep()
		}
		w.changed = false
	}
	// The primary's next chunk shows a promotion to who has seen the one before.
	awaits := w.promoted && !known && p.clock.standby && m.lineage.timeline > 0
	if w.unseen && !awaits && (w.promoted || !p.clock.standby) {
		switch {
		case w.promoted && known && lost == nil:
			w.t.Fatalf("nobody notices that a standby was promoted: %+v", r)
		case w.promoted && !known: // nothing says so, and a sweep repairs it
			m.sweep()
		case watched || w.promoted:
		case lost == nil && !p.firstLoad && p.clock.time < p.from.Add(modelOverlap):
			w.t.Fatalf("settled at %d, the clock set back to %d, and nobody notices", p.from, p.clock.time)
		default: // how low it went nobody knows
			m.sweep()
		}
		w.unseen, w.promoted = false, false
		w.replayed = nil // nor does a standby show any more what it replayed before
	}
	if lost == nil {
		if err := m.lineage.reached(p.identity.Timeline); err != nil {
			w.unseen, w.promoted = false, false
			m.lose(err)
			return false
		}
		if lost = m.findLoad(p, r); lost == nil {
			lost = p.begin(r)
		}
		if m.floor == nil && lost == nil {
			if !m.loaded {
				maps.DeleteFunc(m.final, func(row place, _ bool) bool { return row.v.stamp >= p.from })
			}
			m.loaded = false
			return true
		}
	} else if watched && lost.From < schemas.MaxInstant && known && differs(&p.identity, r.Identity) == nil {
		lost.Sweep = false // what was stamped meanwhile lies at From or later
	}
	if lost != nil {
		m.lose(lost)
	}
	return lost == nil
}

// findLoad decides as the one of passes does. The server is asked for the number of blocks after p's clock.
func (m *model) findLoad(p *pass, r poller.Request) *poller.LostError {
	mayBegin, err := p.resumeLoad(r)
	lost, _ := errors.AsType[*poller.LostError](err)
	before := p.horizons.reach(p.clock.xmin)
	if !mayBegin || lost != nil || before <= p.from || rapid.IntRange(0, 3).Draw(m.w.t, "small") == 0 {
		return lost
	}
	for _, v := range m.w.rows {
		if v.stamp < p.from {
			return nil
		}
	}
	m.w.stir("before the number of blocks")
	p.beginLoad(m.w.blocks(m.w.next))
	p.load.Before = before // the model's clock counts microseconds
	return nil
}

// lose goes back as a poller does.
func (m *model) lose(err error) {
	var lost *poller.LostError
	if !errors.As(err, &lost) {
		m.w.t.Fatal(err)
	}
	m.w.played.Count("what was read does not count", true)
	m.load = m.load.Back(lost.From, m.settled)
	m.settled, m.cursor, m.floor = min(m.settled, lost.From), nil, nil
	if lost.Sweep {
		m.identity = m.identity.Anew()
	}
	m.w.replayed = nil // nothing is left by which to tell that a standby lags
	m.again()
	m.takeover()
	if lost.Sweep {
		m.sweep()
	}
}

// again forgets what was final and may be read again. It returns from where on that is.
func (m *model) again() schemas.Instant {
	from := m.settled
	if m.load != nil {
		from = m.load.Before
	}
	maps.DeleteFunc(m.final, func(row place, _ bool) bool { return row.v.stamp >= from })
	return from
}

// sweep publishes what there is. What transactions bring that are open meanwhile the next one finds.
func (m *model) sweep() {
	for _, id := range slices.Sorted(maps.Keys(m.w.open)) {
		m.w.end(id, true)
	}
	m.topic = maps.Clone(m.w.rows)
}

// takeover is another owner, who knows the watermark alone.
func (m *model) takeover() {
	m.w.played.Count("a takeover", true)
	m.horizons, m.lineage = horizons{overlap: modelOverlap}, lineage{}
	m.reader = chunkReader{}
}

// table is what the catalogue says now; nil: the resource is blocked.
func (m *model) table() *table {
	t := &table{oid: m.w.relation.oid, schema: "public", kind: "r", noFloor: m.w.relation.noFloor,
		fields: []string{"id", "note"}, alone: m.w.relation.noFloor == "", lockable: true}
	another := m.w.session && !slices.Contains(ownSettings, "RESET ALL")
	if another || m.w.elsewhere {
		t.oid, t.schema = modelTable-1, "mine"
	}
	if m.w.gone && m.fields != nil {
		t.fields, t.missing = []string{"id"}, []string{"note"}
	}
	m.reader.Resource, m.reader.before = &schemas.Resource{}, m.identity
	m.reader.expect(m.fields)
	err := m.reader.accept(t)
	switch {
	case another:
		m.w.t.Fatalf("another client's search_path decides which table is read: %v", err)
	case m.w.elsewhere && err == nil:
		m.w.t.Fatalf("rows of another table are read: %+v, was %+v", t, m.identity)
	case err != nil:
		m.w.played.Count("a poll that another table blocks", m.w.elsewhere)
		return nil
	}
	return t
}

// snapshot is of the primary, or of a standby that shows no less than what was shown before, or of a primary
// that was replaced. It is nil where another history answers than before.
func (m *model) snapshot() (*clock, map[int64]version) {
	w, which := m.w, rapid.IntRange(0, 9).Draw(m.w.t, "server")
	if m.alone {
		which = 9
	}
	var c *clock
	var visible map[int64]version
	noticed := m.lineage.timeline == w.timeline || m.identity != nil && m.identity.Timeline == w.timeline
	if which == 0 && w.replaced != nil && noticed {
		before := w.replaced.clock
		before.time, before.asked, before.answered = w.now, w.ours.Time(), w.ours.Time()
		c, visible = &before, maps.Clone(w.replaced.rows)
		w.played.Count("the primary of before answers", true)
	} else {
		c, visible = w.snapshot(w.standby && which < 3)
		w.played.Count("a standby answers", c.standby)
	}
	err := m.lineage.follow(c)
	if errors.Is(err, errLagging) {
		c, visible = w.snapshot(false)
		err = m.lineage.follow(c)
	}
	switch {
	case err == nil:
		return c, visible
	case !w.promoted:
		w.t.Fatalf("%v: %+v", err, c)
	}
	w.unseen, w.promoted = false, false
	m.lose(err)
	return nil, nil
}

type place struct {
	id int64
	v  version
}

// chunk reads some rows after k that p's filter lets through, or that it reads again.
func (m *model) chunk(p *pass, k key) (*chunk, []place) {
	c, visible := m.snapshot()
	table := m.table()
	if c == nil || table == nil {
		return nil, nil
	}
	if p.parts[0].blocks {
		return m.blocks(p, c, table, visible)
	}
	var rows []place
	part := p.parts[0]
	for id, v := range visible {
		at := key{at: microsOf(v.stamp), id: id}
		beyond := part.undated || part.until != nil && at.after(*part.until)
		if at.after(k) && !beyond && part.passes(v, c.next) {
			v.null = table.missing != nil
			rows = append(rows, place{id, v})
		}
	}
	m.order(rows)
	limit := rapid.IntRange(1, 5).Draw(m.w.t, "limit")
	chunk := &chunk{clock: c, table: table, from: k, end: k, last: len(rows) < limit}
	rows = rows[:min(len(rows), limit)]
	if n := len(rows); chunk.last && part.until != nil {
		chunk.end = *part.until
	} else if n > 0 {
		chunk.end = key{at: microsOf(rows[n-1].v.stamp), id: rows[n-1].id}
	}
	return chunk, rows
}

func (m *model) order(rows []place) {
	slices.SortFunc(rows, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.v.stamp, b.v.stamp), cmp.Compare(a.id, b.id))
	})
}

// blocks reads some blocks, or a part of one in the order (updated_at, id).
func (m *model) blocks(p *pass, c *clock, table *table, visible map[int64]version) (*chunk, []place) {
	after := p.readTo()
	if p.blocks = 1; p.load.After == nil {
		p.blocks = rapid.IntRange(1, 3).Draw(m.w.t, "blocks")
	}
	var rows []place
	for id, v := range visible {
		at, block := key{at: microsOf(v.stamp), id: id}, m.w.block(id, v)-p.load.Block
		if block >= 0 && block < int64(p.blocks) && v.stamp < p.load.Before && at.after(after) {
			v.null = table.missing != nil
			rows = append(rows, place{id, v})
		}
	}
	m.order(rows)
	chunk := &chunk{clock: c, table: table, last: true, end: after}
	if limit := rapid.IntRange(1, 3).Draw(m.w.t, "limit"); p.blocks == 1 && len(rows) > limit {
		rows, chunk.last = rows[:limit], false
		chunk.end = key{at: microsOf(rows[limit-1].v.stamp), id: rows[limit-1].id}
	}
	return chunk, rows
}

// check is the promise: nothing before settled is there that was not read. Between a mishap and the next look
// nobody can know.
func (m *model) check() {
	if m.w.unseen || m.w.changed {
		return
	}
	m.w.played.Count("settled is checked", true)
	for id, v := range m.w.rows {
		if v.stamp < m.settled && m.topic[id] != v {
			m.w.t.Fatalf("settled at %d, but row %d %v was never read (read: %v)", m.settled, id, v, m.topic[id])
		}
	}
}

// met is what as of promises: all that was visible when the pass began was met, unless it has changed since.
func (m *model) met(p *pass, visible map[int64]version) {
	m.w.played.Count("a complete pass is checked", len(visible) > 0)
	for id, v := range visible {
		if m.w.rows[id] == v && v.stamp >= p.from && m.topic[id] != v {
			m.w.t.Fatalf("a pass at %+v by %+v missed row %d %v, has %v", p.clock, p.parts, id, v, m.topic[id])
		}
	}
}

// replay publishes everything from some moment on again.
func (m *model) replay() {
	back := m.w.now - schemas.Instant(rapid.IntRange(0, 100).Draw(m.w.t, "back"))
	if rapid.IntRange(0, 2).Draw(m.w.t, "all") == 0 {
		back = 0
	}
	m.load = m.load.Back(back, m.settled)
	m.settled = min(m.settled, back)
	m.cursor, m.floor = nil, nil
	m.w.replayed = nil // nothing is left by which to tell that a standby lags
	from := m.again()
	for id, v := range m.topic {
		if v.stamp >= from {
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
	played := rounds.Played{}
	n := rounds.Check(t, 100, func(t *rapid.T) {
		w := newWorld(t, played)
		m := &model{
			w: w, horizons: horizons{overlap: modelOverlap}, settled: schemas.MinInstant, topic: map[int64]version{},
			final: map[place]bool{},
		}
		for range rapid.IntRange(1, 25).Draw(t, "polls") {
			w.stir("between polls")
			switch at := rapid.IntRange(0, 29).Draw(t, "mishap"); {
			case at == 0:
				m.replay()
			case at == 1:
				w.reset()
			case at < 2+w.kind.owners:
				m.takeover()
			}
			m.poll(t)
		}
		// All is quiet: it settles up to the clock.
		w.calm, w.gone, w.elsewhere, m.alone = 1, false, false, true
		last := w.now
		for polls := 0; polls < 3 || m.settled <= last; polls++ {
			for _, id := range slices.Sorted(maps.Keys(w.open)) {
				w.end(id, true)
				m.check()
			}
			m.poll(t)
			m.check()
			if w.tick(schemas.Instant(modelOverlap.Microseconds())); polls > 200 {
				t.Fatalf("settled stands at %d, the clock at %d, and nothing stays open", m.settled, w.now)
			}
		}
	})
	played.Want(t, n, map[string]float64{
		"a complete pass": 2, "a complete pass is checked": 1, "settled is checked": 10, "settled moves": 3,
		"a takeover": 1.5, "what was read does not count": 0.3, "a standby answers": 0.8,
		"a standby is promoted": 0.2, "the primary of before answers": 0.06, "the clock is set back": 0.3,
		"the clock is set forward": 0.06, "a poll that a missing column blocks": 0.03, "the relation changes": 0.1,
		"a poll that another table blocks": 0.05, "a load": 0.5, "a load ends": 0.1, "the table is rewritten": 0.1,
	})
}
