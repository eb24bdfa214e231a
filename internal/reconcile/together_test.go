package reconcile

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Both sides are read at the same time, the source from then on when the topic's ends are noted. Rows that
// change while both are read, and that the pipeline delivers, are no differences.
func TestRowsThatChangeWhileBothSidesAreReadDoNotDiffer(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{}, from: math.MinInt64, now: time.UnixMilli(1e9)}
	for id := range int64(100) {
		p.source[id] = row(id, 1000, 7)
		p.publish(p.source[id])
	}
	c := p.compare()
	readTopic, readSource := c.cfg.Topic, c.cfg.Source
	var began atomic.Bool
	changed := make(chan struct{})
	c.cfg.Topic = func(ctx context.Context, from []int64, wanted func(int64) bool,
		fold func(watermark.Published) error) ([]int64, error) {
		for range 1000 { // a source that did not wait would begin
			runtime.Gosched()
		}
		if from == nil && began.Load() {
			t.Error("the source was read before the topic's ends were noted")
		}
		return readTopic(ctx, from, wanted, func(r watermark.Published) error {
			err := fold(r)
			select {
			case <-changed:
			case <-ctx.Done():
				return errors.New("the source is not read beside the topic")
			}
			return err
		})
	}
	c.cfg.Source = func(ctx context.Context, suspects []Suspect) iter.Seq2[Answer, error] {
		if began.Swap(true) {
			return readSource(ctx, suspects)
		}
		return func(yield func(Answer, error) bool) {
			for id := range int64(100) {
				if id == 50 {
					for _, id := range []int64{10, 90} {
						p.source[id] = row(id, 2000, 8)
						p.publish(p.source[id])
					}
					for _, id := range []int64{11, 91} {
						delete(p.source, id)
						p.topic = append(p.topic, watermark.Published{ID: id, Tombstone: true})
					}
					close(changed)
				}
				if r, ok := p.source[id]; ok && !yield(Answer{Rows: []schemas.Record{r}}, nil) {
					return
				}
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a topic that waits in vain
	defer cancel()
	if err := c.First(ctx, unheard); err != nil {
		t.Fatal(err)
	}
	if c.Suspects() != 2 {
		t.Errorf("%+v", c.Differences())
	}
	if err := c.Look(ctx); err != nil || c.Suspects() != 0 || c.Report().InFlight != 2 {
		t.Errorf("%+v, %v", c.Differences(), err)
	}
}

// The other side is not read to its end. A defect in one side's reader is an error.
func TestASideThatFailsEndsTheReadingOfTheOther(t *testing.T) {
	broken := errors.New("broken")
	for _, topicFails := range []bool{true, false} {
		for want, fail := range map[string]func() error{
			"broken":          func() error { return broken },
			"panicked: a bug": func() error { panic("a bug") },
		} {
			cfg, both := made(10, 1<<20, func() {}), make(chan struct{})
			cfg.From = math.MinInt64
			cfg.Topic = func(ctx context.Context, _ []int64, _ func(int64) bool,
				fold func(watermark.Published) error) ([]int64, error) {
				if err := fold(watermark.Published{}); err != nil {
					return nil, err
				}
				if <-both; topicFails {
					return nil, fail()
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			cfg.Source = func(ctx context.Context, _ []Suspect) iter.Seq2[Answer, error] {
				close(both)
				return func(yield func(Answer, error) bool) {
					if topicFails {
						<-ctx.Done()
						yield(Answer{}, ctx.Err())
					} else {
						yield(Answer{}, fail())
					}
				}
			}
			if err := New(cfg).First(t.Context(), unheard); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the topic fails %t: %v, want %s", topicFails, err, want)
			}
		}
	}
}
