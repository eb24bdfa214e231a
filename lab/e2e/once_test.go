package e2e

import (
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// The main job: everything that the service has, once, equal field by field.
func TestRunOncePublishesEveryRowOfTheServiceAndExits(t *testing.T) {
	t.Parallel()
	size := storefake.Size{Users: 10_000, Orders: 100_000, Products: 5_000}
	if !all {
		size = storefake.Size{Users: 1000, Orders: 10_000, Products: 500}
	}
	s := start(t, setup{fake: storefake.Config{Seed: 1, Size: size}})
	out, errs, code := s.do("run", "--once")
	if code != 0 {
		t.Fatalf("exit status %d\n%s\n%s", code, out, tail(errs, 40))
	}
	for _, resource := range storefake.Names() {
		records := s.topic(resource)
		if found := s.differences(resource, records); len(found) > 0 {
			t.Errorf("%s differs: %s", resource, summary(found))
		}
		inOrder(t, resource, records)
		t.Logf("%s: %d rows equal, field by field", resource, len(records))
	}
	// Nobody polls it now.
	if list, _, code := s.do("watermark", "list"); code != 4 || !strings.Contains(list, "order_items") {
		t.Errorf("watermark list: exit status %d\n%s", code, list)
	}

	// A second run, on a machine without any state, publishes nothing again.
	before := map[string]int{}
	for _, resource := range storefake.Names() {
		before[resource] = len(s.topic(resource))
	}
	if _, errs, code := s.do("run", "--once"); code != 0 {
		t.Fatalf("the second run: exit status %d\n%s", code, tail(errs, 40))
	}
	for _, resource := range storefake.Names() {
		if now := len(s.topic(resource)); now != before[resource] {
			t.Errorf("%s: the second run published %d records again", resource, now-before[resource])
		}
	}
}

func TestWithoutADatabaseOrdersComeOverRESTAndAreEqual(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{noPostgres: true, fake: storefake.Config{Seed: 2,
		Size: storefake.Size{Users: 300, Orders: 3000, Products: 200}}})
	if out, errs, code := s.do("run", "--once"); code != 0 {
		t.Fatalf("exit status %d\n%s\n%s", code, out, tail(errs, 40))
	}
	for _, resource := range storefake.Names() {
		records := s.topic(resource)
		if found := s.differences(resource, records); len(found) > 0 {
			t.Errorf("%s differs: %s", resource, summary(found))
		}
		inOrder(t, resource, records)
	}
}

// An empty answer means no rows yet. storestream does not wait for some, and publishes them when they come.
func TestAnEmptyServiceIsPublishedAsNothingAndFollowed(t *testing.T) {
	t.Parallel()
	s := start(t, setup{yaml: quick, fake: storefake.Config{Seed: 10}})
	if out, errs, code := s.do("run", "--once"); code != 0 {
		t.Fatalf("exit status %d\n%s\n%s", code, out, tail(errs, 40))
	}
	s.spawn("run")
	if _, err := s.fake.Insert(t.Context(), storefake.Orders,
		storefake.Row{"user_id": int64(1), "status": storefake.Shipped,
			"total_amount": storefake.Money("12.30")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.fake.Insert(t.Context(), storefake.Products,
		storefake.Row{"name": "Socks", "retail_price": storefake.Money("4")}); err != nil {
		t.Fatal(err)
	}
	for resource, records := range s.converge() {
		inOrder(t, resource, records)
	}
}
