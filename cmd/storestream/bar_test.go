package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storestream/storestream/internal/compare"
)

// A terminal that scrolls back shows what was drawn after a bar had been taken off it: two bars that fight for one line.
func TestABarThatWasClearedDrawsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &buffer{}
		b := &bar{w: out}
		b.reading("orders", compare.Progress{TopicRows: 10_000})
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		b.reading("orders", compare.Progress{TopicRows: 20_000})
		b.reading("users", compare.Progress{TopicRows: 10_000})
		b.say("35 rows to look at again after the next poll")
		b.clear()
		before := out.String()
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		if after := out.String(); after != before {
			t.Errorf("it went on drawing %q", after[len(before):])
		}
		if !strings.Contains(before, "orders: reading the topic") || !strings.Contains(before, "35 rows") || !strings.HasSuffix(before, "\r\x1b[K") {
			t.Errorf("%q", before)
		}
	})
}

func TestALineThatStaysTheSameIsWrittenOnce(t *testing.T) {
	out := &buffer{}
	b := &bar{w: out}
	for range 3 {
		b.say("1 row to look at again after the next poll")
	}
	if n := strings.Count(out.String(), "1 row"); n != 1 {
		t.Errorf("written %d times: %q", n, out)
	}
}
