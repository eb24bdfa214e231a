package producer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
)

// Brokers of before 2.8 have no topic ids and do not say which transactions are open; before 4.0 the client
// adds the partitions to a transaction itself. Taking over, fencing, committing, reading back, requests, the
// group and what `check` asks work with all of them.
func TestBrokersOfEveryAgeAreTakenOverWrittenAndReadBack(t *testing.T) {
	for name, versions := range map[string]*kversion.Versions{"2.0": kversion.V2_0_0(), "2.4": kversion.V2_4_0(),
		"2.7": kversion.V2_7_0(), "2.8": kversion.V2_8_0(), "3.6": kversion.V3_6_0(), "4.0": kversion.V4_0_0()} {
		t.Run(name, func(t *testing.T) {
			s, l := newStage(t, kfake.MaxVersions(versions)), newLedger(t)
			a, b := s.cluster("a", nil), s.cluster("b", nil)
			member, _ := l.run(a, "a")
			l.await("a alone", l.everythingOwned("a"))
			if err := member.Confirm(s.ctx()); err != nil {
				t.Error(err)
			}
			owners, err := producer.Members(s.ctx(), b)
			if err != nil || len(owners) != 1 || len(owners[0].Owned) != len(all) {
				t.Errorf("owners %+v, %v", owners, err)
			}
			first := s.take(a)
			tx := next(first, s.order(1, "2026-11-20T09:00:00Z", "Shipped"),
				s.order(2, "2026-11-20T09:00:00Z", "Shipped"))
			tx.DeadLetters = []watermark.DeadLetter{{Key: "orders/3", Row: []byte("{}"), Err: "missing"}}
			s.commit(first, tx)

			second := s.take(b)
			err = first.Commit(s.ctx(), next(first, s.order(1, "2026-11-20T09:30:00Z", "Shipped")))
			if !errors.Is(err, producer.ErrLost) {
				t.Errorf("the predecessor's commit: %v, expected ErrLost", err)
			}
			if seen := s.rebuilt(second); second.Watermark().Rows != 2 || len(seen) != 2 ||
				len(second.DeadLetters()) != 1 {
				t.Errorf("watermark %+v, rebuilt %+v, letters %v", second.Watermark(), seen, second.DeadLetters())
			}
			s.commit(second, next(second, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
			s.wantIDs(1, 1, 2)

			asked := s.ask(a.Requests(), sweepOf("orders"))
			if err := b.Requests().CatchUp(s.ctx()); err != nil {
				t.Fatal(err)
			}
			if got := b.Requests().After("orders", -1, ""); len(got) != 1 || got[0].UID != asked.UID {
				t.Errorf("requests %+v", got)
			}
			if found, err := producer.Rehearse(s.ctx(), b, s.orders()); err != nil || found.Missing != nil {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// Azure Event Hubs' smaller tiers take records of an idempotent producer, and know no transactions.
func TestBrokersWithoutTransactionsAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	versions := kversion.Stable()
	for _, key := range []kmsg.Key{kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.EndTxn} {
		versions.SetMaxKeyVersion(key.Int16(), -1)
	}
	s := newStage(t, kfake.MaxVersions(versions))
	c := s.cluster("a", nil)
	err := producer.NewGroup(c, all, time.Second, func(context.Context, string) {}).Run(s.ctx())
	wantText(t, err, "the brokers at 127.0.0.1:",
		"have no transactions: AddPartitionsToTxn, EndTxn in ApiVersions is missing", "kafka.brokers")
	_, rehearsed := producer.Rehearse(s.ctx(), c, s.orders())
	wantText(t, rehearsed, err.Error())
	topics, err := s.admin.ListTopics(s.ctx())
	if err != nil || len(topics) > 0 || !producer.Refused(rehearsed) {
		t.Errorf("there are topics %v, %v; %v", topics.Names(), err, rehearsed)
	}
}
