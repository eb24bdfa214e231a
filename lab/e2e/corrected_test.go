package e2e

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// The service corrects dates without a new stamp that a poll would meet. Then a row is on no day that its
// record in the topic gives, and a row without a created_at is on no day of a full reading either.

// corrected changes a row of the service, and no more of it than change does.
func (s *stack) corrected(id int64, change func(storefake.Row)) {
	s.t.Helper()
	err := s.fake.Do(s.t.Context(), func(tx *storefake.Tx) error {
		return tx.Alter(s.t.Context(), storefake.Users, id, change)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// movesTo gives a row these dates; nil for created_at: it has none any more.
func movesTo(created any, updated time.Time) func(storefake.Row) {
	return func(row storefake.Row) { row["created_at"], row["updated_at"] = created, updated }
}

// keeps fails the test if the topic lacks one of these users, or has a tombstone.
func (s *stack) keeps(ids ...int64) {
	s.t.Helper()
	newest := s.newest(storefake.Users)
	for _, id := range ids {
		if r := newest[id]; r == nil || r.Value == nil {
			s.t.Errorf("user %d, which the service has, is gone from the topic", id)
		}
	}
}

var longAgo = time.Date(2021, 3, 3, 12, 0, 0, 0, time.UTC)

func TestAnEraseLeavesUsersWhoseDatesWereCorrected(t *testing.T) {
	t.Parallel()
	s := onlyUsers(t, smallShop(201))
	p := s.spawn("run")
	s.allThere()
	s.corrected(5, movesTo(longAgo, longAgo.AddDate(0, 2, 0)))
	s.corrected(6, movesTo(nil, longAgo))
	s.expect(1, nil, "erase", "users", "5", "6", "--yes", "--wait")
	s.keeps(5, 6)
	p.stop()
}

func TestASweepLeavesAUserWithoutACreatedAtWhoseUpdatedAtWasCorrected(t *testing.T) {
	t.Parallel()
	s := onlyUsers(t, smallShop(202))
	p := s.spawn("run")
	s.allThere()
	s.corrected(6, movesTo(nil, longAgo))
	s.expect(4, nil, "sweep", "users", "--yes", "--wait") // one of 200 rows has a dead letter
	s.keeps(6)
	if letters, _ := s.letters(); len(letters) != 1 {
		t.Errorf("%d dead letters, want one of the user that cannot be published", len(letters))
	}
	if extra := s.verify(3, storefake.Users).differing()["users extra"]; len(extra) > 0 {
		t.Errorf("verify calls %v extra, which the service has", extra)
	}
	p.stop()
}

// While a sweep reads, the service corrects the dates of sixty users by one statement: those of the first
// half get the last day, those of the last half the first one. All are in the service all the time.
func TestASweepLeavesUsersWhoseDatesAreCorrectedWhileItReads(t *testing.T) {
	t.Parallel()
	fake := smallShop(203)
	fake.Readings.MaxPage = 4 // one pass is not enough
	s := onlyUsers(t, fake)
	p := s.spawn("run")
	s.allThere()
	rows, byDay := s.fake.Rows(storefake.Users), s.ids(storefake.Users)
	created := func(id int64) time.Time { return rows[id].Time("created_at") }
	slices.SortFunc(byDay, func(a, b int64) int { return created(a).Compare(created(b)) })
	first, last := created(byDay[0]), created(byDay[180])
	var once sync.Once
	var asked atomic.Int64
	s.fake.OnRequest(func(r *http.Request) {
		q := r.URL.Query()
		byCreated := q.Has("created_from") || q.Has("created_to")
		if !byCreated || q.Has("updated_from") || q.Has("updated_to") || asked.Add(1) < 30 {
			return
		}
		once.Do(func() {
			err := s.fake.Do(t.Context(), func(tx *storefake.Tx) error {
				for i, id := range slices.Concat(byDay[20:50], byDay[130:160]) {
					to := last
					if i >= 30 {
						to = first
					}
					err := tx.Alter(t.Context(), storefake.Users, id, movesTo(to, to.Add(24*time.Hour)))
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	})
	s.expect(0, nil, "sweep", "users", "--yes", "--wait")
	s.keeps(byDay...)
	p.stop()
}
