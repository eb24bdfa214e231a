package terminal

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestALineOfProgressIsReplacedAndCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &Progress{w: &out, hide: strings.ToUpper}
		p.Show("orders: reading the topic", 10_000, 0)
		p.Show("orders: reading the topic", 10_001, 0) // too soon
		<-time.After(time.Second)                      // the bubble's clock
		p.Show("orders: reading the service", 20_000, 10_000)
		for range 3 {
			p.Say("1 row\x07")
		}
		p.Clear()
		p.Clear()
		const want = "\r\x1b[KORDERS: READING THE TOPIC 10,000" +
			"\r\x1b[KORDERS: READING THE SERVICE 20,000 OF ABOUT 10,000\r\x1b[K1 ROW\\u0007\r\x1b[K"
		if out.String() != want {
			t.Errorf("%q, expected %q", out.String(), want)
		}
	})
}

func TestWhatIsNoTerminalShowsNoProgress(t *testing.T) {
	out := &bytes.Buffer{}
	p := NewProgress(out)
	p.Show("orders", 1, 2)
	p.Say("waiting")
	p.Clear()
	if out.String() != "" {
		t.Errorf("%q", out)
	}
}
