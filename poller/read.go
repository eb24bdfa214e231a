package poller

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/storestream/storestream/internal/wait"
)

// silence is how long read waits for a batch before it reports the service's pauses.
const silence = time.Second

// errBrokenOff tells a source that its reader wants no more batches.
var errBrokenOff = errors.New("the read was broken off")

// read reads the source in a goroutine of its own, so that the source reads the next batch while the caller
// deals with this one. It reports the service's pauses before each batch, and every second while the source
// is silent.
//
// The source may rely on a batch with Done only when the caller has dealt with it (Source). So for that
// batch the goroutine waits until the caller asks for the next one. When the caller breaks off, or ctx
// ends, the source learns that its last batch was dropped. The goroutine has always ended when read's loop
// ends.
func (p *Poller) read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		batches, dealtWith := make(chan *Batch), make(chan struct{}, 1)
		var failed error // how the source ended, once batches is closed
		go func() {
			defer close(batches)
			defer wait.Recover("reading", &failed)
			for b, err := range p.cfg.Source.Read(ctx, r) {
				if failed = err; failed != nil {
					return
				}
				if w := p.sweeper.inHand; w != nil { // it sees each batch before that is published
					w.See(b.Rows, b.Rejects)
				}
				batches <- &b // it is taken, or dropped
				if b.Done != nil {
					select {
					case <-dealtWith:
					case <-ctx.Done():
					}
				}
				if ctx.Err() != nil { // the batch may have been dropped
					failed = context.Cause(ctx)
					return
				}
			}
		}()
		tick := time.Tick(silence)
		defer func() {
			cancel(errBrokenOff)
			for range batches { // dropped
			}
		}()
		for {
			var batch *Batch
			select {
			case b, more := <-batches:
				if !more {
					if failed != nil {
						yield(Batch{}, failed)
					}
					return
				}
				batch = b
			case <-tick:
			}
			if p.cfg.Waits != nil {
				if err := p.writer.reportWait(p.cfg.Waits()); err != nil {
					yield(Batch{}, err)
					return
				}
			}
			if batch == nil {
				continue
			}
			if !yield(*batch, nil) {
				return
			}
			if batch.Done != nil {
				dealtWith <- struct{}{} // the goroutine has taken the one before, if there was one
			}
		}
	}
}
