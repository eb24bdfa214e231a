package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestWritingTheSameWatermarkAgainIsNoProgress(t *testing.T) {
	base := watermark.New("orders")
	base.Settled, base.Rows = instant(t, "2026-11-20T09:00:00Z"), 7
	base.Cursor = &watermark.Cursor{ID: 5}
	for _, test := range []struct {
		name   string
		change func(*watermark.Watermark)
		moved  bool
	}{
		{"written again", func(w *watermark.Watermark) {
			w.Written, w.Instance = w.Settled, "b"
			w.Cursor = &watermark.Cursor{ID: 5}
		}, false},
		{"settled", func(w *watermark.Watermark) { w.Settled++ }, true},
		{"rows", func(w *watermark.Watermark) { w.Rows++ }, true},
		{"as of", func(w *watermark.Watermark) { w.AsOf = w.Settled }, true},
		{"the cursor", func(w *watermark.Watermark) { w.Cursor = &watermark.Cursor{ID: 6} }, true},
		{"the end of the pass", func(w *watermark.Watermark) { w.Cursor = nil }, true},
	} {
		next := base
		test.change(&next)
		if got := moved(base, next); got != test.moved {
			t.Errorf("%s: moved %v, expected %v", test.name, got, test.moved)
		}
	}
}

func TestPatienceBeginsAnewWithEveryStepOfAResource(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	o := &catchUp{enabled: []string{"orders", "users"}, start: schemas.InstantOf(at(0)), patience: time.Minute, lastError: func(string) string { return "" },
		progress: map[string]progress{"orders": {watermark.New("orders"), at(0)}, "users": {watermark.New("users"), at(0)}}}
	step := func(name string, s int, rows int64) {
		mark := watermark.New(name)
		mark.Rows, mark.Instance = rows, "other-1"
		o.note(map[string]watermark.Watermark{name: mark}, at(s))
	}
	step("orders", 50, 1)
	step("users", 59, 1)
	if err := o.stalled(o.open(), at(100)); err != nil {
		t.Errorf("after 50 s without progress: %v", err)
	}
	step("users", 105, 2)
	err := o.stalled(o.open(), at(110))
	if err == nil || !strings.Contains(err.Error(), "orders: ") || strings.Contains(err.Error(), "users") {
		t.Errorf("%v, expected it to name orders alone", err)
	}
	if !strings.Contains(err.Error(), "instance other-1") {
		t.Errorf("%v, expected it to name the instance whose log says more", err)
	}
	o.readErr = errors.New("kafka [b:9092] does not answer")
	if err := o.stalled(o.open(), at(110)); !strings.Contains(err.Error(), "kafka [b:9092] does not answer") {
		t.Errorf("%v, expected the broker to be named", err)
	}
}
