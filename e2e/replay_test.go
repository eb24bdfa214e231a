package e2e

import (
	"testing"
	"time"

	"github.com/storestream/storestream/storefake"
)

// A reset publishes every row since its time again, by the running instance, and no key steps back (K16).
func TestAResetPublishesEveryRowSinceItsTimeAgain(t *testing.T) {
	s := start(t, setup{yaml: quick, fake: smallShop(6)})
	s.fake.StartTraffic(40)
	s.spawn("run")
	s.changes(150)
	since := time.Now().Add(-400 * 24 * time.Hour).Truncate(24 * time.Hour).UTC()
	before := map[string]map[int64]int64{} // the last offset of each id
	for _, resource := range []string{storefake.Orders, storefake.Products} {
		before[resource] = lastOffsets(s.topic(resource))
	}
	if out, errs, code := s.do("watermark", "reset", "orders", "products", "--to", since.Format(time.DateOnly), "--yes"); code != 0 {
		t.Fatalf("reset: exit status %d\n%s\n%s", code, out, errs)
	}
	s.changes(100)
	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	s.converge()
	for resource, last := range before {
		eventually(t, "every row of "+resource+" since the reset's time is sent again", func() (bool, string) {
			now := lastOffsets(s.topic(resource))
			for id, row := range s.fake.Rows(resource) {
				if at := row.Time("updated_at"); !at.Before(since) && last[id] > 0 && now[id] <= last[id] {
					return false, time.Now().String()
				}
			}
			return true, ""
		})
		steps := map[int64]time.Time{}
		for _, r := range s.topic(resource) {
			if r.updatedAt.Before(steps[r.id]) {
				t.Errorf("%s %d steps back at offset %d", resource, r.id, r.offset)
			}
			steps[r.id] = r.updatedAt
		}
	}
	for _, resource := range []string{storefake.Users, storefake.Shipments} {
		inOrder(t, resource, s.topic(resource)) // not asked for, not repeated
	}
}

func lastOffsets(records []record) map[int64]int64 {
	last := map[int64]int64{}
	for _, r := range records {
		last[r.id] = r.offset + 1
	}
	return last
}

func TestAResetIsDoneOnceByTheNextOwnerWhenTheOwnerDies(t *testing.T) {
	s := start(t, setup{yaml: quick, fake: smallShop(7)})
	first := s.spawn("run")
	s.converge()
	first.kill()
	before := lastOffsets(s.topic(storefake.Orders))
	if out, errs, code := s.do("watermark", "reset", "orders", "--to", "2000-01-01", "--yes"); code != 0 {
		t.Fatalf("reset: exit status %d\n%s\n%s", code, out, errs)
	}
	again := func() (bool, string) {
		now := lastOffsets(s.topic(storefake.Orders))
		for id, at := range before {
			if now[id] <= at {
				return false, ""
			}
		}
		return true, ""
	}
	second := s.spawn("run")
	eventually(t, "the next owner replays", again)
	second.stop()
	published := len(s.topic(storefake.Orders))
	s.spawn("run")
	s.shop(20)
	for resource, records := range s.converge() {
		if resource == storefake.Orders && len(records) > published+60 {
			t.Errorf("the replay was made again: %d records before, %d after", published, len(records))
		}
	}
}
