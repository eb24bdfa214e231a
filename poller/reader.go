package poller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/schemas"
)

// What ends a read early.
var (
	errAsked   = errors.New("a request came in")
	errStopped = errors.New("stopping")
)

// reader reads the poller's source.
type reader struct {
	source Source
	log    *zap.Logger
	// asked says whether a request waits to be accepted. The channel that changed returns is closed when the
	// next one comes.
	asked   func() bool
	changed func() <-chan struct{}
	// waits is called before each batch, and every waitsEvery between two, and tells what the source waits for;
	// nil: nobody does. An error ends the read.
	waits func(context.Context) error
}

// waitsEvery is how often a read without an answer asks what it waits for.
const waitsEvery = time.Second

// read runs one read in a goroutine of its own, so that the source reads the next batch while take publishes
// this one. take gets the batches in order. When stop is closed or a request comes in, read finishes the
// batch in hand and ends with errStopped or errAsked.
func (r *reader) read(ctx context.Context, stop <-chan struct{}, what Request, take func(Batch) error) error {
	rctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan Batch)
	published := make(chan struct{}, 1) // the batch with Done
	result := make(chan error, 1)
	go func() {
		defer close(batches)
		emit := func(b Batch) error {
			select {
			case batches <- b:
				// A batch that went to the drain below was dropped: the source must not take it for published.
			case <-rctx.Done():
			}
			if b.Done != nil { // from here on the source counts on what it has read
				select {
				case <-published:
				case <-rctx.Done():
				}
			}
			return context.Cause(rctx)
		}
		result <- Safely("reading", func() error { return Each(r.source.Read(rctx, what), emit) })
	}()
	var failed error
	var tick <-chan time.Time
	if r.waits != nil {
		ticker := time.NewTicker(waitsEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	for failed == nil {
		changed := r.changed()
		if r.asked() {
			failed = errAsked
			break
		}
		select {
		case b, open := <-batches:
			if !open {
				return <-result
			}
			if r.waits != nil {
				failed = r.waits(ctx)
			}
			if failed == nil {
				failed = take(b)
			}
			if failed == nil && b.Done != nil {
				published <- struct{}{}
			}
		case <-tick:
			failed = r.waits(ctx)
		case <-stop:
			failed = errStopped
		case <-changed:
		}
	}
	cancel(failed)
	for range batches { // the goroutine ends before read returns
	}
	if err := <-result; err != nil {
		r.log.Debug("a read was cut short", zap.Error(err), zap.NamedError("because", failed))
	}
	return failed
}

// Safely turns a panic of do into an error: one row that a decoder cannot bear must not take the other
// resources of this process down. what names it.
func Safely(what string, do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a defect in storestream: %s panicked: %v\n%s", what, v, debug.Stack())
		}
	}()
	return do()
}

// CompareSource returns the function by which a comparison reads s: in full, or the suspects once more. known
// has the From, Identity and Fields of its requests. clock is the wall clock.
func CompareSource(s Source, known Request, clock func() schemas.Instant) compare.SourceReader {
	return func(ctx context.Context, ids compare.Range, suspects []Suspect, take compare.Take) error {
		r := known
		r.Kind, r.IDs, r.Started = Full, &ids, clock()
		if suspects != nil {
			r.Kind, r.Suspects, r.Everywhere = Lookup, suspects, true
		}
		done := false
		err := Safely("reading", func() error {
			return Each(s.Read(ctx, r), func(b Batch) error {
				done = done || b.Done != nil && (r.Kind == Lookup || b.Done.Complete)
				return take(b.Rows, b.Rejects)
			})
		})
		if err == nil && !done {
			err = errors.New("a defect in storestream: the source ended without saying that it read everything")
		}
		return err
	}
}

// CreatedAtIn returns a function that reads created_at in a value of r, as a source encodes it; MinInstant
// where there is none. The function is for one goroutine at a time.
func CreatedAtIn(r *schemas.Resource) func(value []byte) schemas.Instant {
	values, err := schemas.NewValueReader(r, "")
	return func(value []byte) schemas.Instant {
		if err == nil { // always: today's schema reads today's values
			if v, err := values.Read(value); err == nil {
				return v.CreatedAt
			}
		}
		return schemas.MinInstant
	}
}
