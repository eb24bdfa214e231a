package poller

import (
	"testing"

	"github.com/storestream/storestream/internal/rowset"
)

// A takeover knows no texts, so its first pass hands on every value. Neither publishes a row again.
func TestRowsWhoseTextsAreKnownAreRepeats(t *testing.T) {
	s := openShop(t, 0, nil)
	s.texts = true
	for id := range int64(10) {
		s.rows[id] = s.row(id, 0, 1)
	}
	s.poll()
	for i, want := range []int{10, 20, 20, 30} {
		if i == 2 {
			s.takeOver()
		}
		if s.poll(); s.same != want || len(s.topic) != 10 {
			t.Fatalf("poll %d: %d rows came without a value, expected %d; the topic has %d", i, s.same, want,
				len(s.topic))
		}
	}
	s.rows[3] = s.row(3, 0, 2)
	s.now = s.now.Add(2 * shopOverlap)
	for range 2 {
		s.poll()
		s.now = s.now.Add(shopOverlap)
	}
	s.wants(s.rows[3])
}

// Its text does not change, and nothing but the version that is published makes it known.
func TestAnOlderStateWithAKnownTextIsPublishedAfterAnOverlap(t *testing.T) {
	s := openShop(t, 3, nil)
	s.texts = true
	older := s.row(1, -shopOverlap/2, 1)
	s.rows[1] = older
	s.poll()
	s.rows[1] = s.row(1, 0, 2)
	s.poll()
	s.rows[1] = older // a correction
	for range 3 {
		s.poll()
		s.now = s.now.Add(shopOverlap / 2)
	}
	s.poll()
	s.wants(older)
}

// A replica lags. Its row was compared with the version that a batch in the poller's hands replaced.
func TestARowWithoutItsValueIsDeferredIfAnotherVersionWasPublishedMeanwhile(t *testing.T) {
	d := newDeciding(t, false, 100)
	before, after := d.shop.row(1, 0, 1), d.shop.row(1, 0, 2)
	before.updatedAt -= 5_000_000
	d.decides(Batch{Settled: before.updatedAt}, before)
	found := []rowset.Noted{{ID: 1}}
	d.dedup.find(found)
	d.decides(Batch{Settled: before.updatedAt}, after)
	d.decides(Batch{Settled: after.updatedAt, Same: found})
	if n := len(d.published()); n != 2 || len(d.deferred.rows) != 1 || d.mark.Settled > before.updatedAt {
		t.Errorf("%d published, %d deferred, settled %s", n, len(d.deferred.rows), d.mark.Settled)
	}
}
