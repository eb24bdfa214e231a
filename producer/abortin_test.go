//go:build !kafka

package producer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/producer"
)

// A takeover may have to end a transaction that hangs. It returns when its owner is stopped, whatever
// the brokers do: the group waits for it, and so does a process that stops.
func TestEndingAHangingTransactionEndsWithItsContext(t *testing.T) {
	for name, broken := range map[string]struct {
		key    kmsg.Key
		answer func(kmsg.Request) (kmsg.Response, error)
	}{
		"the coordinator cannot end the transaction before": {kmsg.InitProducerID,
			func(req kmsg.Request) (kmsg.Response, error) {
				answer := req.ResponseKind().(*kmsg.InitProducerIDResponse)
				answer.ErrorCode = kerr.ConcurrentTransactions.Code
				return answer, nil
			}},
		"the leader takes the record and does not answer": {kmsg.Produce,
			func(kmsg.Request) (kmsg.Response, error) { return nil, errors.New("cut off") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c := s.cluster("a", nil)
			if err := producer.EnsureTopics(s.ctx(), c, "orders"); err != nil {
				t.Fatal(err)
			}
			s.broker.ControlKey(int16(broken.key), func(req kmsg.Request) (kmsg.Response, error, bool) {
				s.broker.KeepControl()
				answer, err := broken.answer(req)
				return answer, err, true
			})
			ctx, cancel := context.WithTimeout(s.ctx(), time.Second)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- producer.AbortIn(ctx, c, "storestream-store.users", "store.watermarks", 0) }()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("it says that the transaction was ended")
				}
			case <-time.After(6 * time.Second):
				t.Error("it goes on without end")
			}
		})
	}
}
