package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
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

func TestARetryIsAskedForAndFollowed(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped")}, nil, nil)
	out, _, wait := s.run("dead-letters", "retry", "orders", "7", "8", "--yes", "--wait")
	stage.Eventually(t, "the request is written", func() bool {
		return strings.Contains(out.stdout.String(), "orders: asked for a retry")
	})
	asked := s.requestFor("orders")
	if asked.Kind != watermark.Retries || !slices.Equal(asked.Rows, []int64{7, 8}) {
		t.Errorf("asked %+v", asked)
	}
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.Request, w.RequestUID = asked.ID, asked.UID
		w.Parts = []watermark.Part{watermark.PartOf(asked, schemas.MinInstant, []int64{2})}
	})
	s.do("watermark", "list").expect(t, exitLate, "looking up rows with dead letters")
	s.do("requests").expect(t, exitDone, "retry of 7, 8", "in hand: looking up rows with dead letters")
	s.Publish("orders", nil, nil, func(w *watermark.Watermark) {
		w.ChangePart(func(p *watermark.Part) { p.Rows = 1 })
		w.End(w.Parts[0].Ended(schemas.MinInstant.Add(time.Second), "1 row cannot be published yet"))
		w.Parts = nil
	})
	wait().expect(t, exitDifferent, "orders: published: 1 row, in 1.0s. Left: 1 row cannot be published yet")
	s.do("dead-letters", "retry", "orders", "x", "--yes").expect(t, exitUsage, `id "x": expected a whole number`)
	s.do("dead-letters", "retry", "--yes").expect(t, exitUsage, "expected a resource, and 100 ids at most")
}
