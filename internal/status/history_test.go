package status

import "testing"

func TestTheHistoryIsAnHourOfEveryResourceWithGapsWhereNothingIsKnown(t *testing.T) {
	h := History{RowsPerSecond: map[string][]*float64{}}
	var before []*float64
	for i := range 400 {
		if i == 399 {
			before = h.RowsPerSecond["orders"]
		}
		h.add("orders", float64(i), i != 399)
		if i >= 380 { // enabled later
			h.add("users", 7, true)
		}
	}
	orders, users := h.RowsPerSecond["orders"], h.RowsPerSecond["users"]
	if len(orders) != 360 || len(users) != 20 {
		t.Fatalf("%d and %d points, expected an hour, and what there is", len(orders), len(users))
	}
	if *orders[0] != 40 || *orders[358] != 398 || orders[359] != nil {
		t.Error("the points of orders are others")
	}
	if *before[0] != 39 || *before[359] != 398 {
		t.Error("points that were shown have changed")
	}
}
