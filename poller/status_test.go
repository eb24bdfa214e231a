package poller

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestAResourceIsHeldByTheMetricWhileItsPollsEndInAHold(t *testing.T) {
	s := openShop(t, 0, nil)
	for _, step := range []struct {
		err  error
		held float64
	}{
		{errors.New("the database is down"), 0},
		{fmt.Errorf("read orders: %w", &HoldError{What: "poll.memory is full"}), 1},
		{nil, 0},
	} {
		s.poller.board.change(func(s *Status) { s.Err = step.err })
		if got := testutil.ToFloat64(s.metrics.Resource("orders").Held); got != step.held {
			t.Errorf("%v: %v, expected %v", step.err, got, step.held)
		}
	}
}
