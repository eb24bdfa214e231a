package poller

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// A lie that is told once must not hold the watermark for ever, not even if the row is deleted after it.
func TestSettledGoesOnWhenAnOlderStateIsNotShownAgain(t *testing.T) {
	s := openShop(t, 3, nil)
	s.rows[1] = s.row(1, 0, 2)
	s.poll()
	s.rows[1] = s.row(1, -shopOverlap/2, 1) // a replica lags
	s.poll()
	older := s.rows[1].updatedAt
	delete(s.rows, 1)
	for range 5 {
		s.now = s.now.Add(shopOverlap)
		s.poll()
	}
	if s.mark.Settled <= older {
		t.Errorf("settled is %s still, the older state was of %s", s.mark.Settled, older)
	}
}

// Between its two sightings a successor must read the row again, which nobody else remembers.
func TestSettledStaysBehindARowThatIsDeferred(t *testing.T) {
	s := openShop(t, 3, nil)
	s.rows[1] = s.row(1, 0, 2)
	s.poll()
	s.rows[1] = s.row(1, -shopOverlap/2, 1) // a correction
	for range 3 {
		s.poll()
		s.now = s.now.Add(shopOverlap / 4)
	}
	if s.mark.Settled > s.rows[1].updatedAt {
		t.Errorf("settled is %s, the row deferred is of %s", s.mark.Settled, s.rows[1].updatedAt)
	}
	s.takeOver()
	for range 3 {
		s.poll()
		s.now = s.now.Add(shopOverlap)
	}
	s.wants(s.rows[1])
}

// A server lags by less than an overlap, and a cache keeps its answer. So an older state is shown for longer
// than an overlap, which is no truth.
func TestAnOlderStateIsNotConfirmedByAnAnswerThatWasMadeBefore(t *testing.T) {
	s := openShop(t, 3, nil)
	newest := s.row(1, 0, 2)
	s.rows[1] = newest
	s.poll()
	s.rows[1] = s.row(1, -shopOverlap/2, 1)
	s.poll()
	for s.age = 0; s.age < shopOverlap; s.age += shopOverlap / 4 {
		s.now = s.now.Add(shopOverlap / 4)
		s.poll()
	}
	s.now = s.now.Add(shopOverlap / 2)
	s.poll()
	s.wants(newest)
	s.age = 0 // no cache: the service has it
	for range 3 {
		s.poll()
		s.now = s.now.Add(shopOverlap)
	}
	s.wants(s.rows[1])
}

// More rows go back at once than are kept: the rest is told, holds settled, and gets its turn.
func TestRowsBeyondThoseDeferredAtOnceWaitForTheirTurnAndAreTold(t *testing.T) {
	const rows = 2*maxDeferred + 100
	s := newShop(t, noon)
	s.maxRows = func() int { return rows }
	s.publishes = func(_ context.Context, tx watermark.Transaction) error { return s.commit(tx) }
	back := make(map[int64]row, rows)
	for id := range int64(rows) {
		s.rows[id] = s.row(id, 0, 1)
		back[id] = s.row(id, -shopOverlap/2-time.Duration(id)*time.Millisecond, 2)
	}
	s.takeOver()
	s.poll()
	s.rows = back
	s.poll()
	delayed := s.troubled()
	for _, says := range []string{"20,100 rows came back older", "10,000 at a time",
		"again from 2026-11-20T12:01"} {
		if !strings.Contains(delayed, says) {
			t.Errorf("delayed says %q, expected %q", delayed, says)
		}
	}
	for n := 0; len(s.topic) < 2*rows; n++ {
		if s.mark.Settled > back[rows-1].updatedAt {
			t.Fatalf("settled is %s, and %d of %d rows are stale", s.mark.Settled, 2*rows-len(s.topic), rows)
		}
		s.now = s.now.Add(shopOverlap / 2)
		if s.poll(); n > 20 {
			t.Fatalf("%d of %d rows are stale", 2*rows-len(s.topic), rows)
		}
		if n == 1 {
			s.takeOver() // a successor meets them again
		}
	}
	s.poll()
	s.wants(back[rows-1])
	if delayed := s.troubled(); delayed != "" {
		t.Errorf("delayed says %q still", delayed)
	}
}

// REST stamps whole seconds. Two changes within one, read through replicas that lag differently, would be
// changes of each other, for ever. The first answer may also come from the replica that is ahead.
func TestTwoStatesOfOneSecondThatReplicasShowInTurnsAreNoChangesOfEachOther(t *testing.T) {
	for name, first := range map[string]uint64{"behind": 1, "ahead": 2} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, 3, nil)
			older, newer := s.row(1, 0, 1), s.row(1, 0, 2)
			s.rows[1] = s.row(1, 0, first)
			s.poll()
			for n := range 10 {
				if s.rows[1] = older; n%2 == 0 {
					s.rows[1] = newer
				}
				s.now = s.now.Add(shopOverlap / 11)
				s.poll()
				if n == 4 {
					s.takeOver()
				}
			}
			s.rows[1] = newer // by now every replica shows it
			for range 3 {
				s.now = s.now.Add(shopOverlap)
				s.poll()
			}
			s.wants(newer)
			if want := 3 + int(3-first); len(s.topic) != want {
				t.Errorf("%d records, want %d: %+v", len(s.topic), want, s.topic[3:])
			}
		})
	}
}

// Settled may end within a millisecond, and the topic knows no finer time: a row below settled may be an
// older state of one that was published from above it.
func TestAnOlderStateWithinTheMillisecondOfSettledIsNotPublishedOverTheNewerOne(t *testing.T) {
	s := openShop(t, 3, nil)
	older, newer := s.row(1, 0, 1), s.row(1, 0, 2)
	newer.updatedAt++
	s.rows[1], s.settles = newer, newer.updatedAt
	s.poll()
	id := s.askSweep()
	s.rows[1] = older
	for range 5 {
		s.now = s.now.Add(time.Second)
		s.poll()
	}
	s.rows[1] = newer
	s.await(id)
	s.wants(newer)
	if len(s.topic) != 4 {
		t.Errorf("%d records, the older state was published: %+v", len(s.topic), s.topic[3:])
	}
}

// It may be the truth: then it is late by an overlap.
func TestTheSecondChangeOfASecondIsPublishedAnOverlapLater(t *testing.T) {
	s := openShop(t, 3, nil)
	s.rows[1] = s.row(1, 0, 2)
	s.poll()
	second := s.row(1, 0, 3)
	s.rows[1] = second
	s.poll()
	if len(s.topic) != 4 {
		t.Errorf("it was published at once: %+v", s.topic)
	}
	for range 2 {
		s.now = s.now.Add(shopOverlap)
		s.poll()
	}
	s.wants(second)
	if s.mark.Trouble != nil {
		t.Errorf("trouble: %+v", s.mark.Trouble)
	}
}

// A run that ends takes the memory of a row that is deferred along. So it does not end before it knows.
func TestRunOnceIsNotUpToDateWhileARowIsDeferred(t *testing.T) {
	s := openShop(t, 3, func(c *Config) { c.Eager = true })
	s.rows[1] = s.row(1, 0, 2)
	s.poll()
	s.takeOver()
	s.rows[1] = s.row(1, 0, 3)
	s.now = s.now.Add(time.Second)
	moment := s.now
	for s.mark.AsOf < moment {
		if s.poll(); s.mark.AsOf < moment && (s.mark.Trouble == nil || s.mark.Trouble.Until == nil) {
			t.Fatalf("nobody says why and for how long: %+v", s.mark.Trouble)
		}
		if s.now = s.now.Add(10 * time.Second); s.now.Sub(moment) > 3*shopOverlap {
			t.Fatalf("it does not end: %+v", s.mark.Trouble)
		}
	}
	s.wants(s.rows[1])
}

// Of what settled had passed before a replay every copy of the service shows the same. More such rows than
// are deferred at once would hold the replay for hours.
func TestAReplayPublishesAtOnceWhatChangedWithoutItsUpdatedAt(t *testing.T) {
	s := openShop(t, 5, nil)
	for id := range int64(5) {
		s.rows[id] = s.row(id, -time.Hour, 2)
	}
	to := schemas.InstantOf(noon.Add(-2 * time.Hour))
	s.ask(watermark.Request{Kind: watermark.Reset, To: &to})
	s.poll() // accepts it
	s.poll()
	for _, row := range s.rows {
		s.wants(row)
	}
	if len(s.topic) != 10 || s.mark.Replay != nil {
		t.Errorf("%d records of 5 rows and a replay of them, %+v", len(s.topic), s.mark.Replay)
	}
}

// The watermark says why settled stands still, once, and again when that is over.
func TestTheWatermarkSaysThatSettlingIsDelayedAndThatItIsNoMore(t *testing.T) {
	s := openShop(t, 3, nil)
	publish, written := s.publishes, 0
	s.publishes = func(ctx context.Context, tx watermark.Transaction) error {
		written++
		return publish(ctx, tx)
	}
	s.rows[1] = s.row(1, 0, 2)
	s.poll()
	s.takeOver()
	s.poll()
	s.rows[1] = s.row(1, -shopOverlap/2, 1)
	written = 0
	for range 9 {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	told := s.mark.Trouble
	if told == nil || !told.Publishes || !strings.Contains(told.Why, "1 row came back older") ||
		told.Since != schemas.InstantOf(noon) || told.Until == nil || told.Until.Sub(told.Since) != shopOverlap {
		t.Errorf("trouble: %+v", told)
	}
	if written != 1 {
		t.Errorf("%d watermarks within nine seconds", written)
	}
	s.takeOver() // who meets the row anew waits for it anew, and does not say that it has just begun
	s.poll()
	if again := s.mark.Trouble; again == nil || again.Since != told.Since || again.Until == nil ||
		again.Until.Sub(s.now) != shopOverlap {
		t.Errorf("trouble after a restart at %s: %+v", s.now, again)
	}
	s.rows[1] = s.row(1, 0, 2)
	s.now = s.now.Add(idleWrite)
	if s.poll(); s.mark.Trouble != nil {
		t.Errorf("trouble still: %+v", s.mark.Trouble)
	}
}

// A pass that does not meet again what had no room must not settle it: a cheap one over REST, or one that
// passes over a day which was closed behind another that was not closed.
func TestARowWithoutRoomIsNotSettledByAPassThatDoesNotMeetIt(t *testing.T) {
	s := openShop(t, 1, nil)
	s.rows[1], s.rows[2] = s.row(1, 0, 1), s.row(2, 0, 1)
	s.poll()
	s.poller.state.deferred.most = 1
	back := map[int64]row{1: s.row(1, -shopOverlap/2, 2), 2: s.row(2, -shopOverlap/2, 2)}
	s.rows[1], s.rows[2] = back[1], back[2]
	s.now = s.now.Add(2 * shopOverlap)
	s.settles = s.row(0, -shopOverlap, 0).updatedAt // a day before is not closed
	s.poll()
	s.settles, s.partly = 0, true
	delete(s.rows, 1)
	delete(s.rows, 2)
	for range 3 {
		s.poll()
		s.now = s.now.Add(shopOverlap)
		if settled := s.mark.Settled; settled > back[1].updatedAt {
			t.Fatalf("settled is %s, and rows of %s wait for their turn", settled, back[1].updatedAt)
		}
	}
	s.rows, s.partly = maps.Clone(back), false
	for range 6 {
		s.poll()
		s.now = s.now.Add(shopOverlap)
	}
	s.wants(back[1])
	s.wants(back[2])
	if s.mark.Settled < s.row(0, shopOverlap, 0).updatedAt || s.troubled() != "" {
		t.Errorf("settled is %s still: %s", s.mark.Settled, s.troubled())
	}
}
