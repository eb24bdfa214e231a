package reconcile

import (
	"context"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// again is a topic, and a source that a replay of it reads.
type again struct {
	t             *testing.T
	source        map[int64]schemas.Record
	topic         []watermark.Published
	read, lookups int
}

func (a *again) publish(r schemas.Record) {
	a.topic = append(a.topic, watermark.Published{ID: r.ID, UpdatedAt: r.UpdatedAt, Hash: schemas.Hash(r.Value),
		Offset: int64(len(a.topic)), Size: len(r.Value)})
}

// replay is of the rows that are published by now, up to 1190, in parts of so many.
func (a *again) replay(most int) Config {
	return Config{Start: schemas.MinInstant, CreatedAt: createdAt, Now: time.Now, Overlap: overlap,
		ByID: true, From: math.MinInt64, MaxSuspects: most, Memory: 1 << 20, Scratch: enough,
		Again: &Again{From: schemas.InstantOfMillis(1000), To: schemas.InstantOfMillis(1190),
			Ends: []int64{int64(len(a.topic))}},
		Topic: func(_ context.Context, from []int64, wanted func(int64) bool,
			fold func(watermark.Published) error) ([]int64, error) {
			at, ends := int64(0), []int64{int64(len(a.topic))}
			if from != nil {
				at = from[0]
			}
			for _, p := range a.topic[at:] {
				if a.read++; wanted == nil || wanted(p.ID) {
					if err := fold(p); err != nil {
						return nil, err
					}
				}
			}
			return ends, nil
		},
		Source: func(_ context.Context, wanted []Suspect) iter.Seq2[Answer, error] {
			return func(yield func(Answer, error) bool) {
				if a.lookups++; wanted == nil {
					a.t.Error("it reads the whole source")
				}
				answer := Answer{}
				for _, s := range wanted {
					answer.Rows = append(answer.Rows, a.source[s.ID])
				}
				yield(answer, nil)
			}
		}}
}

// look makes the first reading of a part and one look.
func (a *again) look(c *Comparison) {
	a.t.Helper()
	if err := c.First(a.t.Context(), unheard); err != nil {
		a.t.Fatal(err)
	}
	if err := c.Look(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

func newAgain(t *testing.T, rows int64) *again {
	t.Helper()
	a := &again{t: t, source: map[int64]schemas.Record{}}
	for id := range rows {
		a.source[id] = row(id, 1000+id, 7)
		a.publish(a.source[id])
	}
	return a
}

// A replay of many parts finds each row once, and reads what it publishes itself once. Row 150 is updated
// meanwhile, and row 160 too, which the source shows as it was: both have a record that is later than the
// request.
func TestAReplayOfManyPartsReadsTheTopicOnce(t *testing.T) {
	const rows = 200
	for _, most := range []int{10, 1} { // with one, the rows that change are more than may be kept
		a, found := newAgain(t, rows), map[int64]int{}
		next := New(a.replay(most))
		for part := 0; ; part++ {
			c := next
			a.look(c)
			if part == 2 {
				a.source[150] = row(150, 5000, 8)
				a.publish(a.source[150])
				a.publish(row(160, 5000, 8))
			}
			if err := c.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, d := range c.Differences() {
				if d.Kind != Replayed || !d.Counts {
					t.Errorf("row %d: %+v", d.ID, d)
				}
				found[d.ID]++
				a.publish(*d.Row)
			}
			if _, last := c.Part(); last == math.MaxInt64 {
				break
			}
			next = c.Next()
		}
		for id := range int64(rows) {
			want := 1
			if id == 150 || id == 160 || id >= 190 {
				want = 0
			}
			if found[id] != want {
				t.Errorf("row %d is found %d times, want %d", id, found[id], want)
			}
		}
		if most == 10 && a.read > 4*rows {
			t.Errorf("%d records are read, want %d at most", a.read, 4*rows)
		}
	}
}

// The part fails after it has met a newer record of row 5. A server that lags shows the row as it was.
func TestAPartOfAReplayThatIsTriedAgainMeetsWhatTheTopicGot(t *testing.T) {
	a := newAgain(t, 30)
	cfg := a.replay(10)
	c := New(cfg)
	a.look(c)
	a.publish(row(5, 5000, 8))
	if err := c.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg.Before = c
	c = New(cfg)
	a.look(c)
	if d := c.Differences(); len(d) == 0 || d[5].ID != 6 {
		t.Errorf("%+v", d)
	}
}
