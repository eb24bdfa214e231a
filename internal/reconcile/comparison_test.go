package reconcile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

// pair is a source and a topic, and what happens to them between the steps of a comparison.
type pair struct {
	source  map[int64]schemas.Record
	topic   []watermark.Published
	rejects []schemas.Reject
	beside  []schemas.Record // shown last in each reading, beside the source's rows
	now     time.Time
	between func() // before each reading
	// byDay: a suspect is found only where it is looked for, on the day of its creation or, without one, of
	// its update, as over REST.
	byDay bool
	// byID: the source reads by id. The rest is the Config's.
	byID        bool
	catchesUp   bool
	memory      int64
	from        int64
	ids         []int64
	letters     map[int64]uint64
	maxSuspects int
	scratch     int64
	before      *Comparison

	asked     int // suspects that the source was asked for
	fromStart int // readings of the topic from its start
	full      int // readings of all rows of the source
	err       error
}

const (
	overlap       = time.Minute
	maxValueBytes = 1 << 20
)

// row is a row that was created on day id.
func row(id, millis int64, content uint64) schemas.Record {
	value := binary.BigEndian.AppendUint64(make([]byte, schemas.HeaderSize), content)
	value = binary.BigEndian.AppendUint64(value, uint64(millis))
	value = binary.BigEndian.AppendUint64(value, uint64(id))
	return schemas.Record{ID: id, UpdatedAt: schemas.InstantOfMillis(millis), Value: value}
}

func createdAt(value []byte) schemas.Instant {
	return schemas.InstantOfMillis(int64(binary.BigEndian.Uint64(value[schemas.HeaderSize+16:])) * 86_400_000)
}

func (p *pair) publish(r schemas.Record) {
	p.topic = append(p.topic, watermark.Published{ID: r.ID, UpdatedAt: r.UpdatedAt,
		CreatedAt: createdAt(r.Value), Hash: schemas.Hash(r.Value), Time: r.UpdatedAt})
}

func (p *pair) compare() *Comparison {
	if p.between == nil {
		p.between = func() {}
	}
	return New(Config{
		Start: schemas.MinInstant, CreatedAt: createdAt, Now: func() time.Time { return p.now }, Overlap: overlap,
		ByID: p.byID, CatchesUp: p.catchesUp,
		MaxValueBytes: maxValueBytes,
		Memory:        p.memory, From: p.from, IDs: p.ids, Letters: p.letters, MaxSuspects: p.maxSuspects,
		Scratch: p.scratch, Before: p.before,
		Topic: func(_ context.Context, from []int64, wanted func(int64) bool,
			fold func(watermark.Published) error) ([]int64, error) {
			p.between()
			ends := []int64{int64(len(p.topic))}
			at := int64(0)
			if from != nil {
				at = from[0]
			} else {
				p.fromStart++
			}
			for _, r := range p.topic[at:ends[0]] {
				if !r.Foreign && wanted != nil && !wanted(r.ID) {
					continue
				}
				if err := fold(r); err != nil {
					return nil, err
				}
			}
			return ends, nil
		},
		Source: func(_ context.Context, suspects []Suspect) iter.Seq2[Answer, error] {
			p.between()
			var rows []schemas.Record
			for _, id := range slices.Sorted(maps.Keys(p.source)) {
				r := p.source[id]
				found := func(s Suspect) bool { return p.finds(s, r) }
				if suspects == nil || slices.ContainsFunc(suspects, found) {
					rows = append(rows, r)
				}
			}
			if p.asked += len(suspects); suspects == nil {
				p.full++
			}
			return func(yield func(Answer, error) bool) {
				for i := range rows {
					again := rows[max(0, i-i%2):i] // a source may repeat rows
					if !yield(Answer{Rows: again}, nil) || !yield(Answer{Rows: rows[i : i+1]}, nil) {
						return
					}
				}
				last := Answer{Rows: p.beside, Rejects: p.rejects, Empty: len(p.source)+len(p.rejects) == 0}
				if yield(last, nil) && p.err != nil {
					yield(Answer{}, p.err)
				}
			}
		},
	})
}

func (p *pair) finds(s Suspect, r schemas.Record) bool {
	switch {
	case s.ID != r.ID:
		return false
	case !p.byDay:
		return true
	case s.CreatedAt != schemas.MinInstant:
		return s.CreatedAt.Day() == createdAt(r.Value).Day()
	}
	return s.UpdatedAt.Day() == r.UpdatedAt.Day()
}

func (p *pair) run(t *testing.T, looks int) *Comparison {
	t.Helper()
	if p.ids == nil {
		p.from = math.MinInt64
	}
	c := p.compare()
	if err := c.First(t.Context(), unheard); err != nil {
		t.Fatal(err)
	}
	for range looks {
		if err := c.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func unheard(int, int) {}

func kinds(c *Comparison) map[int64]Kind {
	found := map[int64]Kind{}
	for _, d := range c.Differences() {
		found[d.ID] = d.Kind
	}
	return found
}

func TestEachKindOfDifferenceIsFoundAndNothingElse(t *testing.T) {
	for _, byDay := range []bool{false, true} {
		p := &pair{source: map[int64]schemas.Record{}, byDay: byDay}
		for id := range int64(100) {
			p.source[id] = row(id, 1000+id, 7)
			p.publish(row(id, 500, 1))
			p.publish(p.source[id])
		}
		// One was tampered with and calls itself newer, one the service never had, and somebody took one out.
		p.publish(row(3, 9999, 8))
		p.publish(row(200, 1000, 7))
		p.topic = append(p.topic, watermark.Published{ID: 5, Tombstone: true})
		p.source[300] = row(300, 1000, 7) // never published
		large := row(301, 1000, 7)
		large.Value = append(large.Value, make([]byte, maxValueBytes)...)
		p.source[301] = large
		p.rejects = []schemas.Reject{{ID: 302, HasID: true}}
		p.publish(row(302, 10, 1)) // its last good version
		p.publish(row(303, 10, 1)) // its letter is still there, the row is not
		want := map[int64]Kind{3: Stale, 5: Missing, 200: Extra, 300: Missing, 303: Extra}
		c := p.run(t, 2)
		if got := kinds(c); !maps.Equal(got, want) {
			t.Errorf("differences %v, want %v", got, want)
		}
		if r := c.Report(); r.SourceRows != 101 || r.DeadLetters != 2 || r.TopicRows != 102 {
			t.Errorf("report %+v", r)
		}
	}
}

// A source may show a row in one reading and not in another, because another client deleted it, or because
// the question was another. Nothing is concluded from that until the source shows the row again.
func TestARowThatTheSourceCeasesToShowIsNeitherEqualNorExtra(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{1: row(1, 1000, 7), 2: row(2, 1000, 7), 3: row(3, 1000, 7)}}
	p.publish(row(2, 500, 1))
	p.publish(p.source[3])
	c := p.run(t, 0)
	shown := maps.Clone(p.source)
	clear(p.source)
	for range 3 {
		if err := c.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := kinds(c); !maps.Equal(got, map[int64]Kind{1: Unknown, 2: Unknown}) {
			t.Fatalf("differences %v, after %+v", got, c.Report())
		}
	}
	p.source = shown
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := kinds(c); !maps.Equal(got, map[int64]Kind{1: Missing, 2: Stale}) {
		t.Errorf("differences %v", got)
	}
	p.publish(shown[1]) // what the source showed comes late
	p.publish(shown[2])
	clear(p.source)
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := kinds(c); len(got) > 0 {
		t.Errorf("delivered, and still different: %v", got)
	}
}

// A row is looked for where it was created, by the side that had it: its update may have moved since.
// Otherwise a row that was updated between two looks would be held deleted.
func TestARowThatChangedSinceItWasLookedAtIsNotTakenForGone(t *testing.T) {
	for _, test := range []struct {
		inTopic, inSource bool
		want              Kind
	}{{true, true, Stale}, {true, false, Stale}, {false, true, Missing}} {
		p := &pair{source: map[int64]schemas.Record{}, byDay: true}
		if test.inTopic {
			p.publish(row(1, 500, 1))
		}
		if test.inSource {
			p.source[1] = row(1, 1000, 7)
		}
		c := p.run(t, 0)
		p.source[1] = row(1, 5*86_400_000, 8)
		if err := c.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := kinds(c)[1]; got != test.want {
			t.Errorf("%+v: the row is %q", test, got)
		}
	}
}

func TestALookThatFailsLeavesTheSuspectsAsTheyWere(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{1: row(1, 1000, 7)}}
	c := p.run(t, 1)
	p.err = errors.New("cut short")
	if err := c.Look(t.Context()); !errors.Is(err, p.err) {
		t.Fatalf("look: %v", err)
	}
	if d := c.Differences(); len(d) != 1 || d[0].Kind != Missing || d[0].Row == nil {
		t.Errorf("after the look that failed: %+v", d)
	}
}

func TestWhatThePipelineDeliveredIsNotAskedForAgain(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{1: row(1, 1000, 7)}}
	c := p.run(t, 0)
	p.publish(p.source[1])
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := c.Report(); c.Suspects() != 0 || p.asked != 0 || r.InFlight != 1 {
		t.Errorf("%d suspects, %d asked for, %+v", c.Suspects(), p.asked, r)
	}
}

// The source shows an older state first. What somebody else wrote into the topic before lies between that and
// the row, as if the row had changed since and its upsert were still to come.
func TestAForgedRecordIsFoundAlsoWhereTheSourceShowedAnOlderStateFirst(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{1: row(1, 1000, 1)}}
	p.publish(row(1, 1000, 1))
	p.publish(row(1, 3000, 3))
	p.publish(row(1, 2000, 7)) // forged
	c := p.run(t, 0)
	p.source[1] = row(1, 3000, 3)
	for look := range 3 {
		if err := c.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := kinds(c); got[1] != Stale {
			t.Fatalf("after look %d: differences %v, expected that row 1 is stale", look+1, got)
		}
	}
}

func TestRowsFromBeforeTheStartAreNotCompared(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{1: row(1, 1000, 7), 2: row(2, 3000, 7)}}
	p.publish(row(2, 3000, 7))
	p.publish(row(3, 1000, 7))
	c := p.compare()
	c.cfg.Start = schemas.InstantOfMillis(2000)
	if err := c.First(t.Context(), unheard); err != nil {
		t.Fatal(err)
	}
	if got := kinds(c); len(got) != 0 {
		t.Errorf("differences %v", got)
	}
}

// Whatever rows change while the two are read and looked at, as long as a pipeline delivers between two looks
// what the source showed in the first of them, and maybe more, nothing is reported but what truly differs.
// Rows that change all the time are among them.
func TestRowsInFlightAreNotDifferences(t *testing.T) {
	rounds.Check(t, 100, func(t *rapid.T) {
		p := &pair{source: map[int64]schemas.Record{}, byDay: rapid.Bool().Draw(t, "by day")}
		clock, serial := int64(1000), uint64(0)
		var queue []schemas.Record // not yet in the topic
		change := func() {
			clock += rapid.Int64Range(1, 50_000_000).Draw(t, "time passes")
			serial++
			id := rapid.Int64Range(0, 5).Draw(t, "id")
			p.source[id] = row(id, clock, serial)
			queue = append(queue, p.source[id])
		}
		deliver := func(n int) { // a poll finds the latest state alone
			for i, r := range queue[:n] {
				changedAgain := func(later schemas.Record) bool { return later.ID == r.ID }
				if !slices.ContainsFunc(queue[i+1:n], changedAgain) || rapid.Bool().Draw(t, "met") {
					p.publish(r)
				}
			}
			queue = queue[n:]
		}
		for range rapid.IntRange(0, 20).Draw(t, "history") {
			change()
		}
		deliver(rapid.IntRange(0, len(queue)).Draw(t, "delivered"))
		p.between = func() {
			for range rapid.IntRange(0, 5).Draw(t, "changes") {
				change()
			}
			deliver(rapid.IntRange(0, len(queue)).Draw(t, "delivered"))
		}
		tampered := int64(-1)
		p.from, p.memory = math.MinInt64, 1<<20
		least := 1
		if rapid.Bool().Draw(t, "in parts") { // of two rows, and later ones compare what the source showed before
			p.memory, p.scratch, p.maxSuspects, least = 0x100, enough, 2, 2
		}
		c := p.compare()
		for {
			if err := c.First(context.Background(), unheard); err != nil {
				t.Fatal(err)
			}
			for look := range rapid.IntRange(least, 3).Draw(t, "looks") {
				deliver(len(queue))
				if _, there := p.source[0]; there && look == 0 && rapid.Bool().Draw(t, "tamper") {
					p.publish(row(0, clock+100*86_400_000, 999_999))
					tampered = 0
				}
				if err := c.Look(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range c.Differences() {
				if d.ID != tampered {
					t.Fatalf("id %d is reported as %s", d.ID, d.Kind)
				}
			}
			if _, last := c.Part(); last == math.MaxInt64 {
				break
			}
			c = c.Next()
		}
	})
}

// A record in a partition where its key does not belong stands beside the row's own for ever: compaction
// looks at one partition at a time.
func TestRecordsWhereTheirKeysDoNotBelongAreDifferencesUntilTheyAreTakenOut(t *testing.T) {
	stray := func(id int64, partition int32, tombstone bool) watermark.Published {
		return watermark.Published{ID: id, Partition: partition, Stray: true, Tombstone: tombstone}
	}
	p := &pair{source: map[int64]schemas.Record{}}
	for id := range int64(10) {
		p.source[id] = row(id, 1000+id, 7)
		p.publish(p.source[id])
	}
	p.source[20] = row(20, 1000, 7)
	p.source[0] = row(0, 5000, 8)
	p.topic = append(p.topic, watermark.Published{Foreign: true}, watermark.Published{Foreign: true},
		watermark.Published{Foreign: true, Tombstone: true},
		stray(1, 2, false), stray(1, 3, false), stray(1, 3, true), stray(1, 2, false), // in 2 alone by now
		stray(2, 4, false), stray(2, 4, true), // taken out
		stray(20, 1, false), stray(30, 1, false)) // of a row that is missing, and of none
	c := p.run(t, 2)
	want := map[int64]Kind{0: Stale, 1: Stale, 20: Missing, 30: Extra}
	if got := kinds(c); !maps.Equal(got, want) {
		t.Errorf("differences %v, want %v", got, want)
	}
	if d := c.Differences()[1]; len(d.Strays) != 1 || d.Strays[0].Partition != 2 || d.Row == nil {
		t.Errorf("%+v", d)
	}
	if r := c.Report(); r.Foreign != 2 {
		t.Errorf("%d records of no row, want 2", r.Foreign)
	}
	p.topic = append(p.topic, stray(1, 2, true), stray(3, 2, false))
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := kinds(c), (map[int64]Kind{0: Stale, 20: Missing, 30: Extra}); !maps.Equal(got, want) {
		t.Errorf("after one was taken out: differences %v, want %v", got, want)
	}
}

// A dead letter belongs to a row that cannot be published, and to no other.
func TestDeadLettersAreComparedToo(t *testing.T) {
	reject := func(id int64) schemas.Reject {
		return schemas.Reject{ID: id, HasID: true, Row: fmt.Appendf(nil, "bad %d", id)}
	}
	p := &pair{source: map[int64]schemas.Record{1: row(1, 1000, 7), 2: row(2, 1000, 7)},
		letters: map[int64]uint64{1: 5, 3: 5, 4: watermark.DeadLetterHash([]byte("bad 4")), 5: 5, 7: 5},
		rejects: []schemas.Reject{reject(4), reject(5), reject(6)}}
	for _, id := range []int64{1, 2, 7} {
		p.publish(row(id, 1000, 7))
	}
	// 1 is well, 3 is nowhere, 4 has its letter, 5 has another one, 6 has none, 7 is in the topic alone.
	want := map[int64]Kind{1: Leftover, 3: Leftover, 5: Unpublishable, 6: Unpublishable, 7: Extra}
	c := p.run(t, 2)
	if got := kinds(c); !maps.Equal(got, want) || c.Report().DeadLetters != 3 {
		t.Errorf("differences %v, want %v; %+v", got, want, c.Report())
	}
	p.rejects = p.rejects[:1] // one look later two of them are gone: that may be false
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := kinds(c); got[5] != Unknown || got[6] != Unknown {
		t.Errorf("differences %v", got)
	}
}

// A row that is shown both as a good one and as one that cannot be published is one row.
func TestAFullReadingLooksForEachRowThatALookDoesNotShow(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{1: row(1, 1000, 7)}, ids: []int64{1, 2}}
	p.rejects = []schemas.Reject{{ID: 1, HasID: true}}
	p.publish(row(2, 1000, 7))
	if c := p.run(t, 1); !c.everywhere {
		t.Error("row 2 was looked for by the lookup alone")
	}
}

// Another read shows the row while a look is under way, and newer than the look's answer is. The topic gets
// that version, with the time of the look's: by its times, the look would prove the older one.
func TestASightDuringALookOutlivesTheLook(t *testing.T) {
	p := &pair{catchesUp: true, source: map[int64]schemas.Record{1: row(1, 20, 2)}}
	p.publish(row(1, 20, 1))
	c := p.run(t, 0)
	readings := 0
	p.between = func() {
		if readings++; readings == 2 { // after the topic; the answer has the row as it is now
			newer := row(1, 20, 3)
			c.See([]schemas.Record{newer}, nil)
			p.publish(newer)
		}
	}
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Differences() {
		if d.Counts {
			t.Errorf("a poll has published a newer version, and an older one counts: %+v", d)
		}
	}
}

// A reading that moves between pages may show an older version behind the newer one.
func TestAnOlderVersionBesideTheRowDoesNotHideThatTheRowIsMissing(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{1: row(1, 20, 2)}}
	p.publish(row(1, 10, 1))
	p.beside = []schemas.Record{row(1, 10, 1)}
	c := p.compare()
	if err := c.First(t.Context(), unheard); err != nil {
		t.Fatal(err)
	}
	p.beside = nil
	for range 2 {
		if err := c.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := kinds(c); got[1] != Stale {
		t.Errorf("differences %v: the topic lacks the row's newer version", got)
	}
}

// A source that catches up shows at one look what is true of a row. What it does not show, and what is older
// than the topic's, needs two.
func TestOneLookProvesTheRowsOfASourceThatCatchesUp(t *testing.T) {
	p := &pair{catchesUp: true, source: map[int64]schemas.Record{1: row(1, 10, 1), 2: row(2, 20, 2),
		3: row(3, 30, 1), 4: row(4, 30, 1)}}
	p.publish(row(2, 10, 1)) // stale
	p.publish(row(3, 30, 2)) // other content
	p.publish(row(4, 40, 2)) // newer than the source
	p.publish(row(5, 10, 1)) // extra
	c := p.run(t, 1)
	want := map[int64]bool{1: true, 2: true, 3: true, 4: false, 5: false}
	for _, d := range c.Differences() {
		if counts, known := want[d.ID]; !known || d.Counts != counts {
			t.Errorf("row %d, %s, counts: %t", d.ID, d.Kind, d.Counts)
		}
		delete(want, d.ID)
	}
	if len(want) > 0 {
		t.Errorf("no differences in %v", want)
	}
	c.See([]schemas.Record{row(1, 20, 2)}, nil)
	for _, d := range c.Differences() {
		if d.ID == 1 && d.Counts {
			t.Error("another read has shown row 1 otherwise, and it counts")
		}
	}
}

// Keys of two schema ids lie in two partitions, which are read in any order.
func TestOfANamedRowTheLaterRecordCountsInWhicheverOrderPartitionsAreRead(t *testing.T) {
	old, young := row(7, 1000, 1), row(7, 2000, 2)
	for _, order := range [][]schemas.Record{{old, young}, {young, old}} {
		p := pair{source: map[int64]schemas.Record{7: young}, ids: []int64{7}, byID: true}
		for i, r := range order {
			p.publish(r)
			p.topic[i].Partition = int32(i)
		}
		c := p.run(t, 1)
		if d := c.Differences()[0]; d.Kind != "" || d.Newest == nil || d.Newest.Hash != schemas.Hash(young.Value) {
			t.Errorf("the topic's newest is %+v, and the row is %q", d.Newest, d.Kind)
		}
	}
}
