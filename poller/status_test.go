package poller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
)

func TestAResourceIsHeldByTheMetricWhileItsPollsEndInAHold(t *testing.T) {
	m := metrics.New(prometheus.NewRegistry()).Resource("orders")
	b := newBoard(&Config{Now: time.Now, Clock: wallClock, Metrics: m, Watermark: watermark.New("orders")})
	for _, step := range []struct {
		err  error
		held float64
	}{
		{errors.New("the database is down"), 0},
		{fmt.Errorf("read orders: %w", &HoldError{What: "poll.memory is full"}), 1},
		{nil, 0},
	} {
		b.change(func(s *Status) { s.Err = step.err })
		if got := testutil.ToFloat64(m.Held); got != step.held {
			t.Errorf("%v: %v, expected %v", step.err, got, step.held)
		}
	}
}
