package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/schemas"
)

func (s *scene) publishTwoOrders() {
	s.t.Helper()
	s.Publish("orders", []schemas.Record{s.Order(1, "Shipped"), s.Order(2, "Complete")}, []int64{3}, nil)
}

func TestTailPrintsUpsertsAndTombstonesDecoded(t *testing.T) {
	s := newScene(t)
	s.do("tail", "orders", "-n", "1").expect(t, exitFailed,
		"topic store.orders does not exist: `storestream run` creates it")
	s.publishTwoOrders()
	s.do("tail", "orders", "-n", "3").
		expect(t, exitDone, "orders/2", "orders/3  gone",
			`2026-11-20T09:30:00.000Z  orders/1  {"id":1,"user_id":7,"status":"Shipped","total_amount":49.5,`)

	c := s.do("tail", "orders", "-n", "3", "-o", "json").expect(t, exitDone)
	found := map[int64]bool{}
	for line := range strings.Lines(c.stdout.String()) {
		var r struct {
			Resource string
			ID       int64
			Value    *struct{ Status string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Resource != "orders" {
			t.Errorf("line %q: %v", line, err)
		}
		found[r.ID] = r.Value != nil
	}
	if len(found) != 3 || !found[1] || !found[2] || found[3] {
		t.Errorf("found %v, expected two rows and a tombstone", found)
	}
}

func TestTailPrintsTheLastRecordsAndFollowsWhereThatIsAsked(t *testing.T) {
	s := newScene(t)
	s.publishTwoOrders()
	c := s.do("tail", "orders", "-n", "2").expect(t, exitDone, "orders/3  gone") // it has the time of writing
	if n := strings.Count(c.stdout.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, c.stdout)
	}
	out, interrupt := s.start("tail", "orders", "-f", "-n", "1")
	says := func(id string) {
		t.Helper()
		stage.Eventually(t, id, func() bool { return strings.Contains(out.stdout.String(), id) })
	}
	says("orders/3")
	s.Publish("orders", []schemas.Record{s.Order(4, "Shipped")}, nil, nil)
	says("orders/4")
	interrupt().expect(t, exitDone)
}

func TestTailMasksPersonalFieldsWhereThatIsAsked(t *testing.T) {
	s := newScene(t)
	row, reject := schemas.NewRowParser(s.Schemas.Get("users")).Parse([]byte(`{"id":7,` +
		`"email":"ana@example.org","age":34,"country":"Brasil",` +
		`"created_at":"2026-11-20T09:30:00Z","updated_at":"2026-11-20T09:30:00Z"}`))
	if reject != nil {
		t.Fatal(reject.Err)
	}
	s.Publish("users", []schemas.Record{row}, nil, nil)
	for _, form := range []string{"", "json"} {
		c := s.do("tail", "users", "-n", "1", "--mask", "-o", form).
			expect(t, exitDone, `"email":"***","age":"***"`, `"country":"Brasil"`)
		if text := c.stdout.String(); strings.Contains(text, "ana@") || strings.Contains(text, "34") {
			t.Errorf("-o %q: %s", form, text)
		}
	}
	s.do("tail", "users", "-n", "1").expect(t, exitDone, `"email":"ana@example.org"`)
}

// Partitions are read side by side, and each brings many records at once.
func TestTailOfABusyTopicPrintsAsManyLinesAsWereAskedFor(t *testing.T) {
	s := newScene(t)
	var rows []schemas.Record
	for id := range int64(40) {
		rows = append(rows, s.Order(id, "Shipped"))
	}
	s.Publish("orders", rows, nil, nil)
	for _, form := range []string{"", "json"} {
		for range 5 {
			c := s.do("tail", "orders", "-n", "5", "--output="+form).expect(t, exitDone)
			if got := strings.Count(c.stdout.String(), "\n"); got != 5 {
				t.Errorf("-n 5 -o %q prints %d lines:\n%s", form, got, c.stdout)
			}
		}
	}
}

func TestInterruptingATailIsHowItEnds(t *testing.T) {
	s := newScene(t)
	s.publishTwoOrders()
	out, interrupt := s.start("tail", "orders", "--from-beginning")
	stage.Eventually(t, "the three records", func() bool {
		return strings.Count(out.stdout.String(),
			"\n") == 3
	})
	interrupt().expect(t, exitDone)
}

// Every record would fail by it: an error for each, and exit status 0, would say that the topic is broken.
func TestTailEndsWhereTheRegistryDoesNotAnswer(t *testing.T) {
	s := newScene(t)
	s.publishTwoOrders()
	if err := s.Registry.Stop(); err != nil {
		t.Fatal(err)
	}
	c := s.do("tail", "orders", "-n", "3").expect(t, exitFailed,
		"reading topic store.orders", "cannot serve this now: `run` tries it again")
	if n := strings.Count(c.stderr.String(), "\n"); n != 1 {
		t.Errorf("%d lines on stderr:\n%s", n, c.stderr)
	}
}
