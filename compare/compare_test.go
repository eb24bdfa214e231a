package compare

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/watermark"
	"pgregory.net/rapid"
)

// pair is a source and a topic, and what happens to them between the steps of a comparison.
type pair struct {
	source  map[int64]schemas.Record
	topic   []watermark.Published
	letters map[int64]bool
	rejects []schemas.Reject
	between func() // before each reading
}

func row(id, millis int64, content uint64) schemas.Record {
	value := binary.BigEndian.AppendUint64(make([]byte, schemas.HeaderSize), content)
	return schemas.Record{ID: id, UpdatedAt: schemas.InstantOfMillis(millis), Value: binary.BigEndian.AppendUint64(value, uint64(millis))}
}

func (p *pair) publish(r schemas.Record) {
	p.topic = append(p.topic, watermark.Published{ID: r.ID, UpdatedAt: r.UpdatedAt, Hash: schemas.Hash(r.Value), Time: r.UpdatedAt})
}

func (p *pair) compare() *Comparison {
	if p.between == nil {
		p.between = func() {}
	}
	return New(Config{
		Start: schemas.MinInstant,
		Topic: func(_ context.Context, from []int64, fold func(watermark.Published) error) ([]int64, error) {
			p.between()
			at := int64(0)
			if from != nil {
				at = from[0]
			}
			for _, r := range p.topic[at:] {
				if err := fold(r); err != nil {
					return nil, err
				}
			}
			return []int64{int64(len(p.topic))}, nil
		},
		Source: func(_ context.Context, suspects []Suspect, take func([]schemas.Record, []schemas.Reject)) error {
			p.between()
			var rows []schemas.Record
			for id, r := range p.source {
				if suspects == nil || slices.ContainsFunc(suspects, func(s Suspect) bool { return s.ID == id }) {
					rows = append(rows, r)
				}
			}
			take(append(rows, rows[:min(len(rows), 2)]...), p.rejects) // a source may repeat rows
			return nil
		},
		Letters: func(context.Context) (map[int64]bool, error) { return p.letters, nil },
	})
}

func (p *pair) run(t *testing.T, looks int) *Comparison {
	t.Helper()
	c := p.compare()
	if err := c.First(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range looks {
		if err := c.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func kinds(c *Comparison) map[int64]Kind {
	found := map[int64]Kind{}
	for _, d := range c.Differences() {
		found[d.ID] = d.Kind
	}
	return found
}

func TestEachKindOfDifferenceIsFoundAndNothingElse(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{}}
	for id := range int64(100) {
		p.source[id] = row(id, 1000+id, 7)
		p.publish(row(id, 500, 1))
		p.publish(p.source[id])
	}
	p.publish(row(3, 9999, 8))                                             // tampered with, and calls itself newer
	p.publish(row(200, 1000, 7))                                           // the service never had it
	p.topic = append(p.topic, watermark.Published{ID: 5, Tombstone: true}) // taken out by somebody
	p.source[300] = row(300, 1000, 7)                                      // never published
	p.source[301] = row(301, 1000, 7)                                      // too large: a dead letter
	p.letters = map[int64]bool{301: true, 302: true}
	p.rejects = []schemas.Reject{{ID: 302, HasID: true}}
	p.publish(row(302, 10, 1)) // its last good version
	c := p.run(t, 2)
	want := map[int64]Kind{3: Stale, 5: Missing, 200: Extra, 300: Missing}
	got := kinds(c)
	if len(got) != len(want) {
		t.Fatalf("differences %v, want %v", got, want)
	}
	for id, kind := range want {
		if got[id] != kind {
			t.Errorf("id %d: %q, want %q", id, got[id], kind)
		}
	}
	if r := c.Report(); r.SourceRows != 102 || r.DeadLetters != 2 || r.TopicRows != 101 {
		t.Errorf("report %+v", r)
	}
}

func TestMoreSuspectsThanCanBeLookedAtTwiceAreStillCounted(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{}}
	for id := range int64(50) {
		p.source[id] = row(id, 1000, 7)
	}
	c := p.compare()
	c.cfg.MaxSuspects = 10
	if err := c.First(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := c.Count()[Missing]; n != 50 {
		t.Errorf("%d missing, want 50", n)
	}
}

// Whatever rows change while the two are read, as long as a pipeline delivers each version within two looks, nothing is reported but what
// truly differs.
func TestRowsInFlightAreNotDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{source: map[int64]schemas.Record{}}
		clock, serial := int64(1000), uint64(0)
		var queue []schemas.Record // read from the source, not yet in the topic
		change := func() {
			clock++
			serial++
			id := rapid.Int64Range(0, 5).Draw(t, "id")
			p.source[id] = row(id, clock, serial)
			queue = append(queue, p.source[id])
		}
		deliver := func(n int) {
			for _, r := range queue[:n] {
				p.publish(r)
			}
			queue = queue[n:]
		}
		for range rapid.IntRange(0, 20).Draw(t, "history") {
			change()
		}
		deliver(rapid.IntRange(0, len(queue)).Draw(t, "delivered"))
		p.between = func() {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				change()
			}
			deliver(rapid.IntRange(0, len(queue)).Draw(t, "delivered"))
		}
		tampered := rapid.Bool().Draw(t, "tampered")
		c := p.compare()
		if err := c.First(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		p.between = func() {}
		deliver(len(queue))
		if _, there := p.source[0]; tampered && there {
			p.publish(row(0, clock+100, 999_999))
		} else {
			tampered = false
		}
		for range 2 {
			if err := c.Look(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range c.Differences() {
			if !tampered || d.ID != 0 {
				t.Fatalf("id %d is reported as %s", d.ID, d.Kind)
			}
		}
	})
}
