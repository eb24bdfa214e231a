package producer

import (
	"slices"
	"testing"
)

// Two releases share a group during an upgrade. In both a place has to stand for the same resource, or each
// resource has two owners there, which fence each other. So a new one comes after these.
func TestAResourceKeepsItsPlaceInTheGroup(t *testing.T) {
	want := []string{"orders", "order_items", "products", "users", "shipments"}
	if got := shared([]int32{0, 1, 2, 3, 4}); !slices.Equal(got, want) {
		t.Errorf("they stand for %v, expected %v", got, want)
	}
	if got := shared([]int32{-1, 1000}); got != nil {
		t.Errorf("partitions of another release stand for %v", got)
	}
}
