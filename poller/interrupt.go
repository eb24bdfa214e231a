package poller

import "context"

// interrupt is a cause with which a context ends what goes on, but not the transaction in hand.
type interrupt string

func (i interrupt) Error() string { return string(i) }

// ErrStopping is the cause with which the context of Run is cancelled to stop a poller: it finishes the batch
// in hand, writes its watermark and returns nil.
var ErrStopping error = interrupt("stopping")

// errAsked is the cause with which untilAsked cancels a poll: a request waits to be accepted.
var errAsked error = interrupt("a request came in")

// outliving returns a context for transactions. It ends when ctx ends with another cause than an interrupt.
func outliving(ctx context.Context) (_ context.Context, cancel func()) {
	commits, end := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if _, soft := cause.(interrupt); !soft { //nolint:errorlint // a wrapped one is not ours
			end(cause)
		}
	})
	return commits, func() { forget(); end(nil) }
}

// untilAsked returns ctx, which is also cancelled while a request for this resource waits to be accepted.
func (p *Poller) untilAsked(ctx context.Context) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	if p.asked() {
		end(errAsked)
	}
	id, uid := p.publisher.mark.Request, p.publisher.mark.RequestUID
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			changed := p.cfg.Changed()
			if len(p.cfg.Requests(id, uid)) > 0 {
				end(errAsked)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	return ctx, func() { end(nil); <-ended }
}
