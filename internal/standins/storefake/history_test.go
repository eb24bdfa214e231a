package storefake_test

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

var begin = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

func TestTheSameSeedGivesTheSameHistoryAndTheSameChanges(t *testing.T) {
	rows := func(seed uint64, users int) map[string]map[int64]storefake.Row {
		s := start(t, storefake.Config{Start: begin, Speed: 1e-9, Seed: seed,
			Size: storefake.Size{Users: users, Orders: 300, Products: 50}})
		for range 300 {
			if err := s.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		all := map[string]map[int64]storefake.Row{}
		for _, name := range storefake.Names() {
			all[name] = s.Rows(name)
		}
		return all
	}
	first := fmt.Sprint(rows(1, 100))
	if second := fmt.Sprint(rows(1, 100)); first != second {
		t.Error("one seed gave two histories")
	}
	if other := fmt.Sprint(rows(2, 100)); first == other {
		t.Error("two seeds gave one history")
	}
}

// The shapes of the public data set that the service is modelled on.
func TestTheHistoryLooksLikeTheRealSet(t *testing.T) {
	s := start(t, storefake.Config{Start: begin, Speed: 1e-9, Seed: 1,
		Size: storefake.Size{Users: 10000, Orders: 12500, Products: 2900}})
	orders, users := s.Rows(storefake.Orders), s.Rows(storefake.Users)
	near(t, "state", shares(orders, "status"), map[string]float64{"Shipped": .30, "Complete": .25,
		"Processing": .20, "Cancelled": .15, "Returned": .10})
	near(t, "traffic source", shares(users, "traffic_source"),
		map[string]float64{"Search": .70, "Organic": .15, "Facebook": .06, "Email": .05, "Display": .04})
	near(t, "gender", shares(users, "gender"), map[string]float64{"M": .5, "F": .5})
	perOrder := map[int64]int{}
	for _, row := range s.Rows(storefake.OrderItems) {
		perOrder[row["order_id"].(int64)]++
	}
	items := map[string]float64{}
	for _, n := range perOrder {
		items[fmt.Sprint(n)] += 1 / float64(len(perOrder))
	}
	near(t, "items an order", items, map[string]float64{"1": .70, "2": .20, "3": .05, "4": .05})
	departments := slices.Sorted(maps.Keys(shares(s.Rows(storefake.Products), "department")))
	if n := len(shares(s.Rows(storefake.Products), "category")); n != 26 ||
		!slices.Equal(departments, []string{"Men", "Women"}) {
		t.Errorf("%d categories and departments %v, expected 26 categories, Men and Women", n, departments)
	}
	emails, ages := map[string]bool{}, map[int64]bool{}
	for _, row := range users {
		email := row["email"].(string)
		emails[email], ages[row["age"].(int64)] = true, true
		if domain := email[strings.Index(email, "@")+1:]; !slices.Contains([]string{"example.com", "example.org",
			"example.net"}, domain) {
			t.Fatalf("%s might be somebody's", email)
		}
	}
	if lowest, highest := slices.Min(slices.Collect(maps.Keys(ages))),
		slices.Max(slices.Collect(maps.Keys(ages))); lowest != 12 || highest != 70 {
		t.Errorf("ages %d to %d, expected 12 to 70", lowest, highest)
	}
	if len(emails) == len(users) {
		t.Error("no address repeats")
	}
	countries, cities := shares(users, "country"), shares(users, "city")
	if cities["null"] == 0 || cities["São Paulo"] == 0 || countries["Spain"] == 0 || countries["España"] == 0 {
		t.Error(`expected a city "null", one outside of ASCII, and a country under two names`)
	}
	checkMoney(t, s.Rows(storefake.Products))
	checkInvariants(t, s)
	checkJourneys(t, s)
}

func shares(rows map[int64]storefake.Row, field string) map[string]float64 {
	out := map[string]float64{}
	for _, row := range rows {
		out[fmt.Sprint(row[field])] += 1 / float64(len(rows))
	}
	return out
}

func near(t *testing.T, what string, got, want map[string]float64) {
	t.Helper()
	for name, share := range want {
		if math.Abs(got[name]-share) > .02 {
			t.Errorf("%s %s: %.3f of the rows, expected about %.2f", what, name, got[name], share)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d values, expected %d", what, len(got), len(want))
	}
}

// checkMoney looks for the forms of the real set: whole, clean, and dust of both lengths; and that a decimal
// of 18 places holds each.
func checkMoney(t *testing.T, products map[int64]storefake.Row) {
	t.Helper()
	whole, clean, dust := 0, 0, 0
	for _, row := range products {
		_, fraction, _ := strings.Cut(string(row["retail_price"].(storefake.Money)), ".")
		switch n := len(fraction); {
		case n == 0:
			whole++
		case n <= 2:
			clean++
		case n <= 18:
			dust++
		default:
			t.Errorf("price %v has %d places", row["retail_price"], n)
		}
	}
	if least := len(products) / 10; whole < least || clean < least || dust < least {
		t.Errorf("%d whole prices, %d clean and %d with dust: expected many of each", whole, clean, dust)
	}
}

// checkInvariants are true at every moment, of history and of traffic.
func checkInvariants(t *testing.T, s *storefake.Fake) {
	t.Helper()
	now := s.Clock().Now()
	totals := map[int64]*big.Rat{}
	for id, row := range s.Rows(storefake.OrderItems) {
		price, amount := rat(row["sale_price"]), rat(row["amount"])
		quantity := row["quantity"].(int64)
		if quantity < 1 || quantity > 4 || new(big.Rat).Mul(price, big.NewRat(quantity, 1)).Cmp(amount) != 0 {
			t.Fatalf("item %d: %v times %d is not %v", id, row["sale_price"], quantity, row["amount"])
		}
		order := row["order_id"].(int64)
		if totals[order] == nil {
			totals[order] = new(big.Rat)
		}
		totals[order].Add(totals[order], amount)
	}
	orders := s.Rows(storefake.Orders)
	for id, row := range orders {
		if totals[id] == nil || rat(row["total_amount"]).Cmp(totals[id]) != 0 {
			t.Fatalf("order %d: total %v is not what its items come to", id, row["total_amount"])
		}
	}
	for id, row := range s.Rows(storefake.Shipments) {
		status := orders[row["order_id"].(int64)]["status"].(string)
		want := map[string]string{storefake.Processing: "---", storefake.Cancelled: "---", storefake.Shipped: "s--",
			storefake.Complete: "sd-", storefake.Returned: "sdr"}
		got := ""
		for field, letter := range []string{"s", "d", "r"} {
			if row[[]string{"shipped_at", "delivered_at", "returned_at"}[field]] == nil {
				letter = "-"
			}
			got += letter
		}
		if got != want[status] {
			t.Fatalf("shipment %d of a %s order: %s, expected %s", id, status, got, want[status])
		}
	}
	for _, name := range storefake.Names() {
		for id, row := range s.Rows(name) {
			if row.Time("updated_at").Before(row.Time("created_at")) || row.Time("updated_at").After(now) {
				t.Fatalf("%s %d: created %v, updated %v, now %v", name, id, row["created_at"], row["updated_at"], now)
			}
		}
	}
}

// checkJourneys are true of history: shipped 0 to 3 days after the order, delivered 0 to 5 after that,
// returned 0 to 3 after that.
func checkJourneys(t *testing.T, s *storefake.Fake) {
	t.Helper()
	for id, row := range s.Rows(storefake.Shipments) {
		last := row.Time("created_at")
		for _, step := range []struct {
			field string
			most  time.Duration
		}{{"shipped_at", 3 * 24 * time.Hour}, {"delivered_at", 5 * 24 * time.Hour},
			{"returned_at", 3 * 24 * time.Hour}} {
			if at, ok := row[step.field].(time.Time); ok {
				if d := at.Sub(last); d < 0 || d > step.most {
					t.Fatalf("shipment %d: %s %v after the step before", id, step.field, d)
				}
				last = at
			}
		}
	}
}

func rat(money any) *big.Rat {
	r, _ := new(big.Rat).SetString(string(money.(storefake.Money)))
	return r
}
