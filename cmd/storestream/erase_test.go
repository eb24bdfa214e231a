package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestEraseAsksForTheRowsAndSaysWhatBecameOfThem(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped"), s.Order(2, "Shipped")}, nil, nil)
	out, _, wait := s.run("erase", "orders", "1", "2", "7", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for an erase of 3 rows")
	})
	cluster := s.Cluster("owner")
	if err := cluster.Requests().CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := cluster.Requests().After("orders", -1, "")[0]
	if asked.Kind != watermark.Erases || fmt.Sprint(asked.Rows) != "[1 2 7]" {
		t.Errorf("asked %+v", asked)
	}
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.AcceptErase(asked, schemas.MinInstant) })
	s.do("watermark", "list").expect(t, exitLate, "erasing 3 rows")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		w.EndErase(map[int64]string{1: "", 2: "the service has it", 7: "the topic holds no such row"},
			schemas.MinInstant)
	})
	wait().expect(t, exitFailed, "orders 1: erased", "orders 2: stays: the service has it",
		"orders 7: the topic holds no such row", "1 row of orders not erased")
}

// What became of others' requests for the same ids, and what cannot be read of other resources, is no word on
// this one.
func TestAWaitForAnEraseGoesByItsOwnResourceAndRequest(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped"), s.Order(2, "Shipped")}, nil, nil)
	out, _, wait := s.run("erase", "orders", "1", "2", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for an erase of 2 rows")
	})
	requests := s.Cluster("owner").Requests()
	if err := requests.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range schemas.Names() {
		if asked := requests.After(name, -1, ""); name != "orders" && len(asked) > 0 {
			t.Errorf("asked of %s: %+v", name, asked)
		}
	}
	asked := requests.After("orders", -1, "")[0]
	ends := func(r watermark.Request, left map[int64]string) func(*watermark.Watermark) {
		return func(w *watermark.Watermark) {
			w.AcceptErase(r, schemas.MinInstant)
			w.EndErase(left, schemas.MinInstant)
		}
	}
	another := watermark.Request{ID: asked.ID, UID: "another", Rows: asked.Rows}
	s.Publish("orders", nil, nil, ends(another, map[int64]string{1: "another's", 2: "another's"}))
	s.Publish("users", nil, nil, ends(asked, map[int64]string{1: "of users", 2: "of users"}))
	s.Garbage("products")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		ends(asked, map[int64]string{1: ""})(w)
	})
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.EndErase(map[int64]string{2: ""}, schemas.MinInstant)
	})
	c := wait().expect(t, exitDone, "orders 1: erased", "orders 2: erased")
	for _, says := range []string{"another's", "of users", "store.watermarks"} {
		if all := c.stdout.String() + c.stderr.String(); strings.Contains(all, says) {
			t.Errorf("%q is no word on what is left to erase:\n%s", says, all)
		}
	}
}

func TestAWaitSaysThatKafkaDoesNotAnswerAndEndsWhereNobodyWillDoIt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	out, _, wait := s.run("erase", "orders", "1", "--yes", "--wait")
	says := func(text string) {
		t.Helper()
		stage.Eventually(t, "it says "+text, func() bool { return strings.Contains(out.stdout.String(), text) })
	}
	says("orders: the request waits until this is over: no instance polls it")
	var refuses atomic.Bool
	s.Broker.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.Broker.KeepControl()
		if !refuses.Load() {
			return nil, nil, false
		}
		answer := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, topic := range req.(*kmsg.ListOffsetsRequest).Topics {
			refused := kmsg.ListOffsetsResponseTopic{Topic: topic.Topic}
			for _, p := range topic.Partitions {
				refused.Partitions = append(refused.Partitions, kmsg.ListOffsetsResponseTopicPartition{
					Partition: p.Partition, ErrorCode: kerr.TopicAuthorizationFailed.Code})
			}
			answer.Topics = append(answer.Topics, refused)
		}
		return answer, nil, true
	})
	refuses.Store(true)
	says("how far it is cannot be read: ")
	refuses.Store(false)
	stage.Eventually(t, "how far it is can be read again", func() bool {
		return strings.Count(out.stdout.String(), "no instance polls it") == 2
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), "store.requests"); err != nil {
		t.Fatal(err)
	}
	s.do("sweep", "products", "--yes").expect(t, exitDone, "asked for a sweep") // makes the topic anew
	c := wait().expect(t, exitFailed,
		"orders: the request was deleted with its topic before an instance took it: ask again")
	// Once for what was refused, and maybe once for the topic that was not there.
	if n := strings.Count(c.stdout.String(), "how far it is cannot be read"); n > 2 {
		t.Errorf("it is said %d times:\n%s", n, c.stdout)
	}
}

// A watermark tells what became of the last rows alone.
func TestAWaitForAnEraseEndsWhereNobodyKnowsAnyMoreWhatBecameOfARow(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	out, _, wait := s.run("erase", "orders", "1", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for an erase of 1 row")
	})
	asked := s.requestFor("orders")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.AcceptErase(asked, schemas.MinInstant)
		w.EndErase(map[int64]string{1: ""}, schemas.MinInstant)
		for id := range int64(watermark.MostErased) {
			w.AcceptErase(watermark.Request{UID: "later", Rows: []int64{id}}, schemas.MinInstant)
			w.EndErase(map[int64]string{id: ""}, schemas.MinInstant)
		}
		w.Request, w.RequestUID = asked.ID, asked.UID
	})
	wait().expect(t, exitFailed, "orders 1: dealt with, and its result is no longer known: see ",
		"`storestream row orders 1`")
}

func TestEraseSaysWhatItExpects(t *testing.T) {
	s := newScene(t)
	s.do("erase", "orders").expect(t, exitUsage, "expected a resource and ids of rows (20 at most)")
	s.do("erase", "order", "1").expect(t, exitUsage, "orders")
	s.do("erase", "orders", "x1").expect(t, exitUsage, `"x1" is no id: expected a whole number`)
	s.do("erase", "orders", "-x").expect(t, exitUsage, "unknown shorthand flag: 'x'")
	many := []string{"erase", "orders"}
	for id := range watermark.MostErased + 1 {
		many = append(many, strconv.Itoa(id))
	}
	s.do(many...).expect(t, exitUsage, "(20 at most)")
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	s.do("erase", "--yes", "orders", "--", "-5", "7").expect(t, exitDone, "asked for an erase of 2 rows")
	s.do("erase", "orders", "1", "2", "--yes", "--confirm-deletes", "1").expect(t, exitUsage,
		"--confirm-deletes 1: expected 2 or more")
	s.do("sweep", "orders", "--yes", "--confirm-deletes", "0").expect(t, exitUsage,
		"--confirm-deletes 0: expected 1 or more")
	s.do("sweep", "orders", "--yes", "--confirm-deletes").expect(t, exitUsage, "flag needs an argument")
	s.answer("no\n", "erase", "orders", "1").expect(t, exitFailed, "Delete 1 row of orders", "not confirmed")
}
