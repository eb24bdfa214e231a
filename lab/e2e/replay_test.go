package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// A reset publishes every row since its time again, by the running instance, and no key steps back.
func TestAResetPublishesEveryRowSinceItsTimeAgain(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: smallShop(6)})
	s.fake.StartTraffic(40)
	s.spawn("run")
	s.changes(150)
	since := time.Now().Add(-400 * 24 * time.Hour).Truncate(24 * time.Hour).UTC()
	before := map[string]map[int64]int64{} // the last offset of each id
	for _, resource := range []string{storefake.Orders, storefake.Products} {
		before[resource] = lastOffsets(s.topic(resource))
	}
	if out, errs, code := s.do("watermark", "reset", "orders", "products", "--to", since.Format(time.DateOnly),
		"--yes"); code != 0 {
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
	t.Parallel()
	furtherScenario(t)
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

// reset asks for a replay of the resources.
func (s *stack) reset(to string, resources ...string) {
	s.t.Helper()
	if out, errs, code := s.do(append([]string{"watermark", "reset", "--to", to, "--yes"},
		resources...)...); code != 0 {
		s.t.Fatalf("reset: exit status %d\n%s\n%s", code, out, tail(errs, 20))
	}
}

// replayed waits until every row has a record behind the offsets in before, and looks whether a key stepped
// back.
func (s *stack) replayed(before map[string]map[int64]int64) {
	s.t.Helper()
	for resource, last := range before {
		var records []record
		eventually(s.t, "every row of "+resource+" is sent again", func() (bool, string) {
			records = s.topic(resource)
			now, left := lastOffsets(records), 0
			for id := range s.fake.Rows(resource) {
				if last[id] > 0 && now[id] <= last[id] {
					left++
				}
			}
			return left == 0, fmt.Sprint(left, " left")
		})
		at := map[int64]time.Time{}
		for _, r := range records {
			if r.updatedAt.Before(at[r.id]) {
				s.t.Errorf("%s %d steps back from %s to %s at offset %d", resource, r.id, at[r.id], r.updatedAt, r.offset)
			}
			at[r.id] = r.updatedAt
		}
	}
}

func (s *stack) offsets() map[string]map[int64]int64 {
	s.t.Helper()
	all := map[string]map[int64]int64{}
	for _, resource := range storefake.Names() {
		all[resource] = lastOffsets(s.topic(resource))
	}
	return all
}

// All resources, to a time before the first row; again at once; and again while that is running, with another
// owner in the middle; all under traffic.
func TestResetsOfAllResourcesTwiceAndWhileOneRunsSendEveryRowAgain(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(60)})
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	p.isReady()
	before, mark := s.offsets(), s.mark(storefake.Orders)
	s.reset("1999-12-31", "--all")
	s.reset("1999-12-31", "--all")
	s.replayed(before)
	s.done(storefake.Orders, mark)

	before, mark = s.offsets(), s.mark(storefake.Orders)
	s.reset("2000-01-01T00:00:00Z", "orders", "users")
	s.accepted(storefake.Orders, mark)
	s.reset("2001-01-01T00:00:00Z", "orders", "users") // later, so it takes nothing back
	p.kill()
	p = s.spawn("run")
	s.replayed(map[string]map[int64]int64{storefake.Orders: before[storefake.Orders],
		storefake.Users: before[storefake.Users]})
	s.fake.StartTraffic(0)
	s.converge()
	eventually(t, "no replay is left", func() (bool, string) {
		_, status := p.get("/status.json")
		return !strings.Contains(status, `"replaying"`), status
	})
	settled := s.offsets()
	s.shop(10)
	s.converge()
	for resource, last := range s.offsets() {
		again := 0
		for id, at := range last {
			if at > settled[resource][id] {
				again++
			}
		}
		if again > 60 {
			t.Errorf("%s: %d rows were sent again after the replay", resource, again)
		}
	}
}

func TestAResetToTheFutureIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, setup{noPostgres: true, fake: smallShop(61)})
	s.expect(2, []string{"a time that is over"}, "watermark", "reset", "--all", "--yes", "--to",
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	s.expect(2, []string{"wibble"}, "watermark", "reset", "wibble", "--yes", "--to", "2026-01-01")
	s.expect(2, []string{"tomorrow"}, "watermark", "reset", "orders", "--yes", "--to", "tomorrow")
}

// Whenever its owner dies, each row of the part is sent once more, by whichever owner, and no other row is.
func TestAReplayOfAPartSendsEachRowOnceThoughItsOwnerIsKilled(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: smallShop(8)})
	first := s.spawn("run")
	s.converge()
	before := s.offsets()
	for _, resource := range []string{storefake.Orders, storefake.Products} {
		if out, errs, code := s.do("replay", resource, "--from", "2000-01-01", "--yes"); code != 0 {
			t.Fatalf("exit status %d\n%s\n%s", code, out, errs)
		}
	}
	eventually(t, "a replay has begun", func() (bool, string) {
		out, _, _ := s.do("replay", "list")
		return strings.Contains(out, "in hand") || strings.Contains(out, "published again"), out
	})
	first.kill()
	s.spawn("run")
	eventually(t, "the replays are over", func() (bool, string) {
		out, _, _ := s.do("replay", "list")
		return strings.Count(out, "published again: ") == 2, out
	})
	for resource, records := range s.converge() {
		inOrderBut(t, resource, records, s.asked(resource, records))
	}
	for resource, last := range before {
		want := 0
		if resource == storefake.Orders || resource == storefake.Products {
			want = 1
		}
		again := map[int64]int{}
		for _, r := range s.topic(resource) {
			if r.offset >= last[r.id] {
				again[r.id]++
			}
		}
		for id := range s.fake.Rows(resource) {
			if again[id] != want {
				t.Errorf("%s %d is sent %d times, want %d", resource, id, again[id], want)
			}
		}
	}
}

// A kill right after the command, and one after the owner has accepted it. The owner asks the service slowly,
// so that each replay is in hand for a while.
func TestACancelEndsReplaysThoughTheirOwnerIsKilled(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	fake := smallShop(9)
	fake.Readings.MaxPage = 20
	s := start(t, setup{noPostgres: true, yaml: quick, fake: fake})
	p := s.spawn("run")
	s.converge()
	for _, c := range []struct {
		resource string
		replay   []string
		accepted bool // before the kill
	}{
		{storefake.Users, []string{"watermark", "reset", "--to", "2000-01-01"}, false},
		{storefake.Products, []string{"watermark", "reset", "--to", "2000-01-01"}, true},
		{storefake.Orders, []string{"replay", "--from", "2000-01-01"}, false},
		{storefake.Shipments, []string{"replay", "--from", "2000-01-01"}, true},
	} {
		p.kill()
		p = s.spawn("run", "--set", "store.max_requests_per_second=10")
		s.expect(0, nil, append(c.replay, c.resource, "--yes")...)
		eventually(t, "the replay of "+c.resource+" is in hand", func() (bool, string) {
			m := s.mark(c.resource)
			return m.Replay != nil || len(m.Parts) > 0, fmt.Sprintf("%+v", m.Mark)
		})
		before := s.mark(c.resource)
		s.expect(0, nil, "replay", "cancel", c.resource, "--yes")
		if c.accepted {
			s.accepted(c.resource, before)
		}
		p.kill()
		p = s.spawn("run")
		s.replaysEnd(c.resource)
		replays := s.asked(c.resource, s.topic(c.resource))
		if last := replays[len(replays)-1]; !last.Cancelled() {
			t.Errorf("%s: the replay ended with %+v", c.resource, last.Result)
		}
	}
	s.shop(20)
	for resource, records := range s.converge() {
		inOrderBut(t, resource, records, s.asked(resource, records))
	}
}

// One is accepted before the kill, and one is asked for while nobody owns the resource.
func TestAPauseIsInForceThoughItsOwnerIsKilled(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: smallShop(10)})
	p := s.spawn("run")
	s.converge()
	before := s.mark(storefake.Orders)
	s.expect(0, nil, "pause", storefake.Orders, "--yes")
	s.accepted(storefake.Orders, before)
	p.kill()
	s.expect(0, nil, "pause", storefake.Users, "--yes")
	s.shop(60)
	for range 2 {
		p = s.spawn("run")
		for _, resource := range storefake.Names() {
			eventually(t, resource+" has its next owner, who publishes unless it is paused", func() (bool, string) {
				m, found := s.mark(resource), s.differences(resource, s.topic(resource))
				paused := resource == storefake.Orders || resource == storefake.Users
				return m.Instance != before.Instance && paused == (m.Pause != nil) && (paused || len(found) == 0),
					fmt.Sprintf("%+v, %s", m.Mark, summary(found))
			})
		}
		before = s.mark(storefake.Orders)
		p.kill()
	}
	s.expect(0, nil, "resume", "--all", "--yes")
	s.spawn("run")
	for resource, records := range s.converge() {
		s.replaysEnd(resource)
		inOrderBut(t, resource, records, s.asked(resource, records))
	}
}
