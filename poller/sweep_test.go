package poller

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

// shop is a table and a topic, and a poller between them that a test drives poll by poll.
type shop struct {
	t       *testing.T
	now     time.Time
	rows    map[int64]schemas.Record
	bad     map[int64]schemas.Reject
	topic   []watermark.Published
	letters map[string]uint64
	mark    watermark.Watermark
	asked   []watermark.Request
	metrics *metrics.Set
	poller  *Poller
	change  func(*Config)

	full  int  // full readings
	hangs bool // lookups do not end by themselves
	stop  chan struct{}
	err   error
	mu    sync.Mutex     // of topic, where Run is at work
	churn *atomic.Uint64 // if not nil, a row changes with every poll
	// read, if not nil, is called when a full reading begins.
	read func(context.Context)
	// everywhere is what lookups say.
	everywhere bool
	byDay      bool // they find nothing that has no day
}

const shopOverlap = time.Minute

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// openShop has n rows, all of them published, and a poller that has made a complete pass.
func openShop(t *testing.T, n int, change func(*Config)) *shop {
	t.Helper()
	s := &shop{t: t, now: noon, rows: map[int64]schemas.Record{}, bad: map[int64]schemas.Reject{}, letters: map[string]uint64{}, mark: watermark.New("orders"),
		metrics: metrics.New(prometheus.NewRegistry()), change: change, everywhere: true}
	for id := range int64(n) {
		s.rows[id] = s.row(id, -time.Hour, 1)
	}
	s.open()
	t.Cleanup(func() { s.poller.endSweep() })
	s.poll()
	return s
}

// open begins a new tenure, with what the topic says.
func (s *shop) open() {
	c := Config{
		Resource: &schemas.Resource{Declaration: schemas.Declaration{Name: "orders"}}, Source: s, SourceName: "postgres", Interval: time.Second, Overlap: shopOverlap, Start: schemas.MinInstant,
		Watermark: s.mark, DeadLetters: s.letters, Publish: s.publish, MaxRows: func() int { return 7 }, MaxRecordBytes: 1000,
		EndOffsets: func(context.Context) ([]int64, error) { return []int64{int64(len(s.topic))}, nil },
		Requests: func(after int64) []watermark.Request {
			i, _ := slices.BinarySearchFunc(s.asked, after+1, func(r watermark.Request, id int64) int { return int(r.ID - id) })
			return s.asked[i:]
		},
		Changed: func() <-chan struct{} { return nil }, Now: func() time.Time { return s.now }, Metrics: s.metrics.Resource("orders"), Log: zap.NewNop(),
		Sweep: SweepConfig{Source: func() Source { return s }, Topic: s.readTopic},
	}
	if s.change != nil {
		s.change(&c)
	}
	s.poller = New(c)
	for _, r := range s.topic {
		s.poller.RestorePublished(r)
	}
}

// row is row id as it is `age` from noon on, with some content.
func (s *shop) row(id int64, age time.Duration, content uint64) schemas.Record {
	at := schemas.InstantOf(noon.Add(age))
	value := binary.BigEndian.AppendUint64(make([]byte, schemas.HeaderSize), content)
	return schemas.Record{ID: id, UpdatedAt: at, Value: binary.BigEndian.AppendUint64(value, uint64(at))}
}

func (s *shop) published(r schemas.Record) watermark.Published {
	return watermark.Published{ID: r.ID, UpdatedAt: r.UpdatedAt, CreatedAt: schemas.InstantOf(noon), Hash: schemas.Hash(r.Value), Time: r.UpdatedAt}
}

// forge writes into the topic as somebody else.
func (s *shop) forge(r schemas.Record) { s.topic = append(s.topic, s.published(r)) }

func (s *shop) Read(ctx context.Context, r Request, emit func(Batch) error) error {
	switch r.Kind {
	case Full:
		if s.full++; s.read != nil {
			s.read(ctx)
		}
	case Lookup:
		if s.hangs {
			<-ctx.Done()
		}
	}
	b := Batch{Settled: schemas.MinInstant, Done: &Done{Started: r.Started, Complete: true}}
	for _, id := range slices.Sorted(maps.Keys(s.rows)) {
		if row := s.rows[id]; s.wanted(r, id, row.UpdatedAt) {
			row.Value = slices.Clone(row.Value)
			b.Rows = append(b.Rows, row)
		}
	}
	if s.churn != nil && r.Kind != Full {
		b.Rows = append(b.Rows, s.row(1<<40, time.Hour, s.churn.Add(1)))
	}
	for _, id := range slices.Sorted(maps.Keys(s.bad)) {
		if reject := s.bad[id]; s.wanted(r, id, reject.UpdatedAt) {
			b.Rejects = append(b.Rejects, reject)
		}
	}
	if r.Kind == Lookup {
		b.Done.Complete = s.everywhere
	} else if r.Kind != Full {
		b.Settled = schemas.InstantOf(s.now).Add(-shopOverlap)
	} else if s.err != nil {
		return s.err
	}
	return emit(b)
}

func (s *shop) wanted(r Request, id int64, updatedAt schemas.Instant) bool {
	switch r.Kind {
	case Full:
		return true
	case Lookup:
		return slices.ContainsFunc(r.Suspects, func(x Suspect) bool {
			return x.ID == id && (!s.byDay || max(x.UpdatedAt, x.CreatedAt) > schemas.MinInstant)
		})
	}
	return updatedAt >= r.From
}

func (s *shop) publish(_ context.Context, tx watermark.Transaction) error {
	if len(tx.Rows)+len(tx.Deletes)+len(tx.Strays)+len(tx.DeadLetters) > 9 {
		s.t.Errorf("a transaction of %d rows, %d tombstones and %d letters, of at most 7 and what belongs to them", len(tx.Rows), len(tx.Deletes), len(tx.DeadLetters))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range tx.Rows {
		s.forge(r)
	}
	for _, id := range tx.Deletes {
		s.topic = append(s.topic, watermark.Published{ID: id, Tombstone: true})
	}
	for _, x := range tx.Strays {
		s.topic = append(s.topic, watermark.Published{ID: x.ID, Partition: x.Partition, Stray: true, Tombstone: true})
	}
	for _, l := range tx.DeadLetters {
		if s.letters[l.Key] = watermark.DeadLetterHash(l.Row); l.Row == nil {
			delete(s.letters, l.Key)
		}
	}
	s.mark = tx.Watermark
	return nil
}

func (s *shop) readTopic(_ context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := int64(0)
	if from != nil {
		at = from[0]
	}
	for _, r := range s.topic[at:] {
		if err := fold(r); err != nil {
			return nil, err
		}
	}
	return []int64{int64(len(s.topic))}, nil
}

// poll is what Run does between two waits. What the sweep does beside it comes to its end.
func (s *shop) poll() {
	s.t.Helper()
	ctx := context.Background()
	err := s.poller.acceptRequests(ctx)
	if err == nil {
		err = s.poller.poll(ctx, s.stop)
	}
	if err == nil {
		err = s.poller.sweepOn(ctx, s.stop)
	}
	if errors.Is(err, ErrReplay) {
		s.poller.endSweep()
		s.open()
	} else if err != nil {
		s.t.Fatal(err)
	}
	if w := s.poller.sweep; w != nil && w.working != nil && s.read == nil {
		w.working <- <-w.working
	}
}

// ask asks for a sweep, and returns the id of the request.
func (s *shop) ask() int64 {
	id := int64(len(s.asked) + 1)
	s.asked = append(s.asked, watermark.Request{ID: id, Resource: "orders", Kind: watermark.Sweeps})
	return id
}

// sweep asks for one and polls every second until it is done.
func (s *shop) sweep() *watermark.Swept {
	s.t.Helper()
	id := s.ask()
	for range 1000 {
		s.poll()
		s.now = s.now.Add(time.Second)
		if s.mark.Request >= id && s.mark.Sweep == nil {
			return s.mark.Swept
		}
	}
	s.t.Fatalf("the sweep does not end: %+v", s.poller.Status().Sweep)
	return nil
}

// newest is the topic's newest record of id.
func (s *shop) newest(id int64) (watermark.Published, bool) {
	for _, r := range slices.Backward(s.topic) {
		if r.ID == id && !r.Stray {
			return r, !r.Tombstone
		}
	}
	return watermark.Published{}, false
}

func (s *shop) wants(id int64, row schemas.Record) {
	s.t.Helper()
	if r, there := s.newest(id); !there || r.Hash != schemas.Hash(row.Value) {
		s.t.Errorf("the topic's newest record of row %d is %+v, want %+v", id, r, s.published(row))
	}
}

func TestASweepFindsEachKindOfDifferenceCountsItAndRepairsIt(t *testing.T) {
	s := openShop(t, 50, func(c *Config) { c.Sweep.Tombstone = true })
	s.rows[1] = s.row(1, -time.Hour, 2)       // an update that did not touch updated_at
	s.rows[100] = s.row(100, -2*time.Hour, 1) // it came far too late
	s.forge(s.row(2, -30*time.Minute, 9))     // somebody wrote what is not so
	s.forge(s.row(3, 24*time.Hour, 9))        // and from the future
	s.forge(s.row(200, -time.Hour, 9))        // and what never was
	delete(s.rows, 4)                         // deleted
	s.forge(watermarkTombstone(s, 5))         // somebody took it out
	for id := range int64(20) {
		s.rows[300+id] = s.row(300+id, -3*time.Hour, 1) // more than one transaction takes
	}
	before := len(s.topic)
	got := *s.sweep()
	want := watermark.Swept{Request: 1, Began: got.Began, SourceRows: 70, TopicRows: 50, Missing: 22, Stale: 3, Extra: 2, Published: 25, Tombstones: 2}
	if got != want {
		t.Errorf("swept %+v, want %+v", got, want)
	}
	for id, row := range s.rows {
		s.wants(id, row)
	}
	for _, id := range []int64{4, 200} {
		if _, there := s.newest(id); there {
			t.Errorf("row %d is still in the topic", id)
		}
	}
	if n := len(s.topic) - before; n != 27 {
		t.Errorf("%d records written, want 27", n)
	}
	m := s.metrics.Resource("orders")
	for what, n := range map[prometheus.Counter]float64{m.LateRows: 25, m.SweepDifferences("missing"): 22, m.SweepDifferences("stale"): 3, m.SweepDifferences("extra"): 2} {
		if got := testutil.ToFloat64(what); got != n {
			t.Errorf("%s: %v, want %v", what.Desc(), got, n)
		}
	}
	if got := s.sweep(); got.Missing+got.Stale+got.Extra != 0 || len(s.topic)-before != 27 {
		t.Errorf("the next sweep finds %+v", got)
	}
}

// watermarkTombstone writes a tombstone as somebody else would; the record is one that changes nothing.
func watermarkTombstone(s *shop, id int64) schemas.Record {
	s.topic = append(s.topic, watermark.Published{ID: id, Tombstone: true})
	return s.row(0, -time.Hour, 1)
}

// A row that is older than what the topic has is a lagging replica, or the truth. Published at once, a lie would put an old state over the new one.
// The tombstone over such a record reads like the row's own to whoever keeps rows by key: so the row comes after it, in another transaction.
func TestARecordWhereItsKeyDoesNotBelongIsTakenOutAndItsRowPublishedAfterIt(t *testing.T) {
	s := openShop(t, 20, nil)
	for id := range int64(12) { // more than one transaction takes
		s.topic = append(s.topic, watermark.Published{ID: id, Partition: 3, Stray: true})
	}
	s.topic = append(s.topic, watermark.Published{ID: 99, Partition: 3, Stray: true}) // of no row at all: sweep.deletes is report
	before := len(s.topic)
	got := s.sweep()
	if got.Stale != 12 || got.Published != 12 || got.Tombstones != 12 || got.Missing != 0 || got.Extra != 1 {
		t.Errorf("%+v", got)
	}
	last := map[int64]int{}
	for i, r := range s.topic[before:] {
		switch {
		case r.Stray && r.Tombstone && r.Partition == 3 && r.ID != 99:
			last[r.ID] = i
		case !r.Stray && last[r.ID] == 0 && r.ID != 0 && r.ID < 12:
			t.Errorf("row %d is published before the record in its wrong place is taken out", r.ID)
		}
	}
	for id := range int64(12) {
		s.wants(id, s.rows[id])
	}
	if len(last) != 12 {
		t.Errorf("%d are taken out, want 12", len(last))
	}
	if got := s.sweep(); got.Stale+got.Missing != 0 || got.Extra != 1 {
		t.Errorf("the next sweep finds %+v", got)
	}

	s.poller.Sweep.Tombstone = true
	if got := s.sweep(); got.Extra != 1 || got.Tombstones != 1 {
		t.Errorf("with tombstones asked for: %+v", got)
	}
	if got := s.sweep(); got.Extra != 0 {
		t.Errorf("the next sweep finds %+v", got)
	}
}

func TestAnOlderStateIsPublishedOnlyWhenTheServiceHasShownItForAnOverlap(t *testing.T) {
	s := openShop(t, 10, nil)
	truth := s.rows[1]
	s.rows[1] = s.row(1, -2*time.Hour, 0) // a replica lags
	began, records := s.now, len(s.topic)
	s.ask()
	for s.now.Sub(began) < shopOverlap/2 {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.rows[1] = truth
	if got := s.sweep(); got.Published != 0 || len(s.topic) != records {
		t.Errorf("swept %+v, and %d records written", got, len(s.topic)-records)
	}

	s.forge(s.row(1, time.Minute, 9)) // now it is the topic that lies
	began = s.now
	if got := s.sweep(); got.Stale != 1 || got.Published != 1 {
		t.Errorf("swept %+v", got)
	}
	if waited := s.now.Sub(began); waited < shopOverlap {
		t.Errorf("published after %s", waited)
	}
	s.wants(1, truth)
}

// Somebody's record with an old stamp lies over ours: a lagging replica's row is newer than that one and yet older than what was published.
func TestAStateOlderThanWhatWasPublishedIsNotPublishedBecauseTheTopicWasTamperedWith(t *testing.T) {
	s := openShop(t, 10, nil)
	s.rows[1] = s.row(1, 0, 2)
	truth := s.rows[1]
	s.poll()
	s.forge(s.row(1, -5*time.Hour, 9))
	s.rows[1] = s.row(1, -time.Hour, 1) // a replica lags
	id := s.ask()
	for range 10 {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	if r, _ := s.newest(1); r.Hash == schemas.Hash(s.rows[1].Value) {
		t.Error("an older state than was published before is in the topic")
	}
	s.rows[1] = truth
	for s.mark.Sweep != nil || s.mark.Request < id {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.wants(1, truth)
}

// A state that changes all the time is never confirmed: the sweep ends all the same, and says so.
func TestASweepDoesNotWaitForEverForAnOlderStateToRest(t *testing.T) {
	s := openShop(t, 10, nil)
	s.forge(s.row(1, time.Hour, 9))
	id := s.ask()
	for n := uint64(2); s.mark.Request < id || s.mark.Sweep != nil; n++ {
		s.rows[1] = s.row(1, -time.Hour, n)
		s.poll()
		if s.now = s.now.Add(10 * time.Second); n > 1000 {
			t.Fatal("the sweep does not end")
		}
	}
	if got := s.mark.Swept; got.Stale != 1 || got.Published != 0 || !strings.Contains(got.Left, "1 rows are older") {
		t.Errorf("swept %+v", got)
	}
}

// Over REST a row that was updated may be nowhere for as long as overlap. A tombstone would say that it is gone.
func TestARowIsTakenForGoneOnlyWhenItWasNotShownForAnOverlap(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
	row := s.rows[1]
	delete(s.rows, 1)
	began := s.now
	s.ask()
	for s.now.Sub(began) < shopOverlap {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.rows[1] = row
	for s.mark.Sweep != nil {
		s.poll()
	}
	if got := s.mark.Swept; got.Tombstones != 0 || got.Extra != 0 {
		t.Errorf("swept %+v", got)
	}
	delete(s.rows, 1)
	if got := s.sweep(); got.Tombstones != 1 || got.Extra != 1 || got.Left != "" {
		t.Errorf("swept %+v", got)
	}
}

// What was published of it before does not count any more.
func TestARowThatComesBackAfterItsTombstoneIsPublished(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
	s.rows[1] = s.row(1, 10*time.Minute, 2) // stamped ahead, so that the poller remembers it all the while
	s.poll()
	row := s.rows[1]
	delete(s.rows, 1)
	if got := s.sweep(); got.Tombstones != 1 {
		t.Fatalf("swept %+v", got)
	}
	s.rows[1] = row
	s.poll()
	s.wants(1, row)
}

func TestWhatTheServiceDoesNotShowIsNotAlwaysTakenForDeleted(t *testing.T) {
	for _, test := range []struct {
		name   string
		rows   int
		change func(*shop)
		says   string
	}{
		{"an empty answer", 5, func(s *shop) { clear(s.rows) }, "no row at all"},
		{"nothing but rows that cannot be published", 5, func(s *shop) {
			clear(s.rows)
			s.bad[900] = schemas.Reject{ID: 900, HasID: true, UpdatedAt: schemas.InstantOf(noon), Row: []byte("x")}
		}, "no row at all"},
		{"more than a hundred of a small topic", 200, func(s *shop) { drop(s.rows, 101) }, "does not have 101 of the topic's 200 rows"},
		{"more than a tenth of a large topic", 2000, func(s *shop) { drop(s.rows, 201) }, "does not have 201 of the topic's 2000 rows"},
		{"a row without a usable id", 50, func(s *shop) {
			delete(s.rows, 1)
			s.bad[1] = schemas.Reject{UpdatedAt: schemas.MinInstant, Row: []byte("x"), Field: "id"}
		}, "have no usable id"},
		{"a record that is not ours, and no day to look for it by", 50, func(s *shop) {
			s.topic = append(s.topic, watermark.Published{ID: 700, UpdatedAt: schemas.MinInstant, CreatedAt: schemas.MinInstant, Hash: 5})
			s.everywhere = false
		}, "no day to look for it by"},
		{"sweep.deletes: report", 50, func(s *shop) {
			delete(s.rows, 1)
			s.poller.Config.Sweep.Tombstone = false
		}, "sweep.deletes: report"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openShop(t, test.rows, func(c *Config) { c.Sweep.Tombstone = true })
			test.change(s)
			got := s.sweep()
			if got.Extra == 0 || got.Tombstones != 0 || !strings.Contains(got.Left, test.says) {
				t.Errorf("swept %+v, want %q", got, test.says)
			}
			for _, r := range s.topic {
				if r.Tombstone {
					t.Fatalf("row %d has a tombstone", r.ID)
				}
			}
		})
	}
}

func drop(rows map[int64]schemas.Record, n int) {
	for id := range int64(n) {
		delete(rows, id)
	}
}

func TestAsManyAsAHundredOrATenthAreTakenForDeleted(t *testing.T) {
	for rows, gone := range map[int]int{101: 100, 2000: 200} {
		s := openShop(t, rows, func(c *Config) { c.Sweep.Tombstone = true })
		drop(s.rows, gone)
		if got := s.sweep(); got.Tombstones != gone || got.Left != "" {
			t.Errorf("%d of %d rows: swept %+v", gone, rows, got)
		}
	}
}

func TestRowsThatTheSweepMeetsAndCannotPublishBecomeDeadLetters(t *testing.T) {
	s := openShop(t, 10, nil)
	s.bad[50] = schemas.Reject{ID: 50, HasID: true, UpdatedAt: schemas.MinInstant, Row: []byte(`{"id":50}`), Field: "updated_at", Err: "is null"}
	s.bad[51] = schemas.Reject{UpdatedAt: schemas.MinInstant, Row: []byte(`{}`), Field: "id", Err: "is missing"}
	s.rows[60] = s.row(60, -time.Hour, 1)
	huge := s.rows[60]
	huge.Value = append(huge.Value, make([]byte, 2000)...)
	s.rows[60] = huge
	got := s.sweep()
	if got.DeadLetters != 3 || len(s.letters) != 3 || got.Published != 0 {
		t.Errorf("swept %+v, letters %v", got, s.letters)
	}
	if got := s.sweep(); got.DeadLetters != 3 || len(s.letters) != 3 {
		t.Errorf("the next one: swept %+v, letters %v", got, s.letters)
	}
}

// Over REST a row is looked for by its day. One without any cannot be, and yet it cannot be published.
func TestARowThatNoDayFindsBecomesADeadLetter(t *testing.T) {
	s := openShop(t, 10, nil)
	s.everywhere, s.byDay = false, true
	s.bad[50] = schemas.Reject{ID: 50, HasID: true, UpdatedAt: schemas.MinInstant, Row: []byte(`{"id":50}`), Field: "updated_at", Err: "is null"}
	for range 2 {
		if s.sweep(); len(s.letters) != 1 {
			t.Errorf("letters %v", s.letters)
		}
	}
}

// What could not be published when it was read in full may be well by now.
func TestARowThatIsWellAtTheLastLookBecomesNoDeadLetter(t *testing.T) {
	s := openShop(t, 10, nil)
	s.bad[50] = schemas.Reject{ID: 50, HasID: true, UpdatedAt: schemas.InstantOf(noon.Add(-time.Hour)), Row: []byte(`{"id":50}`)}
	id := s.ask()
	s.poll()
	delete(s.bad, 50)
	s.rows[50] = s.row(50, 0, 1)
	for s.mark.Sweep != nil || s.mark.Request < id {
		s.poll()
	}
	if len(s.letters) != 0 {
		t.Errorf("letters %v", s.letters)
	}
	s.wants(50, s.rows[50])
}

func TestASweepTakesOutTheLettersOfRowsThatAreGoneOrWell(t *testing.T) {
	reject := func(id int64) schemas.Reject {
		return schemas.Reject{ID: id, HasID: true, UpdatedAt: schemas.InstantOf(noon.Add(-time.Hour)), Row: fmt.Appendf(nil, "%d", id)}
	}
	s := openShop(t, 10, nil)
	for id := int64(20); id < 25; id++ {
		s.bad[id] = reject(id)
	}
	if s.sweep(); len(s.letters) != 5 {
		t.Fatalf("letters %v", s.letters)
	}
	delete(s.bad, 20) // gone
	delete(s.bad, 21) // well, and its update did not touch updated_at
	s.rows[21] = s.row(21, -time.Hour, 1)
	delete(s.bad, 22) // the full reading shows it well, and the last look does not: a replica lagged
	s.rows[22] = s.row(22, -2*time.Hour, 1)
	s.forge(s.rows[22])
	id := s.ask()
	s.poll()
	delete(s.rows, 22)
	s.bad[22] = reject(22)
	for s.mark.Sweep != nil || s.mark.Request < id {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	if got := slices.Sorted(maps.Keys(s.letters)); !slices.Equal(got, []string{"orders/22", "orders/23", "orders/24"}) {
		t.Errorf("letters %v", got)
	}
	s.wants(21, s.rows[21])

	clear(s.rows) // an answer that is no answer says nothing of letters either
	clear(s.bad)
	if s.sweep(); len(s.letters) != 3 {
		t.Errorf("after an empty answer: letters %v", s.letters)
	}
}

// A letter that a poll writes while the sweep goes on is not one of a row that the sweep did not meet.
func TestALetterWrittenDuringASweepStays(t *testing.T) {
	s := openShop(t, 10, nil)
	id := s.ask()
	s.forge(s.row(1, -30*time.Minute, 9)) // something to look at
	s.poll()
	delete(s.rows, 2)
	s.bad[2] = schemas.Reject{ID: 2, HasID: true, UpdatedAt: schemas.InstantOf(s.now), Row: []byte("2")}
	for s.mark.Sweep != nil || s.mark.Request < id {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	if len(s.letters) != 1 {
		t.Errorf("letters %v", s.letters)
	}
}

// What differs is looked at after a poll that began after it was read: nothing is published twice for being under way.
func TestWhatAPollDeliversMeanwhileIsNoDifference(t *testing.T) {
	s := openShop(t, 10, nil)
	id := s.ask()
	s.read = func(context.Context) { s.rows[1] = s.row(1, 0, 2) } // after the poll has read it
	s.poll()
	s.poller.sweep.working <- <-s.poller.sweep.working
	s.read = nil
	records := len(s.topic)
	for range 3 { // whatever ends while a poll is reading
		if err := s.poller.sweepOn(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if w := s.poller.sweep; w.working != nil {
			w.working <- <-w.working
		}
	}
	if len(s.topic) != records {
		t.Error("the sweep published what no poll has had the time to find")
	}
	for s.mark.Sweep != nil || s.mark.Request < id {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	if got := s.mark.Swept; got.Missing+got.Stale+got.Extra != 0 || len(s.topic) != records+1 {
		t.Errorf("swept %+v, %d records", got, len(s.topic)-records)
	}
}

func TestMoreDifferencesThanOneSweepTakesInAreMendedByTheNextOnes(t *testing.T) {
	s := openShop(t, 10, nil)
	for id := range int64(95) {
		s.rows[100+id] = s.row(100+id, -2*time.Hour, 1)
	}
	s.poller.Config.Sweep.MaxSuspects = 20
	s.sweep()
	for id, row := range s.rows {
		s.wants(id, row)
	}
	if s.full != 5 {
		t.Errorf("%d full readings, want 5", s.full)
	}
}

func TestASweepThatFailsIsShownAndTriedAgainAndPollsGoOn(t *testing.T) {
	s := openShop(t, 10, nil)
	s.err = errors.New("500 internal_error")
	s.rows[1] = s.row(1, -time.Hour, 2)
	id := s.ask()
	for range 60 {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	if s.full < 3 || s.full > 6 {
		t.Errorf("%d tries in a minute", s.full)
	}
	status := s.poller.Status()
	if status.Sweep.Err == nil || !status.Sweep.Next.After(s.now) || s.mark.Sweep == nil || status.Err != nil {
		t.Errorf("status %+v", status.Sweep)
	}
	if s.mark.Swept != nil || s.mark.LastSweep != schemas.MinInstant {
		t.Error("it is said to have been done")
	}
	s.err = nil
	for s.mark.Sweep != nil || s.mark.Request < id {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.wants(1, s.rows[1])
	if status := s.poller.Status(); status.Sweep.Err != nil || status.Sweep.Doing != "" {
		t.Errorf("status %+v", status.Sweep)
	}
}

func TestASweepThatWasAskedForGoesOnWithTheNextOwner(t *testing.T) {
	s := openShop(t, 10, nil)
	s.rows[1] = s.row(1, -time.Hour, 2)
	id := s.ask()
	s.poll() // begun
	s.poller.endSweep()
	s.open()
	for s.mark.Sweep != nil || s.mark.Request < id {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.wants(1, s.rows[1])
	if s.mark.Swept.Request != id || s.full != 2 {
		t.Errorf("swept %+v, %d full readings", s.mark.Swept, s.full)
	}
}

func TestASweepAskedForWhileOneIsInHandComesAfterIt(t *testing.T) {
	s := openShop(t, 10, nil)
	s.ask()
	s.poll()
	s.rows[1] = s.row(1, -time.Hour, 2) // the sweep in hand has read it already
	s.sweep()
	s.wants(1, s.rows[1])
	if s.full != 2 {
		t.Errorf("%d full readings, want 2", s.full)
	}
}

// A request, or the end, does not wait for the last look: it is cut short, and taken again if there is a next poll.
func TestTheLastLookGivesWayToRequestsAndToTheEnd(t *testing.T) {
	for want, interrupt := range map[error]func(*shop){errAsked: func(s *shop) { s.ask() }, errStopped: func(s *shop) { close(s.stop) }} {
		s := openShop(t, 10, nil)
		s.stop = make(chan struct{})
		s.rows[1] = s.row(1, -time.Hour, 2)
		first := s.ask()
		for s.poller.sweep == nil || s.poller.sweep.step != mending {
			s.poll()
		}
		records := len(s.topic)
		s.hangs = true
		interrupt(s)
		if err := s.poller.sweepOn(t.Context(), s.stop); !errors.Is(err, want) {
			t.Errorf("%v, want: %v", err, want)
		}
		if len(s.topic) != records || s.poller.sweep == nil {
			t.Error("the sweep did not wait")
		}
		if s.hangs = false; isClosed(s.stop) {
			continue
		}
		s.poll()
		if s.mark.Swept == nil || s.mark.Swept.Request != first || s.mark.Sweep == nil {
			t.Errorf("swept %+v, and asked for %+v", s.mark.Swept, s.mark.Sweep)
		}
		s.wants(1, s.rows[1])
	}
}

// A sweep that waits for a poll makes room for others when polls fail.
func TestASweepIsGivenUpWhilePollsFail(t *testing.T) {
	turn := make(chan struct{}, 1)
	s := openShop(t, 10, func(c *Config) { c.Sweep.Turn = turn })
	s.ask()
	s.poll()
	down := errors.New("connection refused")
	for n := range patientPolls {
		if len(turn) != 1 {
			t.Fatalf("given up after %d polls", n)
		}
		s.poller.sweepStalled(down, n+1)
	}
	if len(turn) != 0 || !errors.Is(s.poller.Status().Sweep.Err, down) || s.mark.Sweep == nil {
		t.Errorf("status %+v, asked for %+v", s.poller.Status().Sweep, s.mark.Sweep)
	}
}

func TestSweepsWaitWhileAReplayRuns(t *testing.T) {
	s := openShop(t, 10, nil)
	s.poller.mark.Replay = &watermark.Replay{Request: 1, From: schemas.MinInstant, At: schemas.InstantOf(s.now.Add(time.Hour)), Ends: []int64{0}}
	s.ask()
	for range 10 {
		s.poll()
	}
	if s.full != 0 {
		t.Fatal("a sweep began while a replay was running")
	}
	s.now = s.now.Add(2 * time.Hour) // the next complete pass ends it
	s.poll()
	s.poll()
	if s.full != 1 {
		t.Error("no sweep after the replay")
	}
}

func TestSweepsOfOneInstanceTakeTurns(t *testing.T) {
	turn := make(chan struct{}, 1)
	s := openShop(t, 10, func(c *Config) { c.Sweep.Turn = turn })
	turn <- struct{}{} // another resource sweeps
	id := s.ask()
	s.poll()
	if doing := s.poller.Status().Sweep.Doing; s.full != 0 || !strings.Contains(doing, "waiting") {
		t.Fatalf("%d readings, doing %q", s.full, doing)
	}
	<-turn
	for s.mark.Sweep != nil || s.mark.Request < id {
		s.poll()
	}
	if len(turn) != 0 {
		t.Error("the turn was not given back")
	}
}

func TestSweepsBeginByThemselvesAtFixedTimes(t *testing.T) {
	day := 24 * time.Hour
	born := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	never := schemas.MinInstant
	first := nextSweep("orders", never, born, day)
	if !first.After(born) || first.Sub(born) > day {
		t.Fatalf("first sweep at %s", first)
	}
	if again := nextSweep("orders", never, born.Add(time.Minute), day); !again.Equal(first) {
		t.Errorf("a restart puts the sweep off from %s to %s", first, again)
	}
	if after := nextSweep("orders", schemas.InstantOf(first.Add(10*time.Minute)), born, day); !after.Equal(first.Add(day)) {
		t.Errorf("after a sweep from %s the next is at %s", first, after)
	}
	if after := nextSweep("orders", schemas.InstantOf(first.Add(-time.Hour)), born, day); !after.Equal(first.Add(day)) {
		t.Errorf("a sweep on request an hour before leads to one at %s", after)
	}
	if after := nextSweep("orders", schemas.InstantOf(first.Add(-20*time.Hour)), born, day); !after.Equal(first) {
		t.Errorf("a sweep on request twenty hours before leads to one at %s", after)
	}
	times := map[time.Time]bool{}
	for _, name := range []string{"orders", "order_items", "products", "users", "shipments"} {
		times[nextSweep(name, never, born, day).Truncate(30*time.Minute)] = true
	}
	if len(times) < 4 {
		t.Errorf("five resources begin within %d half hours", len(times))
	}
}

func TestAScheduledSweepIsMadeWhenItIsDueAndNotWithoutAnInterval(t *testing.T) {
	for _, interval := range []time.Duration{time.Hour, 0} {
		s := openShop(t, 10, func(c *Config) { c.Sweep.Interval = interval })
		s.rows[1] = s.row(1, -time.Hour, 2)
		for range 3 * 60 {
			s.poll()
			s.now = s.now.Add(time.Minute)
		}
		if want := map[time.Duration]int{time.Hour: 3, 0: 0}[interval]; s.full != want {
			t.Errorf("every %s: %d sweeps in three hours, want %d", interval, s.full, want)
		} else if want > 0 && (s.mark.Swept.Request != -1 || s.mark.LastSweep == schemas.MinInstant) {
			t.Errorf("swept %+v", s.mark.Swept)
		}
	}
}

func TestRunOnceDoesNotSweep(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Eager = true })
	s.ask()
	for range 5 {
		s.poll()
	}
	if s.full != 0 || s.mark.Sweep == nil {
		t.Errorf("%d full readings, sweep %v", s.full, s.mark.Sweep)
	}
}

// However a poller ends, nothing of its sweep is left running, and what it sweeps by is free for the next.
func TestASweepEndsWithItsPoller(t *testing.T) {
	for _, how := range []string{"stop", "cancel", "write fails"} {
		t.Run(how, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			turn := make(chan struct{}, 1)
			s := openShop(t, 10, func(c *Config) { c.Sweep.Turn, c.Interval = turn, time.Millisecond })
			s.ask()
			reading := make(chan struct{})
			s.read = func(ctx context.Context) {
				close(reading)
				<-ctx.Done()
			}
			s.err = errors.New("cut short")
			s.churn = &atomic.Uint64{} // there is always something to write
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := make(chan struct{})
			lost := errors.New("lost")
			fail := make(chan struct{})
			publish := s.poller.Publish
			s.poller.Publish = func(ctx context.Context, tx watermark.Transaction) error {
				if isClosed(fail) {
					return lost
				}
				return publish(ctx, tx)
			}
			ended := make(chan error, 1)
			p := s.poller
			go func() { ended <- p.Run(ctx, stop) }()
			<-reading
			var want error
			switch how {
			case "stop":
				close(stop)
			case "cancel":
				cancel()
				want = context.Canceled
			case "write fails":
				close(fail)
				want = lost
			}
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("run: %v, want %v", err, want)
			}
			if len(turn) != 0 || p.sweep != nil {
				t.Error("the sweep is still in hand")
			}
		})
	}
}
