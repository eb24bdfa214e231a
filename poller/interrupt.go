package poller

import (
	"context"
	"errors"
)

// ErrStopping is the cause with which the context of Run is cancelled to stop a poller: it finishes the
// batch in hand, writes its watermark and returns nil.
var ErrStopping = errors.New("stopping")

// errAsked is the cause with which untilAsked cancels a poll.
var errAsked = errors.New("a request came in")

// outliving returns a context for transactions. It ends when ctx ends with another cause than ErrStopping.
func outliving(ctx context.Context) (_ context.Context, cancel func()) {
	commits, end := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, ErrStopping) {
			end(cause)
		}
	})
	return commits, func() { forget(); end(nil) }
}
