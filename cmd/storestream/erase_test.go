package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestEraseAsksForTheRowsThatTheTopicHoldsAndSaysWhatBecameOfThem(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped"), s.Order(2, "Shipped")}, nil, nil)
	s.do("erase", "orders", "7", "--yes").expect(t, exitDone, "orders 7: the topic holds no such row")
	out, _, wait := s.run("erase", "orders", "1", "2", "7", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked to erase 2 rows")
	})
	cluster := s.Cluster("owner")
	if err := cluster.Requests().CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := cluster.Requests().After("orders", -1, "")[0]
	if asked.Kind != watermark.Erases || fmt.Sprint(asked.Rows) != "[{1} {2}]" {
		t.Errorf("asked %+v", asked)
	}
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) { w.AcceptErase(asked, schemas.MinInstant) })
	s.do("watermark", "list").expect(t, exitLate, "erasing 2 rows")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.AcceptErase(asked, schemas.MinInstant)
		w.EndErase(map[int64]string{1: "", 2: "the service has it"}, schemas.MinInstant)
	})
	wait().expect(t, exitFailed, "orders 1: erased", "orders 2: stays: the service has it",
		"1 row of orders not erased")
}

func TestEraseSaysWhatItExpects(t *testing.T) {
	s := newScene(t)
	s.do("erase", "orders").expect(t, exitUsage, "expected a resource and one id or more")
	s.do("erase", "order", "1").expect(t, exitUsage, "orders")
	s.do("erase", "orders", "x1").expect(t, exitUsage, `"x1" is no id: expected a whole number`)
	s.do("erase", "orders", "7", "-5", "--yes").expect(t, exitUsage,
		"-5 is no flag: expected ids below 0 after --", "such as storestream erase users -- -5")
	s.do("erase", "orders", "-x").expect(t, exitUsage, "unknown shorthand flag: 'x'")
	s.do("row", "orders", "-12").expect(t, exitUsage, "such as storestream row users -- -12")
	many := []string{"erase", "orders"}
	for id := range watermark.MostErased + 1 {
		many = append(many, strconv.Itoa(id))
	}
	s.do(many...).expect(t, exitUsage, "expected 20 at most")
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	s.do("erase", "--yes", "orders", "--", "-5", "7").expect(t, exitDone,
		"orders -5: the topic holds no such row", "orders 7: the topic holds no such row")
	s.answer("no\n", "erase", "orders", "1").expect(t, exitFailed, "Delete 1 row of orders", "not confirmed")
}
