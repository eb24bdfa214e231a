package poller

import (
	"context"
	"errors"
	"time"

	"github.com/storestream/storestream/internal/wait"
)

// ErrStopping is the cause with which the context of Run is cancelled to stop a poller: it finishes the
// batch in hand, writes its watermark and returns nil.
var ErrStopping = errors.New("stopping")

// StopWithin limits how long a batch may take to be committed after ErrStopping. A batch that takes longer
// is dropped, and the next owner reads it again.
const StopWithin = 20 * time.Second

// errAsked is the cause with which untilAsked cancels a poll.
var errAsked = errors.New("a request came in")

// outliving returns a context for transactions. It ends with ctx, but if the cause is ErrStopping it ends
// only after StopWithin.
func outliving(ctx context.Context) (_ context.Context, cancel func()) {
	commits, end := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if !errors.Is(cause, ErrStopping) || wait.For(commits, StopWithin) == nil {
			end(cause)
		}
	})
	return commits, func() { forget(); end(nil) }
}
