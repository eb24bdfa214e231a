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

// A replay of many parts finds each row once, and reads what it publishes itself once. Row 150 is updated
// meanwhile, and row 160 too, which the source shows as it was: both have a record that is later than the
// request.
func TestAReplayOfManyPartsReadsTheTopicOnce(t *testing.T) {
	const rows = 200
	for _, most := range []int{10, 1} { // with one, the rows that change are more than may be kept
		source, read, lookups := map[int64]schemas.Record{}, 0, 0
		var topic []watermark.Published
		publish := func(r schemas.Record) {
			topic = append(topic, watermark.Published{ID: r.ID, UpdatedAt: r.UpdatedAt, Hash: schemas.Hash(r.Value),
				Offset: int64(len(topic)), Size: len(r.Value)})
		}
		for id := range int64(rows) {
			source[id] = row(id, 1000+id, 7)
			publish(source[id])
		}
		next := New(Config{Start: schemas.MinInstant, CreatedAt: createdAt, Now: time.Now, Overlap: overlap,
			ByID: true, From: math.MinInt64, MaxSuspects: most, Memory: 1 << 20, Scratch: enough,
			Again: &Again{From: schemas.InstantOfMillis(1000), To: schemas.InstantOfMillis(1190), Ends: []int64{rows}},
			Topic: func(_ context.Context, from []int64, wanted func(int64) bool,
				fold func(watermark.Published) error) ([]int64, error) {
				at, ends := int64(0), []int64{int64(len(topic))}
				if from != nil {
					at = from[0]
				}
				for _, p := range topic[at:] {
					if read++; wanted == nil || wanted(p.ID) {
						if err := fold(p); err != nil {
							return nil, err
						}
					}
				}
				return ends, nil
			},
			Source: func(_ context.Context, wanted []Suspect) iter.Seq2[Answer, error] {
				return func(yield func(Answer, error) bool) {
					if lookups++; wanted == nil {
						t.Error("it reads the whole source")
					}
					a := Answer{}
					for _, s := range wanted {
						a.Rows = append(a.Rows, source[s.ID])
					}
					yield(a, nil)
				}
			}})
		found := map[int64]int{}
		for part := 0; ; part++ {
			c := next
			if err := c.First(t.Context(), unheard); err != nil {
				t.Fatal(err)
			}
			if err := c.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if part == 2 {
				source[150] = row(150, 5000, 8)
				publish(source[150])
				publish(row(160, 5000, 8))
			}
			if err := c.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, d := range c.Differences() {
				if d.Kind != Replayed || !d.Counts {
					t.Errorf("row %d: %+v", d.ID, d)
				}
				found[d.ID]++
				publish(*d.Row)
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
		if most := rows + 3*rows; read > most && lookups < 30 {
			t.Errorf("%d records are read, want %d at most", read, most)
		}
	}
}
