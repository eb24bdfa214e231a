package storefake_test

import (
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

var still = storefake.Config{Start: begin, Speed: 1e-9, Size: small, WholeSeconds: true}

// prices asks n times for a product's price.
func prices(t *testing.T, f *storefake.Fake, n int) (read []string) {
	t.Helper()
	for range n {
		for _, row := range get(t, f, "/store-products?"+everything).Data {
			if row["id"] == 1. {
				price, _ := row["retail_price"].(string)
				read = append(read, price)
			}
		}
	}
	return read
}

func price(t *testing.T, f *storefake.Fake, price storefake.Money) {
	t.Helper()
	if err := f.Update(t.Context(), storefake.Products, 1,
		func(r storefake.Row) { r["retail_price"] = price }); err != nil {
		t.Fatal(err)
	}
}

// Two changes within one second are seen in any order, again and again, until all copies have both.
func TestReplicasShowARowNowAsItIsNowAsItWas(t *testing.T) {
	c := still
	c.Readings = storefake.Readings{Replicas: 3, ReplicaLag: 20 * time.Second, MoneyForm: storefake.MoneyString}
	f := start(t, c)
	prices(t, f, 20) // the copies are made when they are first asked
	price(t, f, "1")
	price(t, f, "2")
	read := prices(t, f, 40)
	if !slices.Contains(read, "2.00") || slices.Contains(read, "1.00") {
		t.Errorf("right after two changes: %v, expected the last one in some answers, and the first in none", read)
	}
	if n := len(slices.Compact(slices.Clone(read))); n < 5 {
		t.Errorf("%v: expected the answers to change from copy to copy", read)
	}
	f.Clock().Advance(5 * time.Second)
	price(t, f, "3")
	f.Clock().Advance(15 * time.Second)
	price(t, f, "3") // the last copy has the first two changes now, the one in between the third as well
	read = prices(t, f, 40)
	slices.Sort(read)
	if got := slices.Compact(read); !slices.Equal(got, []string{"2.00", "3.00"}) {
		t.Errorf("%v, expected 2 from the oldest copy, and 3 from the others", got)
	}
	f.Clock().Advance(-time.Hour)
	f.Clock().Advance(20 * time.Second)
	read = prices(t, f, 40)
	slices.Sort(read)
	if got := slices.Compact(read); !slices.Equal(got, []string{"3.00"}) {
		t.Errorf("%v, expected every copy to have caught up, though the clock was moved back", got)
	}
}

// Every copy becomes what the rows are, whatever is done to them.
func TestReplicasBecomeTheRows(t *testing.T) {
	c := still
	c.Readings = storefake.Readings{Replicas: 4, ReplicaLag: time.Minute, Deletes: .2, UsedIDs: .5}
	f := start(t, c)
	prices(t, f, 20)
	for n := range 300 {
		if err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n%50 == 0 {
			if _, _, err := f.BulkUpdate(t.Context(), storefake.Orders, 1, 100); err != nil {
				t.Fatal(err)
			}
		}
		if n == 200 {
			f.Clock().Advance(10 * time.Second)
		}
	}
	differs := func() (n int) {
		for range 20 {
			a := get(t, f, "/store-orders?"+everything)
			for _, row := range a.Data {
				was, there := f.Row(storefake.Orders, int64(row["id"].(float64)))
				if !there || was["status"] != row["status"] ||
					was.Time("updated_at").Format("2006-01-02T15:04:05Z") != row["updated_at"] {
					n++
				}
			}
			if len(a.Data) != f.Count(storefake.Orders) {
				n++
			}
		}
		return n
	}
	if differs() == 0 {
		t.Error("no copy is behind")
	}
	f.Clock().Advance(time.Minute)
	if n := differs(); n != 0 {
		t.Errorf("%d rows differ though every copy has had time to catch up", n)
	}
	set(t, f, func(*storefake.Readings) {})
	if _, _, err := f.BulkUpdate(t.Context(), storefake.Orders, 1, 100); err != nil {
		t.Fatal(err)
	}
	if n := differs(); n != 0 {
		t.Errorf("%d rows differ without replicas", n)
	}
}
