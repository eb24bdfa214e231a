package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

func TestDeadLettersAreListedByReasonAndShownByThePolicies(t *testing.T) {
	s, fake := loaded(t)
	s.do("dead-letters", "list").expect(t, exitDone, "There are no dead letters.")
	users := idsOf(fake, storefake.Users)
	for _, id := range users[:7] {
		fake.Garble(storefake.Users, id, storefake.BadTimestamp)
	}
	s.Settings = append(s.Settings, "kafka.topic_prefix=other.")
	s.do("run", "--once").expect(t, exitLate)

	c := s.do("dead-letters", "list", "-o", "json").expect(t, exitDone)
	var all []struct {
		Resource, Field, Error string
		Rows                   int
		IDs                    []string
		First, Latest          time.Time
	}
	if err := json.Unmarshal([]byte(c.stdout.String()), &all); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, id := range users[:7] {
		ids = append(ids, rowArg(id))
	}
	if len(all) != 1 {
		t.Fatalf("%d reasons, expected one:\n%s", len(all), c.stdout)
	}
	slices.Sort(ids)
	slices.Sort(all[0].IDs)
	if l := all[0]; l.Resource != "users" || l.Field != "updated_at" || l.Rows != 7 || l.Error == "" ||
		!slices.Equal(l.IDs, ids) || l.First.IsZero() || l.Latest.Before(l.First) {
		t.Errorf("%+v, expected %v", l, ids)
	}
	table := s.do("dead-letters", "list", "users").expect(t, exitDone, "users", "updated_at", " ...  ").stdout
	if n := strings.Count(table.String(), "\n"); n != 2 {
		t.Errorf("the table has %d lines, expected its header and one reason:\n%s", n, table)
	}
	s.do("dead-letters", "list", "orders").expect(t, exitDone, "There are no dead letters.")

	email := fake.Rows(storefake.Users)[users[0]]["email"].(string)
	shown := s.do("dead-letters", "show", "users", rowArg(users[0])).expect(t, exitDone,
		"dead letter  partition 0", ": updated_at: ", `"updated_at":`).stdout.String()
	if strings.Contains(shown, email) {
		t.Errorf("a personal field is shown, which is masked unless dead_letters.rows is full:\n%s", shown)
	}
	for _, args := range [][]string{{rowArg(users[0]), "--mask"}, {rowArg(users[0]), "--mask", "-o", "json"}} {
		c := s.do(append([]string{"dead-letters", "show", "users"}, args...)...).expect(t, exitDone)
		if strings.Contains(c.stdout.String(), `"updated_at":`) {
			t.Errorf("--mask shows the row:\n%s", c.stdout)
		}
	}
	s.do("dead-letters", "show", "users", rowArg(users[9])).expect(t, exitDone, "has no dead letter")
	s.do("dead-letters", "show", "users").expect(t, exitUsage, "expected a resource and an id")
}
