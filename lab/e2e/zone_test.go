package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// inAnotherZone is a shop in a service that begins its days eight hours before UTC, with users alone. Each
// user changes in the middle of a day, so no row shows the zone to polls. If one is unchanged, the first user
// of the evening is as it was created.
func inAnotherZone(t *testing.T, oneUnchanged bool) *stack {
	t.Helper()
	fake := smallShop(71)
	fake.Readings.DayOffset = 8 * time.Hour
	s := onlyUsers(t, fake)
	for _, id := range s.ids(storefake.Users) {
		err := s.fake.Update(context.Background(), storefake.Users, id, func(row storefake.Row) {
			created := row.Time("created_at").UTC()
			row["updated_at"] = created.Truncate(24 * time.Hour).Add(36*time.Hour + time.Duration(id)*time.Second)
			if oneUnchanged && inTheEvening(created) {
				oneUnchanged, row["updated_at"] = false, created
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// onlyUsers is a shop over REST that has users alone. A sweep deletes what the service does not have.
func onlyUsers(t *testing.T, fake storefake.Config) *stack {
	t.Helper()
	yaml := "\nsweep: {deletes: tombstone}\nresources:\n"
	for _, name := range storefake.Names() {
		if name == storefake.Users {
			yaml += "  users: {interval: 200ms, overlap: 2s}\n"
		} else {
			yaml += "  " + name + ": {enabled: false}\n"
		}
	}
	return start(t, setup{yaml: yaml, fake: fake, noPostgres: true})
}

// allThere waits until the topic has all users.
func (s *stack) allThere() {
	s.t.Helper()
	eventually(s.t, "all users are there", func() (bool, string) {
		n := len(s.newest(storefake.Users))
		return n == len(s.ids(storefake.Users)), fmt.Sprint(n)
	})
}

// inTheEvening is when a user of UTC's day is one of the next day there.
func inTheEvening(created time.Time) bool { return created.Hour() >= 17 && created.Hour() <= 22 }

// eveningUsers are n users that were created in the evening.
func (s *stack) eveningUsers(n int) (ids []int64) {
	s.t.Helper()
	for _, id := range s.ids(storefake.Users) {
		if len(ids) < n && inTheEvening(s.fake.Rows(storefake.Users)[id].Time("created_at").UTC()) {
			ids = append(ids, id)
		}
	}
	if len(ids) < n {
		s.t.Fatalf("the shop has %d users of the evening, the test needs %d", len(ids), n)
	}
	return ids
}

// The process that compares knows nothing of the service's zone, and rows that it looks up are on days of
// that.
func TestVerifyAndRowFindAUserThatIsMissingWhateverZoneTheServiceCutsDaysIn(t *testing.T) {
	t.Parallel()
	s := inAnotherZone(t, false)
	p := s.spawn("run")
	s.allThere()
	missing := s.eveningUsers(3)
	for _, id := range missing {
		s.forge(storefake.Users, id, nil)
	}
	if got := fmt.Sprint(s.verify(3, storefake.Users).differing()["users missing"]); got != fmt.Sprint(missing) {
		t.Errorf("verify names %s as missing, want %v", got, missing)
	}
	if out, errs, code := s.do("row", "users", fmt.Sprint(missing[0])); code != 3 {
		t.Errorf("row: exit status %d\n%s\n%s", code, out, errs)
	}
	p.stop()
}

// Rows change without a new updated_at. A sweep publishes them. It must not take them for deleted.
func TestASweepRepairsUsersWhateverZoneTheServiceCutsDaysIn(t *testing.T) {
	t.Parallel()
	s := inAnotherZone(t, false)
	p := s.spawn("run")
	s.allThere()
	stale := s.eveningUsers(12)
	for _, id := range stale {
		s.unstamped(storefake.Users, id, func(row storefake.Row) { row["city"] = "Nirgends" })
	}
	if out, errs, code := s.do("sweep", "users", "--yes", "--wait"); code != 0 {
		t.Errorf("sweep: exit status %d\n%s\n%s", code, out, errs)
	}
	s.repaired(storefake.Users)
	s.verify(0, storefake.Users)
	p.stop()
}

// Somebody asks by mistake for a user to be erased, whom the service has.
func TestAnEraseLeavesAUserThatTheServiceHasWhateverZoneItCutsDaysIn(t *testing.T) {
	t.Parallel()
	s := inAnotherZone(t, true)
	p := s.spawn("run")
	s.allThere()
	id := s.eveningUsers(1)[0]
	s.do("erase", "users", fmt.Sprint(id), "--yes", "--wait")
	if r := s.newest(storefake.Users)[id]; r == nil || r.Value == nil {
		t.Errorf("user %d, which the service has, was erased", id)
	}
	p.stop()
}
