//go:build !kafka

package producer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/producer"
)

// The group waits for five seconds for an owner whose resource it takes away, and a stop waits for its end.
func TestAnAbortThatABrokerDoesNotAnswerIsTriedOnce(t *testing.T) {
	s := newStage(t)
	session := s.take(s.cluster("a", nil))
	ctx, cancel := context.WithCancelCause(s.ctx())
	s.broker.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		cancel(producer.ErrRevoked)
		return nil, errors.New("cut off"), true
	})
	err := session.Commit(ctx, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	if !errors.Is(err, producer.ErrLost) {
		t.Errorf("commit: %v, expected ErrLost", err)
	}
	began := time.Now()
	session.Close()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Close took %s after an abort that failed", took)
	}
}
