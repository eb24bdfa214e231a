package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// tooMuch takes a table to where only a person gets it on: more rows are published than poll.memory holds,
// the database's clock goes back behind them all, and the successors do not know them. The clock comes right
// again when the event is over.
func tooMuch(ctx context.Context, s *stage, _ event) (func() error, error) {
	table := storefake.Orders
	settled := func(goal func(time.Time) bool) error {
		for {
			more := s.tail.more()
			if m, there := s.tail.lastMark(table); there && goal(m.Settled) {
				return nil
			}
			select {
			case <-more:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	s.job.fill(ctx, table, s.fleet.memory.tooManyRows())
	written := s.around.fake.Clock().Now()
	if err := settled(func(at time.Time) bool { return at.After(written) }); err != nil {
		return nil, err
	}
	// On a busy machine it can take settled a minute to get here, and the clock has to go back behind the rows.
	back := max(30*time.Second, s.around.fake.Clock().Now().Sub(written)+15*time.Second)
	s.excuses.steppedBack(s.around.fake.Clock().Now(), back)
	if err := stepClock(ctx, s, -back); err != nil {
		return nil, err
	}
	from := time.Now()
	if err := settled(func(at time.Time) bool { return at.Before(written) }); err != nil {
		return nil, err
	}
	if !polledSince(ctx, s, from) { // not each table's
		s.excuses.missedStep()
	}
	if err := s.fleet.kill(); err != nil {
		return nil, err
	}
	return func() error { return slew(ctx, s, back) }, s.fleet.start()
}

func TestMemoryThatWasRaisedInVainIsToldFromMemoryThatFilledAgain(t *testing.T) {
	full := func(settled string, rows int) *shortage {
		return readShortage(fmt.Sprintf("orders: poll.memory is too small to go on: since settled (%s) %d rows "+
			"were published that a poll may meet again, and 3MiB hold 145343 of them. No other row is published, "+
			"so none is published twice, until settled moves: raise poll.memory to 4MiB and restart.", settled, rows))
	}
	before := full("18:35", 145353)
	if *before != (shortage{text: before.text, settled: "18:35", rows: 145353, has: 3, want: 4}) {
		t.Errorf("%+v", before)
	}
	for _, c := range []struct {
		before, now *shortage
		again       bool
	}{
		{before, full("18:35", 145353), true},
		{before, full("18:35", 200382), false},
		{before, full("18:51", 145353), false},
		{nil, before, false},
	} {
		if c.now.again(c.before) != c.again {
			t.Errorf("%+v after %+v: expected again=%v", c.now, c.before, c.again)
		}
	}
}

// Whether the number that the text tells is enough is for the real thing to show.
func TestTheOperatorRaisesPollMemoryToWhatTheHoldSaysAndThatIsEnough(t *testing.T) {
	if os.Getenv("STORESTREAM_LONG") == "" {
		t.Skip("it takes three quarters of a minute: make test-long")
	}
	p := newPlan(terms{seed: 1, length: 5 * time.Second, broker: embedded, source: fromDatabase, only: "none"})
	p.service.readings = storefake.Readings{}
	o := &p.polling
	o.memory, o.requestsPerSecond = mebibytes(1), 200
	o.overlap, o.restOverlap, o.hold, o.restHold = 11*time.Second, 10*time.Second, time.Second, time.Second
	p.events = []event{{kind: &kind{name: "more rows and a clock that goes back", do: tooMuch}, at: time.Second}}
	// PostgreSQL may have to run as somebody else, who may not enter t.TempDir.
	dir, err := os.MkdirTemp("", "storestream-operator-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var out bytes.Buffer
	s, err := newStage(ctx, &p, dir, raceNone, &out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	}()
	s.personComes = time.Second
	r, err := play(ctx, s)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if r.write(&out); !r.ok() || !strings.Contains(r.raised, "for orders") {
		t.Errorf("expected that all is well, and that poll.memory was raised for orders:\n%s", out.String())
	}
	t.Log(out.String())
}
