package producer_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// However many resources load at once, two of them write. What takes part in no load waits for none.
func TestLargeTransactionsTakeTurnsAndSmallOnesWaitForNobody(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", func(c *producer.Config) { c.TransactionTimeout = time.Minute })
	rows := func() []schemas.Record { // of each transaction: Commit stamps them
		rows := slices.Repeat([]schemas.Record{s.order(0, "2026-11-20T09:00:00Z", "Shipped")}, 2000)
		for i := range rows {
			rows[i].ID, rows[i].Value = int64(i), bytes.Clone(rows[i].Value)
		}
		return rows
	}
	session := func(resource string) *producer.Session {
		session, err := producer.Take(s.ctx(), c, s.set.Get(resource))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(session.Close)
		return session
	}

	committed := make(chan error, 2)
	var faults []*kfake.FaultHandle
	for _, resource := range []string{"users", "products"} {
		writing, large := session(resource), rows()
		fault := s.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "store." + resource,
			Err: kerr.NotEnoughReplicas, Count: -1})
		faults = append(faults, fault)
		go func() { committed <- writing.Commit(s.ctx(), next(writing, large...)) }()
		if err := fault.Wait(s.ctx(), 1); err != nil {
			t.Fatal(err)
		}
	}

	third := session("orders")
	s.commit(third, next(third, rows()[:1000]...))
	ctx, cancel := context.WithCancelCause(s.ctx())
	cancel(producer.ErrRevoked)
	for range 20 { // with a turn to be had, half of them would take it
		err := third.Commit(ctx, next(third, rows()...))
		if !errors.Is(err, producer.ErrAborted) || !errors.Is(err, producer.ErrRevoked) {
			t.Fatalf("commit: %v, expected ErrAborted because of ErrRevoked", err)
		}
		wantText(t, err, "waiting for others")
	}

	for _, fault := range faults {
		fault.Remove()
	}
	for range faults {
		if err := <-committed; err != nil {
			t.Error(err)
		}
	}
	s.commit(third, next(third, rows()...))
	if got := len(s.committed("store.orders")); got != 3000 {
		t.Errorf("%d records, expected 3000", got)
	}
}
