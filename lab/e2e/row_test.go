package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// rowReport is what `row -o json` says.
type rowReport struct {
	Source, Verdict, Error string
	Differs, Notes         []string
	InTopic                struct {
		State string
		Value map[string]any
	} `json:"in_topic"`
	InService struct {
		State, Error string
		Value        map[string]any
	} `json:"in_service"`
}

// row runs the command and returns what it says.
func (s *stack) row(code int, resource string, id int64) (r rowReport) {
	s.t.Helper()
	out, errs, got := s.do("row", resource, fmt.Sprint(id), "-o", "json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || got != code {
		s.t.Fatalf("row %s %d: exit status %d, want %d, %v:\n%s\n%s", resource, id, got, code, err, out, errs)
	}
	return r
}

// One row is looked up in the way in which its resource is read, beside an instance that polls.
func TestRowSaysOfOneRowWhetherItIsRightAndWhyNot(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick + "sweep: {interval: 0s}", fake: smallShop(35)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	orders, users := s.ids(storefake.Orders), s.ids(storefake.Users)
	for resource, source := range map[string]string{storefake.Orders: "postgres", storefake.Shipments: "rest"} {
		for _, id := range s.ids(resource)[:3] {
			r := s.row(0, resource, id)
			if r.Source != source || r.Verdict != "identical" || r.InTopic.State != "row" ||
				fmt.Sprint(r.InTopic.Value) != fmt.Sprint(r.InService.Value) || len(r.Notes) != 0 {
				t.Errorf("%s %d: %+v", resource, id, r)
			}
		}
	}

	s.unstamped(storefake.Orders, orders[2],
		func(row storefake.Row) { row["total_amount"] = storefake.Money("4711.11") })
	r := s.row(3, storefake.Orders, orders[2])
	if !slices.Equal(r.Differs, []string{"total_amount"}) || r.InService.Value["total_amount"] != 4711.11 {
		t.Errorf("an order whose updated_at was left alone: %+v", r)
	}
	s.forge(storefake.Orders, orders[3], nil)
	s.forge(storefake.Users, users[3], []byte("not Avro at all"))
	if r := s.row(3, storefake.Orders, orders[3]); r.InTopic.State != "tombstone" || r.InService.State != "row" {
		t.Errorf("an order that somebody else deleted: %+v", r)
	}
	if r := s.row(3, storefake.Users, users[3]); r.InTopic.State != "unreadable" || r.InService.State != "row" {
		t.Errorf("a user that somebody else wrote: %+v", r)
	}
	if err := s.fake.Delete(context.Background(), storefake.Orders, orders[4]); err != nil {
		t.Fatal(err)
	}
	if r := s.row(3, storefake.Orders, orders[4]); r.InTopic.State != "row" || r.InService.State != "none" {
		t.Errorf("an order that was deleted: %+v", r)
	}
	if _, errs, code := s.do("sweep", storefake.Orders, storefake.Users, "--wait", "--yes"); code != 0 {
		t.Fatalf("the sweep: %s", errs)
	}
	for _, id := range orders[2:5] {
		s.row(0, storefake.Orders, id)
	}
	s.row(0, storefake.Users, users[3])

	if err := s.pgbouncer.Stop(); err != nil {
		t.Fatal(err)
	}
	r = s.row(1, storefake.Orders, orders[5])
	if r.Verdict != "unknown" || r.InTopic.Value == nil || r.InService.State != "unknown" ||
		!strings.Contains(r.Error, "connection refused") {
		t.Errorf("without the database: %+v", r)
	}
}
