package storefake_test

import (
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

func TestTrafficBehavesLikeAShop(t *testing.T) {
	s := start(t, storefake.Config{Start: begin, Speed: 3600, WholeSeconds: true, Seed: 9,
		Size: storefake.Size{Users: 300, Orders: 800, Products: 80}})
	before := map[string]map[int64]storefake.Row{}
	for _, name := range storefake.Names() {
		before[name] = s.Rows(name)
	}
	for range 4000 {
		started := s.Clock().Now()
		was := s.Changes()
		if err := s.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Clock().Now().Before(started) || s.Changes() < was {
			t.Fatal("time or the number of changes went back")
		}
	}
	checkInvariants(t, s)
	seen := map[string]bool{}
	for id, row := range s.Rows(storefake.Orders) {
		old, existed := before[storefake.Orders][id]
		if !existed {
			seen["placed"] = true
			continue
		}
		if from, to := old["status"].(string), row["status"].(string); from != to {
			seen[from+" to "+to] = true
			if !row.Time("updated_at").After(old.Time("updated_at")) {
				t.Errorf("order %d changed and its updated_at did not", id)
			}
		}
	}
	for _, want := range []string{"placed", "Processing to Shipped", "Processing to Cancelled",
		"Shipped to Complete", "Complete to Returned"} {
		if !seen[want] {
			t.Errorf("in 4000 changes no order was %s; seen: %v", want, seen)
		}
	}
	if seen["Cancelled to Shipped"] || seen["Returned to Complete"] || seen["Complete to Processing"] {
		t.Errorf("orders moved as in no shop: %v", seen)
	}
	if !differ(before[storefake.Users], s.Rows(storefake.Users), "city") ||
		!differ(before[storefake.Products], s.Rows(storefake.Products), "retail_price") {
		t.Error("nobody moved house, or no price changed")
	}
}

func differ(a, b map[int64]storefake.Row, field string) bool {
	for id := range a {
		if b[id] != nil && a[id][field] != b[id][field] {
			return true
		}
	}
	return false
}

func TestTrafficStopsAndStartsAgain(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	f.StartTraffic(5000)
	waitForChanges(t, f, 200)
	f.Quiesce()
	was := f.Changes()
	if err := f.Touch(t.Context(), storefake.Users, 1); err != nil {
		t.Fatal(err)
	}
	if n := f.Changes() - was; n != 1 {
		t.Errorf("%d changes after traffic was stopped, expected the one made here", n)
	}
	f.StartTraffic(5000)
	waitForChanges(t, f, 200)
	f.Quiesce()
	checkInvariants(t, f)
	if n, err := f.TrafficErrors(); n != 0 {
		t.Errorf("%d of traffic's transactions failed: %v", n, err)
	}
}

// Some transactions linger, so rows appear in another order than they are stamped in.
func TestCommitsComeInAnotherOrderThanTheirStamps(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	f.StartTraffic(2000)
	defer f.Quiesce()
	known, newest, deadline := map[int64]time.Time{}, time.Time{}, time.Now().Add(30*time.Second)
	for time.Now().Before(deadline) {
		round := newest
		for id, row := range f.Rows(storefake.Orders) {
			at := row.Time("updated_at")
			if !known[id].Equal(at) && !newest.IsZero() && at.Before(newest) {
				return // it appeared after a row with a later stamp had
			}
			known[id] = at
			if at.After(round) {
				round = at
			}
		}
		newest = round
	}
	t.Error("for 30 s every row appeared in the order of the stamps")
}

func TestIDsOfDeletedRowsAreGivenOutAgain(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Readings: storefake.Readings{Deletes: .5, UsedIDs: 1}})
	gone, back := map[int64]bool{}, 0
	for range 400 {
		before := f.Rows(storefake.Orders)
		if err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := f.Rows(storefake.Orders)
		for id := range before {
			gone[id] = gone[id] || after[id] == nil
		}
		for id, row := range after {
			if before[id] == nil && gone[id] {
				back++
				if !row.Time("created_at").Equal(row.Time("updated_at")) {
					t.Errorf("order %d came back, and is no new row: %v", id, row)
				}
			}
		}
	}
	if back == 0 {
		t.Errorf("of %d deleted orders no id came back", len(gone))
	}
}

func TestDeletesAreASharedPartOfTraffic(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Readings: storefake.Readings{Deletes: 1}})
	rows := func() (n int) {
		for _, name := range storefake.Names() {
			n += f.Count(name)
		}
		return n
	}
	was := rows()
	for range 50 {
		if err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := was - rows(); n != 50 {
		t.Errorf("%d rows are gone, expected 50", n)
	}
}
