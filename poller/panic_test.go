package poller

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// poisoned is a source that cannot bear one of its rows: it panics after a batch, until the row is gone.
type poisoned struct{ left int }

func (s *poisoned) Read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	return pushed(func(emit func(Batch) error) error { return s.push(ctx, r, emit) })
}

func (s *poisoned) push(_ context.Context, r Request, emit func(Batch) error) error {
	row := schemas.Record{ID: 1, UpdatedAt: r.Started, Value: make([]byte, schemas.HeaderSize+8)}
	if err := emit(Batch{Rows: []schemas.Record{row}, Settled: schemas.MinInstant}); err != nil {
		return err
	}
	if s.left--; s.left >= 0 {
		var rows []int
		_ = rows[s.left+1]
	}
	return emit(Batch{Settled: r.Started, Done: &Done{Started: r.Started, Complete: true}})
}

// One input that a decoder cannot bear is the failure of its resource: shown, waited out, tried again.
// Nothing is settled past it, and no other resource in this process hears of it.
func TestAPanicInASourceIsTheFailureOfItsResourceAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := schemas.Load("")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var marks []watermark.Watermark
		shop := newShop(t, time.Now())
		shop.config.Resource, shop.config.Source = set.Get("orders"), &poisoned{left: 3}
		shop.config.Overlap, shop.config.Clock = time.Second, wallClock
		shop.config.Sweep = SweepConfig{}
		shop.publishes = func(_ context.Context, tx watermark.Transaction) error {
			mu.Lock()
			defer mu.Unlock()
			marks = append(marks, tx.Watermark)
			return nil
		}
		p := New(shop.config)
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		synctest.Wait()
		s := p.Status()
		panicked := s.Err != nil && strings.Contains(s.Err.Error(), "panicked")
		if !panicked || s.FailedSince.IsZero() || s.Complete != 0 {
			t.Errorf("status of a source that panicked: %+v", s)
		}
		mu.Lock()
		for _, m := range marks {
			if m.Settled != schemas.MinInstant {
				t.Errorf("settled %s though the read panicked", m.Settled)
			}
		}
		mu.Unlock()
		<-time.After(time.Minute) // of the bubble's clock
		synctest.Wait()
		if s := p.Status(); s.Err != nil || s.Complete == 0 {
			t.Errorf("status once the row is gone: %+v", s)
		}
		stop(ErrStopping)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
