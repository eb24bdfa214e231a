package instance

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storestream/storestream/producer"
)

// What was read is committed although the instance stops, but not for longer than that may take. Of a resource
// that belongs to another instance nothing more is committed.
func TestACommitOutlivesAStopAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cause, limit := range map[error]time.Duration{errStopping: time.Minute, producer.ErrRevoked: 0,
			producer.ErrLostOwnership: 0} {
			ctx, end := context.WithCancelCause(t.Context())
			commits, drop := outlives(ctx, time.Minute)
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
