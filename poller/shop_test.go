package poller

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// shop is a table and a topic, and a poller between them that a test drives poll by poll. It is the poller's
// source as well, one that shows the table as it is. The models are shops to which anything may happen
// (world).
type shop struct {
	t       tester
	now     schemas.Instant
	skew    time.Duration // how far the poller's clock is ahead
	rows    map[int64]row
	topic   []record
	letters map[string]uint64
	mark    watermark.Watermark
	asked   []watermark.Request
	metrics *metrics.Set
	config  Config // of the next takeover
	poller  *Poller
	// How the topic takes transactions (Session).
	maxRows        func() int
	maxRecordBytes int
	publishes      func(context.Context, watermark.Transaction) error
	polling        bool // it polls, looks at rows the second time, or erases
	ctx            context.Context
	// partitions of the topic, 0: one. A row lies in that of its id.
	partitions int64
	mu         sync.Mutex // of topic, where Run is at work

	// What the source does. read, if not nil, is called when a full read begins and looks when a lookup does,
	// err is how full reads end, and full counts them. A lookup that hangs does not end by itself; incomplete
	// ones did not look for rows without a day, and byDay says that they find none of those.
	read              func(context.Context)
	looks             func(Request)
	err               error
	full              int
	hangs             bool
	incomplete, byDay bool
	notFound          int64          // a row that lookups do not show; 0: none
	lookups           []int          // by how many suspects each had
	lookTakes         time.Duration  // every lookup
	churn             *atomic.Uint64 // if not nil, a row changes with every poll
	// settles, if not 0, is what passes settle to, in place of now less the overlap; by row, which takes
	// rows that are stamped in the order of their ids. emitted is what the last emit returned.
	settles schemas.Instant
	emitted error
	partly  bool          // passes are not complete
	age     time.Duration // how old its rows may be
	// texts makes its passes compare texts, as those over REST do. find is Request.Find of the read in hand, and
	// same counts the rows that were handed on without a value.
	texts bool
	find  func([]rowset.Noted)
	same  int
}

// tester is *testing.T or *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// row is a version of a row. Two are equal when they are the same version.
type row struct {
	id        int64
	updatedAt schemas.Instant
	content   uint64
	padding   int  // bytes of content beside
	bad       bool // it cannot be published
	nameless  bool // it has no usable id
	dayless   bool // it has no created_at: no full reading meets it, and no lookup by that day
}

func (r row) record() schemas.Record {
	v := make([]byte, schemas.HeaderSize, schemas.HeaderSize+16+r.padding)
	v = binary.BigEndian.AppendUint64(v, uint64(r.updatedAt.Millis()))
	v = binary.BigEndian.AppendUint64(v, r.content)
	return schemas.Record{ID: r.id, UpdatedAt: r.updatedAt, Value: append(v, make([]byte, r.padding)...)}
}

func (r row) hash() uint64 { return schemas.Hash(r.record().Value) }

func (r row) put(b *Batch) {
	if r.bad {
		b.Rejects = append(b.Rejects, r.reject())
	} else {
		b.Rows = append(b.Rows, r.record())
	}
}

// put puts a row as it was read into b: without its value if the poller knows its text.
func (s *shop) put(b *Batch, r row) {
	if !s.texts || s.find == nil || r.bad || r.updatedAt != schemas.InstantOfMillis(r.updatedAt.Millis()) {
		r.put(b)
		return
	}
	text := r.hash() | 1
	found := []rowset.Noted{{ID: r.id}}
	if s.find(found); found[0].Known && !found[0].Version.Marked && found[0].Note == text {
		s.same++
		b.Same = append(b.Same, found[0])
		return
	}
	r.put(b)
	b.Rows[len(b.Rows)-1].Text = text
}

func rowOf(r schemas.Record) row {
	value := r.Value[schemas.HeaderSize:]
	content := binary.BigEndian.Uint64(value[8:])
	return row{id: r.ID, updatedAt: r.UpdatedAt, content: content, padding: len(value) - 16}
}

func (r row) reject() schemas.Reject {
	reject := schemas.Reject{ID: r.id, HasID: true, UpdatedAt: r.updatedAt,
		Row: fmt.Appendf(nil, "%d%*s", r.content, r.padding, "")}
	if r.nameless {
		reject.ID, reject.HasID = 0, false
	}
	return reject
}

// record is a record of the topic.
type record struct {
	watermark.Published
	row     row  // as it was published, or forged
	foreign bool // somebody else wrote it
}

const shopOverlap = time.Minute

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newShop is an empty shop whose poller is still to be opened.
func newShop(t tester, now time.Time) *shop {
	s := &shop{t: t, ctx: context.Background(), now: schemas.InstantOf(now), rows: map[int64]row{},
		letters: map[string]uint64{},
		mark:    watermark.New("orders"), metrics: metrics.New(prometheus.NewRegistry())}
	s.config = Config{
		Settings: Settings{Resource: &schemas.Resource{Name: "orders"},
			SourceName: "postgres", Interval: time.Second, Overlap: shopOverlap, Start: schemas.MinInstant},
		Clock:  func() Moment { return Moment{s.now.Time(), s.clock()} },
		Source: s, Session: s, Requests: s, Metrics: s.metrics.Resource("orders"), Log: zap.NewNop(),
		Renewed: func() <-chan struct{} { return nil }, Hide: func(text string) string { return text },
		Published: func([]schemas.Record, []int64) {}, Doing: func(string) {},
		Sweep: SweepConfig{Source: func() Source { return s }, Topic: s.readTopic,
			Turn: make(chan struct{}, 1)},
	}
	s.maxRows, s.maxRecordBytes, s.publishes = func() int { return 7 }, 1000, s.publish
	return s
}

// What Session and Requests ask of the shop.

// result is that of the last replay or retry, or nil.
func (s *shop) result() *watermark.Result {
	for _, r := range slices.Backward(s.mark.Results) {
		switch r.Kind {
		case watermark.Reset, watermark.Replays, watermark.Retries:
			return &r
		}
	}
	return nil
}

func (s *shop) Watermark() watermark.Watermark { return s.mark }

func (s *shop) DeadLetters() map[string]uint64 { return s.letters }

func (s *shop) MaxRows() int { return s.maxRows() }

func (s *shop) MaxRecordBytes() int { return s.maxRecordBytes }

func (s *shop) EndOffsets(context.Context) ([]int64, error) { return s.ends(), nil }

func (s *shop) Commit(ctx context.Context, tx watermark.Transaction) error {
	return s.publishes(ctx, tx)
}

func (s *shop) Changed() <-chan struct{} { return nil }

func (s *shop) After(_ string, id int64, _ string) []watermark.Request {
	older := func(r watermark.Request, id int64) int { return int(r.ID - id) }
	i, _ := slices.BinarySearchFunc(s.asked, id+1, older)
	return s.asked[i:]
}

// openShop has n rows, all of them published, and a poller that has made a complete pass.
func openShop(t *testing.T, n int, change func(*Config)) *shop {
	t.Helper()
	s := newShop(t, noon)
	if change != nil {
		change(&s.config)
	}
	for id := range int64(n) {
		s.rows[id] = s.row(id, -time.Hour, 1)
	}
	s.takeOver()
	t.Cleanup(func() { s.poller.sweeper.end() })
	s.poll()
	return s
}

// takeOver begins with a new poller from what the topic says, as the producer does it.
func (s *shop) takeOver() {
	if s.poller != nil {
		s.poller.sweeper.end()
	}
	c := s.config
	s.poller = New(c)
	from, begun, ends := s.mark.DedupFrom.Millis(), map[int64]bool{}, map[int64]int64{}
	for _, r := range s.topic {
		partition := s.partition(r.ID)
		offset := ends[partition]
		ends[partition]++
		begun[partition] = begun[partition] || r.Time.Millis() >= from
		if r.Stray || !begun[partition] {
			continue
		}
		r.Old = s.mark.Replay != nil && offset < s.mark.Replay.Ends[partition]
		s.poller.RestorePublished(r.Published)
	}
}

func (s *shop) partition(id int64) int64 {
	n := max(s.partitions, 1)
	return (id%n + n) % n
}

// ends are the end offsets of the topic's partitions.
func (s *shop) ends() []int64 {
	ends := make([]int64, max(s.partitions, 1))
	for _, r := range s.topic {
		ends[s.partition(r.ID)]++
	}
	return ends
}

// clock is the poller's clock on the wall.
func (s *shop) clock() schemas.Instant { return s.now.Add(s.skew) }

// row is row id as it was updated `age` after noon, with some content.
func (s *shop) row(id int64, age time.Duration, content uint64) row {
	return row{id: id, updatedAt: schemas.InstantOf(noon.Add(age)), content: content}
}

func (s *shop) published(r row) record {
	millis := func(i schemas.Instant) schemas.Instant { return schemas.InstantOfMillis(i.Millis()) }
	return record{row: r, Published: watermark.Published{ID: r.id, UpdatedAt: millis(r.updatedAt),
		CreatedAt: schemas.InstantOf(noon), Hash: r.hash(), Time: millis(min(r.updatedAt, s.clock()))}}
}

func (s *shop) tombstone(id int64) record {
	return record{row: row{id: id}, Published: watermark.Published{ID: id, Time: s.clock(), Tombstone: true}}
}

// forge writes into the topic as somebody else.
func (s *shop) forge(r record) {
	r.foreign = true
	s.topic = append(s.topic, r)
}

// Read is Source's.
func (s *shop) Read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	return pushed(func(emit func(Batch) error) error { return s.push(ctx, r, emit) })
}

func (s *shop) push(ctx context.Context, r Request, emit func(Batch) error) error {
	if s.texts {
		s.find = r.Find
	}
	switch r.Kind {
	case Full:
		if s.full++; s.read != nil {
			s.read(ctx)
		}
	case Lookup:
		if s.now = s.now.Add(s.lookTakes); s.looks != nil {
			s.looks(r)
		}
		if s.lookups = append(s.lookups, len(r.Suspects)); s.hangs {
			<-ctx.Done()
		}
	}
	b := Batch{Age: s.age, Settled: schemas.MinInstant, Done: &Done{Started: r.Started, Complete: true}}
	b.Done.Empty = r.Kind == Lookup && len(s.rows) == 0
	for _, id := range slices.Sorted(maps.Keys(s.rows)) {
		row := s.rows[id]
		if !s.wanted(r, row) {
			continue
		}
		if s.put(&b, row); s.settles != 0 && r.Kind != Full && r.Kind != Lookup {
			b.Settled = min(s.settles, row.updatedAt)
			some := b
			if some.Done = nil; emit(some) == nil {
				b.Rows, b.Same, b.Rejects = nil, nil, nil
				continue
			}
			s.emitted = emit(Batch{})
			return s.emitted
		}
	}
	if s.churn != nil && r.Kind != Full {
		n := s.churn.Add(1)
		s.row(1<<40, time.Hour+time.Duration(n)*time.Second, n).put(&b)
	}
	if r.Kind == Lookup {
		b.Done.Complete = !s.incomplete
	} else if r.Kind != Full {
		b.Done.Complete = !s.partly
		if b.Settled = s.now.Add(-shopOverlap); s.settles != 0 {
			b.Settled = s.settles
		}
	} else if s.err != nil {
		return s.err
	}
	s.emitted = emit(b)
	return s.emitted
}

func (s *shop) wanted(r Request, row row) bool {
	switch r.Kind {
	case Full:
		return row.updatedAt >= r.From && !row.dayless
	case Lookup:
		if s.notFound != 0 && row.id == s.notFound {
			return false
		}
		if r.Everywhere {
			return true
		}
		if row.dayless {
			return slices.ContainsFunc(r.Suspects, func(x Suspect) bool {
				return x.ID == row.id && x.UpdatedAt.Day() == row.updatedAt.Day()
			})
		}
		return slices.ContainsFunc(r.Suspects, func(x Suspect) bool {
			return x.ID == row.id && (!s.byDay || max(x.UpdatedAt, x.CreatedAt) > schemas.MinInstant)
		})
	}
	return row.updatedAt >= r.From
}

// publish commits a transaction.
func (s *shop) publish(_ context.Context, tx watermark.Transaction) error {
	if tx.Len() > 9 { // 7, and what belongs to them
		s.t.Errorf("a transaction of %d rows, %d tombstones, %d strays and %d dead letters",
			len(tx.Rows), len(tx.Deletes), len(tx.Strays), len(tx.DeadLetters))
	}
	return s.commit(tx)
}

func (s *shop) commit(tx watermark.Transaction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range tx.Rows {
		s.topic = append(s.topic, s.published(rowOf(r)))
	}
	for _, id := range tx.Deletes {
		s.topic = append(s.topic, s.tombstone(id))
	}
	for _, x := range tx.Strays {
		r := s.tombstone(x.ID)
		r.Partition, r.Stray = x.Partition, true
		s.topic = append(s.topic, r)
	}
	for _, l := range tx.DeadLetters {
		if s.letters[l.Key] = watermark.DeadLetterHash(l.Row); l.Row == nil {
			delete(s.letters, l.Key)
		}
	}
	s.mark = tx.Watermark
	return nil
}

func (s *shop) readTopic(_ context.Context, from []int64, wanted func(int64) bool,
	fold func(watermark.Published) error) ([]int64, error) {
	at := int64(0)
	if from != nil {
		at = from[0]
	}
	s.mu.Lock()
	records, ends := slices.Clone(s.topic), map[int64]int64{}
	s.mu.Unlock()
	for i := range records {
		r, partition := &records[i], s.partition(records[i].ID)
		if r.Offset = ends[partition]; !r.Stray {
			r.Partition = int32(partition)
		}
		ends[partition]++
	}
	records = records[at:]
	for _, r := range records { // the source may change meanwhile
		if wanted != nil && !wanted(r.ID) {
			continue
		}
		if err := fold(r.Published); err != nil {
			return nil, err
		}
	}
	return []int64{at + int64(len(records))}, nil
}

// work is what Run does between two waits.
func (s *shop) work() error {
	err := s.poller.acceptRequests()
	rests := false
	if err == nil {
		rests, err = s.poller.rests()
	}
	if rests {
		return err
	}
	if err == nil {
		s.polling = true
		err = s.poller.poll(s.ctx)
		s.polling = false
	}
	if err == nil {
		err = s.poller.sweeper.step(s.ctx)
	}
	return err
}

// poll works once, and lets what the sweep does beside it come to its end.
func (s *shop) poll() {
	s.t.Helper()
	if err := s.work(); errors.Is(err, ErrTakeover) {
		s.takeOver()
	} else if err != nil {
		s.t.Fatalf("%v", err)
	}
	if s.read == nil {
		s.awaitSweep()
	}
}

// awaitSweep waits until no goroutine of the sweep is at work.
func (s *shop) awaitSweep() {
	if w := s.poller.sweeper.inHand; w != nil && w.working != nil {
		w.working <- <-w.working
	}
}

// ask puts a request, of this moment unless it says otherwise, and returns its id.
func (s *shop) ask(r watermark.Request) int64 {
	r.ID, r.Topic = int64(len(s.asked)+1), "store.requests"
	r.Resource, r.At = "orders", cmp.Or(r.At, s.now)
	s.asked = append(s.asked, r)
	return r.ID
}

// confirms asks for a sweep that may delete n rows.
func (s *shop) confirms(n int) int64 {
	return s.ask(watermark.Request{Kind: watermark.Sweeps, ConfirmedDeletes: n})
}

func (s *shop) askSweep() int64 { return s.ask(watermark.Request{Kind: watermark.Sweeps}) }

// sweep asks for a sweep and polls until it is done.
func (s *shop) sweep() *watermark.Swept {
	s.t.Helper()
	s.await(s.askSweep())
	return s.mark.Swept
}

// await polls every second until the sweep that was asked for by request id is done.
func (s *shop) await(id int64) {
	s.t.Helper()
	for range 1000 {
		s.poll()
		s.now = s.now.Add(time.Second)
		if s.mark.Request >= id && s.mark.Sweep == nil {
			return
		}
	}
	s.t.Fatalf("the sweep does not end: %+v", s.poller.Status().Sweep)
}

// troubled is why settling is delayed, or the resource fails, as the poller says.
func (s *shop) troubled() string {
	if t := s.poller.Status().Trouble; t != nil {
		return t.Why
	}
	return ""
}

// newest is the topic's newest record of id.
func (s *shop) newest(id int64) (r record, there bool) {
	for _, r := range slices.Backward(s.topic) {
		if r.ID == id && !r.Stray {
			return r, !r.Tombstone
		}
	}
	return record{}, false
}

// wants fails unless the topic's newest record of the row is this version.
func (s *shop) wants(row row) {
	s.t.Helper()
	if r, there := s.newest(row.id); !there || r.Hash != row.hash() {
		s.t.Errorf("the topic's newest record of row %d is %+v, want %+v", row.id, r, row)
	}
}

// one yields a single batch.
func one(b Batch) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) { yield(b, nil) }
}

// wallClock is the clock of a poller that runs in real time.
func wallClock() Moment {
	now := time.Now()
	return Moment{now, schemas.InstantOf(now)}
}
