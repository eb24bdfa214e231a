package poller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// replay asks for a replay of the rows with updated_at from one time after noon to another.
func (s *shop) replay(from, to time.Duration) int64 {
	begin, end := schemas.InstantOf(noon.Add(from)), schemas.InstantOf(noon.Add(to))
	return s.ask(watermark.Request{Kind: watermark.Replays, From: &begin, To: &end})
}

// awaitReplay polls every second until no replay of a part is in hand.
func (s *shop) awaitReplay() {
	s.t.Helper()
	for n := 0; n == 0 || len(s.mark.Parts) > 0; n++ {
		s.poll()
		if s.now = s.now.Add(time.Second); n > 1000 {
			s.t.Fatalf("the replay does not end: %+v", s.mark.Parts)
		}
	}
}

// sent is how often each row was published since the topic had so many records.
func (s *shop) sent(since int) map[int64]int {
	n := map[int64]int{}
	for _, r := range s.topic[since:] {
		n[r.ID]++
	}
	return n
}

// hourly is a shop with 24 rows, one of each hour before noon.
func hourly(t *testing.T, change func(*Config)) *shop {
	t.Helper()
	s := openShop(t, 0, change)
	for id := range int64(24) {
		s.rows[id] = s.row(id, -time.Duration(24-id)*time.Hour, 1)
	}
	s.mark, s.topic = watermark.New("orders"), nil
	s.takeOver()
	s.poll()
	return s
}

func TestAReplayOfAPartSendsTheRowsOfItsRangeOnceMore(t *testing.T) {
	for _, suspects := range []int{0, 1, 3} { // in parts
		s := hourly(t, func(c *Config) { c.Sweep.MaxSuspects, c.Sweep.Scratch = suspects, 1<<20 })
		before, settled := len(s.topic), s.mark.Settled
		s.replay(-20*time.Hour, -4*time.Hour)
		s.poll()
		if s.mark.Settled < settled || s.mark.Replay != nil {
			t.Errorf("settled went from %v to %v", settled, s.mark.Settled)
		}
		s.awaitReplay()
		for id := range int64(24) {
			want := 0
			if id >= 4 && id < 20 {
				want = 1
			}
			if n := s.sent(before)[id]; n != want {
				t.Errorf("in parts of %d: row %d is sent %d times, want %d", suspects, id, n, want)
			}
		}
		if got := s.result(); got == nil || got.Rows != 16 || got.Left != "" || got.Request != 1 {
			t.Errorf("the result is %+v", got)
		}
		s.pollFor(time.Minute)
		if n := len(s.topic) - before; n != 16 {
			t.Errorf("%d records, want 16", n)
		}
	}
}

// What is in the topic was sent, also if the process dies right after a commit, or in one of unknown outcome.
func TestAReplayOfAPartGoesOnWithTheNextOwnerAndSendsNothingTwice(t *testing.T) {
	for dies := range 6 {
		s := hourly(t, func(c *Config) { c.Sweep.MaxSuspects = 5 })
		s.maxRows = func() int { return 2 }
		before, commits := len(s.topic), 0
		s.publishes = func(_ context.Context, tx watermark.Transaction) error {
			if err := s.commit(tx); err != nil || len(tx.Rows) == 0 {
				return err
			}
			if commits++; commits == dies {
				return errUnknown
			}
			return nil
		}
		s.replay(-20*time.Hour, -4*time.Hour)
		for n := 0; n == 0 || len(s.mark.Parts) > 0; n++ {
			if err := s.work(); errors.Is(err, errUnknown) {
				s.takeOver()
			} else if err != nil {
				t.Fatal(err)
			}
			s.awaitSweep()
			s.now = s.now.Add(time.Second)
		}
		if n := len(s.topic) - before; n != 16 || len(s.sent(before)) != 16 {
			t.Errorf("dies in commit %d: %d records of %d rows, want 16", dies, n, len(s.sent(before)))
		}
		if got := s.result(); got.Rows != 16 || got.Left != "" {
			t.Errorf("dies in commit %d: %+v", dies, got)
		}
	}
}

// A copy of the service lags, a row was deleted, one was updated without its updated_at, one can no longer be
// published. A replay repairs nothing: only what is as the topic has it is sent.
func TestAReplayOfAPartSendsOnlyWhatTheTopicHas(t *testing.T) {
	s := hourly(t, func(c *Config) { c.Sweep.Tombstone = true })
	s.rows[10] = s.row(10, -30*time.Hour, 0)
	delete(s.rows, 11)
	s.rows[12] = s.row(12, -12*time.Hour, 2)
	bad := s.row(13, -11*time.Hour, 1)
	bad.bad = true
	s.rows[13] = bad
	before := len(s.topic)
	s.replay(-24*time.Hour, time.Hour)
	s.awaitReplay()
	for id := range int64(24) {
		want := 1
		if id >= 10 && id <= 13 {
			want = 0
		}
		if n := s.sent(before)[id]; n != want {
			t.Errorf("row %d is sent %d times, want %d", id, n, want)
		}
	}
	got := s.result()
	if got.Rows != 20 || !strings.Contains(got.Left, "not published again: 4 rows") || len(s.letters) != 0 {
		t.Errorf("%+v, letters %v", got, s.letters)
	}
}

// A row that a poll publishes meanwhile is not sent a second time.
func TestARowThatChangesDuringAReplayOfAPartIsSentOnce(t *testing.T) {
	s := hourly(t, nil)
	before := len(s.topic)
	s.looks = func(Request) { s.rows[5] = s.row(5, time.Minute, 2) } // between the first reading and the look
	s.replay(-24*time.Hour, time.Hour)
	s.awaitReplay()
	if n := s.sent(before)[5]; n != 1 {
		t.Errorf("it is sent %d times", n)
	}
	s.wants(s.rows[5])
	if got := s.result(); got.Rows != 23 || got.Left != "" {
		t.Errorf("%+v", got)
	}
}

func TestAReplayOfNamedRowsLooksForThemAlone(t *testing.T) {
	s := hourly(t, nil)
	before := len(s.topic)
	s.looks = func(r Request) {
		if r.Everywhere || len(r.Suspects) > 2 {
			t.Errorf("it looks for %v, everywhere: %v", r.Suspects, r.Everywhere)
		}
	}
	s.ask(watermark.Request{Kind: watermark.Replays, Rows: []int64{3, 7, 99}})
	s.awaitReplay()
	if got := fmt.Sprint(s.sent(before)); got != "map[3:1 7:1]" || s.full != 0 {
		t.Errorf("sent %s, %d full readings", got, s.full)
	}
	if got := s.result(); got.Rows != 2 || !strings.Contains(got.Left, "1 row that the topic does not have") {
		t.Errorf("%+v", got)
	}
}

// A named row that was published after the request has its one more record.
func TestANamedRowThatChangesDuringItsReplayIsNotLeft(t *testing.T) {
	s := hourly(t, nil)
	before := len(s.topic)
	s.looks = func(Request) { s.rows[3] = s.row(3, time.Minute, 2) }
	s.ask(watermark.Request{Kind: watermark.Replays, Rows: []int64{3, 7}})
	s.awaitReplay()
	if got := s.result(); got.Rows != 1 || got.Left != "" || fmt.Sprint(s.sent(before)) != "map[3:1 7:1]" {
		t.Errorf("%+v, sent %v", got, s.sent(before))
	}
}

func TestAReplayOfAPartIsCancelledAndTooManyAreRefused(t *testing.T) {
	s := hourly(t, func(c *Config) { c.Sweep.MaxSuspects = 2 })
	before := len(s.topic)
	first := s.replay(-20*time.Hour, -4*time.Hour)
	s.poll()
	for range watermark.MostParts {
		s.replay(-24*time.Hour, time.Hour)
	}
	s.poll()
	if p := s.mark.Parts; len(p) != watermark.MostParts || p[0].Request != first {
		t.Fatalf("in hand are %+v", p)
	}
	for s.mark.Parts[0].Rows == 0 {
		s.poll()
	}
	s.ask(watermark.Request{Kind: watermark.Cancels})
	s.poll()
	sent := len(s.topic) - before
	got := s.mark.ResultOf(first, "")
	if len(s.mark.Parts) > 0 || got.Left != "cancelled" || got.Rows != int64(sent) {
		t.Errorf("%+v, %+v of %d", s.mark.Parts, got, sent)
	}
	for request := first + 1; request < first+watermark.MostParts; request++ {
		if got := s.mark.ResultOf(request, ""); got == nil || got.Left != "cancelled" {
			t.Errorf("request %d, which waited: %+v", request, got)
		}
	}
	got = s.mark.ResultOf(first+watermark.MostParts, "")
	if got == nil || !strings.Contains(got.Left, "wait already") {
		t.Errorf("the one too many: %+v", got)
	}
	s.ask(watermark.Request{Kind: watermark.Cancels})
	s.poll()
	late := s.mark.Results[len(s.mark.Results)-1]
	if !strings.Contains(late.Left, "there is no replay to cancel") {
		t.Errorf("a cancel too late: %+v", late)
	}
	s.pollFor(time.Minute)
	if n := len(s.topic) - before; n != sent {
		t.Errorf("%d records after %d", n, sent)
	}
	s.replay(-20*time.Hour, -4*time.Hour)
	s.awaitReplay()
	if n := len(s.topic) - before; n != sent+16 {
		t.Errorf("the next one sends %d, want 16", n-sent)
	}
}

// A person waits for it. The sweep goes on afterwards, with its part.
func TestAReplayOfAPartGoesBeforeTheSweepInHand(t *testing.T) {
	s := hourly(t, nil)
	s.looks = func(r Request) {}
	before := len(s.topic)
	s.askSweep()
	for s.mark.Sweep == nil || s.mark.Sweep.Tried == nil {
		s.poll()
	}
	s.replay(-20*time.Hour, -4*time.Hour)
	s.poll()
	if s.mark.Sweep.Tried != nil || s.poller.sweeper.inHand.kind != watermark.Replays {
		t.Errorf("in hand is %s, the sweep %+v", s.poller.sweeper.inHand.kind, s.mark.Sweep)
	}
	s.awaitReplay()
	if s.mark.Swept != nil {
		t.Error("the sweep was first")
	}
	s.await(1)
	if n := len(s.topic) - before; n != 16 || s.mark.Swept.TopicRows != 24 {
		t.Errorf("%d records, swept %+v", n, s.mark.Swept)
	}
}

// It waits as a sweep does when the service fails, and says so. A sweep that is due gets its turn.
func TestAReplayOfAPartThatFailsIsTriedAgain(t *testing.T) {
	s := hourly(t, func(c *Config) {
		source := c.Sweep.Source()
		c.Sweep.Source = func() Source { return noLookups{source} }
	})
	s.replay(-20*time.Hour, -4*time.Hour)
	s.pollFor(time.Minute)
	if p := s.mark.Parts; len(p) == 0 || !strings.Contains(p[0].Failure, "cannot be closed") {
		t.Errorf("%+v", p)
	}
	s.askSweep()
	s.pollFor(time.Hour)
	if s.mark.Swept == nil || len(s.mark.Parts) == 0 {
		t.Errorf("swept %+v, the watermark has %+v", s.mark.Swept, s.mark.Parts)
	}
}

// What the reset has sent again by then stays sent. The rest of it is not sent, a row that changes is, and
// settled stands where it stood.
func TestAResetIsCancelled(t *testing.T) {
	s := hourly(t, nil)
	s.settles = s.mark.Settled
	s.maxRows = func() int { return 1 }
	before, settled := len(s.topic), s.mark.Settled
	failed := false
	s.publishes = func(_ context.Context, tx watermark.Transaction) error {
		if err := s.commit(tx); err != nil || len(s.topic)-before < 5 || failed {
			return err
		}
		failed = true
		return errAborted // in the middle
	}
	to := schemas.InstantOf(noon.Add(-20 * time.Hour))
	s.ask(watermark.Request{Kind: watermark.Reset, To: &to})
	s.poll()
	if err := s.work(); !errors.Is(err, errAborted) {
		t.Fatal(err)
	}
	if s.takeOver(); s.mark.Replay == nil || s.mark.Settled >= settled {
		t.Fatalf("settled %v, replay %+v", s.mark.Settled, s.mark.Replay)
	}
	sent := len(s.topic) - before
	s.rows[7] = s.row(7, time.Second, 2)
	s.ask(watermark.Request{Kind: watermark.Cancels})
	s.poll()
	s.pollFor(time.Minute)
	if n := len(s.topic) - before; n != sent+1 || s.sent(before + sent)[7] != 1 {
		t.Errorf("%d records after %d, want one", n, sent)
	}
	if s.mark.Replay != nil || s.mark.Settled < settled || s.result().Left != "cancelled" {
		t.Errorf("settled %v, want %v; %+v, %+v", s.mark.Settled, settled, s.mark.Replay, s.result())
	}
}

// Settled from before the reset holds no more once the service's clock went back.
func TestACancelledResetDoesNotPassWhatALossHasUndone(t *testing.T) {
	s := hourly(t, nil)
	to := schemas.InstantOf(noon.Add(-20 * time.Hour))
	s.ask(watermark.Request{Kind: watermark.Reset, To: &to})
	if err := s.poller.acceptRequests(); !errors.Is(err, ErrTakeover) {
		t.Fatal(err)
	}
	lost := schemas.InstantOf(noon.Add(-10 * time.Hour))
	s.poller.state.lose(&LostError{Why: "the clock went back", From: lost})
	s.poller.state.cancelReplays(s.now)
	if got := s.poller.state.mark.Settled; got != lost {
		t.Errorf("settled is %v, want %v", got, lost)
	}
}

// The look has shown the version before, and the poll comes before the replay is acted upon.
func TestARowThatChangesAfterTheLookOfAReplayIsNotSentAsItWas(t *testing.T) {
	s := hourly(t, nil)
	before := len(s.topic)
	s.replay(-24*time.Hour, time.Hour)
	for len(s.lookups) == 0 {
		s.poll()
	}
	s.rows[5] = s.row(5, time.Minute, 2)
	s.awaitReplay()
	if n := s.sent(before)[5]; n != 1 {
		t.Errorf("it is sent %d times", n)
	}
	s.wants(s.rows[5])
}
