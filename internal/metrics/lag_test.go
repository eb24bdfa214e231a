package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestLagGrowsBetweenScrapesWithoutAnyPass(t *testing.T) {
	reg := prometheus.NewRegistry()
	set := New(reg)
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	orders := set.Resource("orders")
	orders.Lag.now = func() time.Time { return now }

	if n := testutil.CollectAndCount(orders.Lag); n != 0 {
		t.Fatalf("%d samples before the first pass, expected none: a zero would say that the resource is fresh", n)
	}
	orders.Lag.Since(now.Add(-2 * time.Second))
	if got := testutil.ToFloat64(orders.Lag); got != 2 {
		t.Fatalf("lag %v s, expected 2", got)
	}
	now = now.Add(time.Hour) // nothing happens for an hour
	if got := testutil.ToFloat64(orders.Lag); got != 3602 {
		t.Fatalf("lag %v s, expected 3602", got)
	}
	orders.Lag.Forget()
	if n := testutil.CollectAndCount(orders.Lag); n != 0 {
		t.Fatalf("%d samples after another instance took over, expected none", n)
	}
}
