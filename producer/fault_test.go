package producer_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// The answer to a commit is lost. Whether it was carried out or not, what the session believes does not
// change, and the next session finds out.
func TestACommitOfUnknownOutcomeIsFoundOutByTakingOver(t *testing.T) {
	for name, carriedOut := range map[string]bool{"carried out": true, "not carried out": false} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c := s.cluster("a", nil)
			session := s.take(c)
			s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
			var ending *kmsg.EndTxnRequest
			s.broker.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
				ending = req.(*kmsg.EndTxnRequest)
				answer := req.ResponseKind().(*kmsg.EndTxnResponse)
				answer.ErrorCode = kerr.UnknownServerError.Code
				return answer, nil, true
			})
			err := session.Commit(s.ctx(), next(session, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
			if !errors.Is(err, producer.ErrLost) {
				t.Fatalf("commit: %v, expected ErrLost", err)
			}
			if got := session.Watermark().Rows; got != 1 {
				t.Errorf("the session counts %d rows after a commit of unknown outcome, expected 1", got)
			}
			if carriedOut {
				if answer, err := ending.RequestWith(s.ctx(), s.cl); err != nil || answer.ErrorCode != 0 {
					t.Fatal(answer, err)
				}
			}
			session.Abandon()

			again := s.take(c)
			if want := map[bool]int64{true: 2, false: 1}[carriedOut]; again.Watermark().Rows != want {
				t.Errorf("the successor counts %d rows, expected %d", again.Watermark().Rows, want)
			}
			if !carriedOut {
				s.commit(again, next(again, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
			}
			s.wantIDs(1, 2)
		})
	}
}

// A record that the broker refuses takes the whole transaction with it, and the next session goes on. Ending
// a transaction says nothing about its records, so without a look at every promise the rest would be
// committed.
func TestARefusedRecordAbortsTheWholeTransaction(t *testing.T) {
	for _, topic := range []string{"store.orders", "store.dead_letters", "store.watermarks"} {
		t.Run(topic, func(t *testing.T) {
			s := newStage(t)
			c := s.cluster("a", nil)
			session := s.take(c)
			s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
			s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.InvalidRecord})
			tx := next(session, s.order(2, "2026-11-20T10:00:00Z", "Shipped"))
			tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/3", Row: []byte(`{}`)}}
			err := session.Commit(s.ctx(), tx)
			if !errors.Is(err, producer.ErrLost) || !errors.Is(err, kerr.InvalidRecord) {
				t.Fatalf("commit: %v, expected ErrLost because of an invalid record", err)
			}
			if session.Watermark().Rows != 1 || len(session.DeadLetters()) != 0 {
				t.Errorf("the session believes that the aborted transaction happened: %+v, %v", session.Watermark(),
					session.DeadLetters())
			}
			session.Close()
			s.wantIDs(1)
			s.commit(s.take(c), tx)
			s.wantIDs(1, 2)
		})
	}
}

func TestACommitOutlivesACoordinatorThatMoves(t *testing.T) {
	s := newStage(t)
	session := s.take(s.cluster("a", nil))
	moved := s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Err: kerr.NotCoordinator},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "store.orders", Err: kerr.NotLeaderForPartition})
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	if moved.Hits() != 2 {
		t.Errorf("%d faults were met, expected 2", moved.Hits())
	}
	s.wantIDs(1)
}

// The broker ends a transaction that takes too long.
func TestATransactionThatTimesOutIsLost(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", nil)
	before := producer.SetTransactionTimeout(time.Second)
	t.Cleanup(func() { producer.SetTransactionTimeout(before) })
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	// The answer to the last record comes when the broker has ended the transaction.
	var once atomic.Bool
	s.broker.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		if once.Swap(true) {
			return nil, nil, false
		}
		s.broker.SleepControl(func() { s.awaitNoTransaction("storestream-store.orders") })
		return nil, nil, false
	})
	err := session.Commit(s.ctx(), next(session, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
	if !errors.Is(err, producer.ErrLost) {
		t.Fatalf("commit: %v, expected ErrLost", err)
	}
	session.Close()
	again := s.take(c)
	if got := again.Watermark().Rows; got != 1 {
		t.Errorf("after a timeout the watermark counts %d rows, expected 1", got)
	}
	s.commit(again, next(again, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
	s.wantIDs(1, 2)
}

// awaitNoTransaction returns when the transactional id has no transaction open.
func (s *stage) awaitNoTransaction(id string) {
	for ask := time.NewTicker(10 * time.Millisecond); s.t.Context().Err() == nil; <-ask.C {
		described, err := s.admin.DescribeTransactions(s.ctx(), id)
		open := []string{"Ongoing", "PrepareAbort", "PrepareCommit"}
		if err == nil && !slices.Contains(open, described[id].State) {
			return
		}
	}
}

func TestACommitWhoseContextEndsIsAborted(t *testing.T) {
	s := newStage(t)
	session := s.take(s.cluster("a", nil))
	ctx, cancel := context.WithCancelCause(context.Background())
	// The broker has the row's batch in hand when the resource is taken away.
	s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "store.orders",
		Err: kerr.NotEnoughReplicas, When: func(kmsg.Request) bool {
			cancel(producer.ErrRevoked)
			return true
		}})
	err := session.Commit(ctx, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	if !errors.Is(err, producer.ErrRevoked) || errors.Is(err, producer.ErrLost) {
		t.Fatalf("commit: %v, expected ErrRevoked alone", err)
	}
	s.wantIDs()
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.wantIDs(1)
}

// A large transaction keeps the watermark topic open only at its end.
func TestALargeTransactionIsOneTransaction(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	var rows []schemas.Record
	for id := range int64(5000) {
		rows = append(rows, s.order(id, "2026-11-20T09:00:00Z", "Shipped"))
	}
	s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "store.watermarks",
		Err: kerr.InvalidRecord})
	if err := session.Commit(s.ctx(), next(session, rows...)); !errors.Is(err, producer.ErrLost) {
		t.Fatalf("commit: %v, expected ErrLost", err)
	}
	session.Close()
	s.wantIDs()
	session = s.take(c)
	s.commit(session, next(session, rows...))
	if got := s.ids("store.orders"); len(got) != 5000 || got[4999] != 4999 {
		t.Errorf("%d orders, expected 5000", len(got))
	}
}
