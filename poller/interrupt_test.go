package poller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What was read is committed although the poller is to stop, but not for longer than that may take. Nothing
// more is committed of a resource that belongs to another instance.
func TestACommitOutlivesAStopAndNothingElse(t *testing.T) {
	lost := errors.New("the resource is another's")
	synctest.Test(t, func(t *testing.T) {
		for cause, limit := range map[error]time.Duration{ErrStopping: StopWithin, lost: 0} {
			ctx, end := context.WithCancelCause(t.Context())
			commits, drop := outliving(ctx)
			synctest.Wait()
			if commits.Err() != nil {
				t.Fatalf("%v: commits have ended before", cause)
			}
			began := time.Now()
			end(cause)
			<-commits.Done()
			if took := time.Since(began); took != limit || !errors.Is(context.Cause(commits), cause) {
				t.Errorf("%v: commits end after %s because of %v, expected %s", cause, took, context.Cause(commits),
					limit)
			}
			drop()
		}
	})
}
