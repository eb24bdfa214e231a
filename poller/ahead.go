package poller

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// silence is how long ahead waits for a batch before it yields nil.
const silence = time.Second

// errBrokenOff tells a source that its reader wants no more batches.
var errBrokenOff = errors.New("the read was broken off")

// ahead reads from source in a goroutine of its own, so that the source reads the next batch while the
// caller deals with this one. It yields nil whenever the source has been silent for a second.
//
// The source may rely on a batch with Done only when the caller has dealt with it (Source). So for that
// batch the goroutine waits until the caller asks for the next one. When the caller breaks off, or ctx
// ends, the source learns that its last batch was dropped. The goroutine has always ended when ahead
// returns.
func ahead(ctx context.Context, source Source, request Request) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		batches, dealtWith, result := make(chan *Batch), make(chan struct{}), make(chan error, 1)
		go func() {
			defer close(batches)
			result <- Safely("reading", func() error {
				for b, err := range source.Read(ctx, request) {
					if err != nil {
						return err
					}
					select {
					case batches <- &b:
					case <-ctx.Done():
						return context.Cause(ctx)
					}
					if b.Done != nil {
						select {
						case <-dealtWith:
						case <-ctx.Done():
						}
					}
					if ctx.Err() != nil { // the batch may have been dropped
						return context.Cause(ctx)
					}
				}
				return nil
			})
		}()
		defer func() {
			cancel(errBrokenOff)
			for range batches { // dropped
			}
		}()
		ticker := time.NewTicker(silence)
		defer ticker.Stop()
		for {
			var batch *Batch
			select {
			case b, more := <-batches:
				if !more {
					if err := <-result; err != nil {
						yield(nil, err)
					}
					return
				}
				batch = b
			case <-ticker.C:
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
			if !yield(batch, nil) {
				return
			}
			if batch != nil && batch.Done != nil {
				select {
				case dealtWith <- struct{}{}:
				case <-ctx.Done():
				}
			}
		}
	}
}

// Safely turns a panic of do into an error, so that one row that a decoder cannot bear does not take the
// other resources of this process down. The error names do by the word what.
func Safely(what string, do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a defect in storestream: %s panicked: %v\n%s", what, v, debug.Stack())
		}
	}()
	return do()
}
