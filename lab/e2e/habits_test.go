package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// habits are a service of one stack, with what its users report of such services.
type habits struct {
	stack    storefake.Stack
	readings func(*storefake.Readings)
	refuses  []string // see storefake.ParseRefusal
	// No answer holds row id of resource while the refusals last, and the reason that settling is delayed has
	// these words. Without a resource all rows can be read.
	resource string
	id       int64
	says     []string
	args     []string // of storestream
}

// One value is NaN, which json.dumps refuses to write: each page that holds the row is a 500.
func TestWithTheHabitsOfPython(t *testing.T) {
	t.Parallel()
	withTheHabits(t, habits{stack: storefake.Python, refuses: []string{"users/row:7=500"},
		resource: storefake.Users, id: 7, says: []string{"/store-users", "500"}})
}

// Elasticsearch refuses what lies past its result window, and a page above some length takes too long.
func TestWithTheHabitsOfNode(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	withTheHabits(t, habits{stack: storefake.Node,
		readings: func(r *storefake.Readings) { r.MaxPage = 100 },
		refuses:  []string{"orders/past:200=400", "order_items/past:300=500", "users/rows:50=silence"},
		args:     []string{"--set", "store.request_timeout=1s"}})
}

// A view divides by zero for one row, a gateway ends requests that take too long, LocalDate.plusDays
// overflows.
func TestWithTheHabitsOfJava(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	withTheHabits(t, habits{stack: storefake.Java,
		refuses:  []string{"orders/row:5=500", "shipments/rows:60=504", "after:9998=500"},
		resource: storefake.Orders, id: 5, says: []string{"/store-orders", "500"}})
}

// SQL Server's datetime begins in 1753, and DateTime.AddDays ends in 9999.
func TestWithTheHabitsOfDotnet(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	withTheHabits(t, habits{stack: storefake.Dotnet,
		refuses: []string{"before:1753=400", "after:9998=500", "products/rows:40=504"}})
}

// The rule before_or_equal:today, a guard against deep pages, the throttle middleware, and a key that was
// revoked is a 403.
func TestWithTheHabitsOfPHP(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	withTheHabits(t, habits{stack: storefake.PHP, readings: func(r *storefake.Readings) {
		r.MaxPage, r.Habits.KeyStatus = 100, 403
		r.Limit = storefake.Limit{PerSecond: 200, Burst: 40}
	}, refuses: []string{"future:0=422", "orders/past:200=403", "products/row:3=500"},
		resource: storefake.Products, id: 3, says: []string{"/store-products", "500"}})
}

// withTheHabits follows a service with these habits from its first load on. All rows that it shows are
// published, and settling is delayed for the resource of a row that it does not show, and for no other. Once
// it shows that row too, all is up to date and verify agrees.
func withTheHabits(t *testing.T, h habits) {
	t.Helper()
	fake := smallShop(uint64(100 + len(h.stack)))
	// Java leaves out seconds that are 0, and with fractions they hardly ever are.
	fake.Readings.Nulls, fake.Readings.Habits.Fractions = .05, h.stack != storefake.Java
	if err := h.stack.Apply(&fake.Readings); err != nil {
		t.Fatal(err)
	}
	if h.readings != nil {
		h.readings(&fake.Readings)
	}
	for _, text := range h.refuses {
		refusal, err := storefake.ParseRefusal(text)
		if err != nil {
			t.Fatal(err)
		}
		fake.Readings.Refusals = append(fake.Readings.Refusals, refusal)
	}
	s := start(t, setup{noPostgres: true, yaml: quick, fake: fake})
	s.fake.StartTraffic(20)
	p := s.spawn(append([]string{"run"}, h.args...)...)
	s.changes(100)
	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	s.showAllBut(h)
	s.areAllUpToDateBut(h)

	s.fake.RevokeKey()
	s.shop(30) // rows go on to be published while the refusals last
	s.showAllBut(h)

	err := s.fake.SetReadings(func(r *storefake.Readings) { r.Refusals = nil })
	if err != nil {
		t.Fatal(err)
	}
	s.quiet()
	s.areAllUpToDateBut(habits{})
	p.isReady()
	if left, _ := s.letters(); len(left) > 0 {
		t.Errorf("%d dead letters, of rows that only look different", len(left))
	}
	s.expect(0, []string{"Identical"}, "verify")
}

// showAllBut waits until every topic equals the service, apart from the row that cannot be read.
func (s *stack) showAllBut(h habits) {
	s.t.Helper()
	for _, resource := range storefake.Names() {
		eventually(s.t, "the topic of "+resource+" equals what can be read", func() (bool, string) {
			found := slices.DeleteFunc(s.differences(resource, s.topic(resource)), func(text string) bool {
				var name string
				var id int64
				_, err := fmt.Sscanf(text, "%s %d", &name, &id)
				return err == nil && name == h.resource && id == h.id
			})
			return len(found) == 0, summary(found)
		})
	}
}

// areAllUpToDateBut waits until `watermark list` says that settling is delayed for the resource of the row
// that cannot be read, or that its first load is not finished, and why, and that all others are up to date.
func (s *stack) areAllUpToDateBut(h habits) {
	s.t.Helper()
	eventually(s.t, "what cannot be read is told of its own resource alone", func() (bool, string) {
		list, _, _ := s.do("watermark", "list", "-o", "json")
		var all []judgement
		if err := json.Unmarshal([]byte(list), &all); err != nil || len(all) != len(storefake.Names()) {
			return false, list
		}
		for _, v := range all {
			states := []string{"following"}
			if v.Resource == h.resource {
				states = []string{"settling_delayed", "first_load"}
			}
			lacks := func(word string) bool { return !strings.Contains(v.Why, word) }
			if !slices.Contains(states, v.State) || v.Resource == h.resource && slices.ContainsFunc(h.says, lacks) {
				return false, fmt.Sprintf("%+v", v)
			}
		}
		return true, list
	})
}
