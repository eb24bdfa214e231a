package terminal

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// buffer may be read while something still writes to it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Two bars that fight for one line show when the terminal is scrolled back.
func TestProgressThatWasClearedDrawsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &buffer{}
		p := &Progress{w: out}
		p.Show("orders: reading the topic", 10_000, 0)
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		p.Show("orders: reading the topic", 20_000, 0)
		p.Show("orders: reading the service", 20_000, 10_000)
		p.Show("users: reading the topic", 10_000, 0)
		p.Say("35 rows to look at again after the next poll")
		p.Clear()
		before := out.String()
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		if after := out.String(); after != before {
			t.Errorf("it went on drawing %q", after[len(before):])
		}
		if !strings.Contains(before, "orders: reading the topic") || !strings.Contains(before, "35 rows") ||
			!strings.HasSuffix(before, "\r\x1b[K") {
			t.Errorf("%q", before)
		}
	})
}

func TestATextThatStaysTheSameIsWrittenOnce(t *testing.T) {
	out := &buffer{}
	p := &Progress{w: out}
	for range 3 {
		p.Say("1 row to look at again after the next poll")
	}
	if n := strings.Count(out.String(), "1 row"); n != 1 {
		t.Errorf("written %d times: %q", n, out)
	}
}

func TestWhatIsNoTerminalShowsNoProgress(t *testing.T) {
	out := &buffer{}
	p := NewProgress(out)
	p.Show("orders", 1, 2)
	p.Say("waiting")
	p.Clear()
	if out.String() != "" {
		t.Errorf("%q", out)
	}
}
