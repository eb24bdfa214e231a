package poller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
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
func TestSettledStaysBehindARowThatIsHeldBack(t *testing.T) {
	s := openShop(t, 3, nil)
	s.rows[1] = s.row(1, 0, 2)
	s.poll()
	s.rows[1] = s.row(1, -shopOverlap/2, 1) // a correction
	for range 3 {
		s.poll()
		s.now = s.now.Add(shopOverlap / 4)
	}
	if s.mark.Settled > s.rows[1].updatedAt {
		t.Errorf("settled is %s, the row held back is of %s", s.mark.Settled, s.rows[1].updatedAt)
	}
	s.takeOver()
	for range 3 {
		s.poll()
		s.now = s.now.Add(shopOverlap)
	}
	s.wants(s.rows[1])
}

// More rows go back at once than are kept: the rest is told, holds settled, and gets its turn.
func TestRowsBeyondThoseHeldBackAtOnceWaitForTheirTurnAndAreTold(t *testing.T) {
	const rows = 2*maxHeldBack + 100
	s := newShop(t, noon)
	s.config.MaxRows = func() int { return rows }
	s.config.Publish = func(_ context.Context, tx watermark.Transaction) error { return s.commit(tx) }
	back := make(map[int64]row, rows)
	for id := range int64(rows) {
		s.rows[id] = s.row(id, 0, 1)
		back[id] = s.row(id, -shopOverlap/2-time.Duration(id)*time.Millisecond, 2)
	}
	s.takeOver()
	s.poll()
	s.rows = back
	s.poll()
	held := s.poller.Status().Held
	for _, says := range []string{"10000 rows came back older", "10100 more", "again from 2026-11-20T12:01"} {
		if !strings.Contains(held, says) {
			t.Errorf("held says %q, expected %q", held, says)
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
	if held := s.poller.Status().Held; held != "" {
		t.Errorf("held says %q still", held)
	}
}
