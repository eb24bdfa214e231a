package poller

import "testing"

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
