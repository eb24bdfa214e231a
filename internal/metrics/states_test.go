package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// gauges returns the value of each gauge of a resource. The ones with a label kind have it in their names.
func gauges(t *testing.T, r health.Resource) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	New(reg).Render(func() []health.Resource { return []health.Resource{r} })
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "storestream_")
			if labels := m.GetLabel(); len(labels) > 1 {
				name += "/" + labels[0].GetValue()
			}
			found[name] = m.GetGauge().GetValue()
		}
	}
	return found
}

// The gauges decide nothing: each is 1 in the state of its name alone.
func TestTheGaugesAreTheStateThatThePageShows(t *testing.T) {
	for _, state := range []health.State{health.Following, health.SettlingDelayed, health.Replaying,
		health.Paused, health.Resuming, health.FirstLoad, health.Behind, health.Failing, health.Blocked,
		health.Incomplete, health.Stalled, health.Unowned, health.Unreadable, health.Unknown} {
		got := gauges(t, health.Resource{Name: "orders", State: state})
		for _, gauge := range []health.State{health.SettlingDelayed, health.Blocked, health.Incomplete,
			health.Paused, health.Stalled} {
			if (got[string(gauge)] == 1) != (gauge == state) {
				t.Errorf("in the state %s the gauge %s is %v", state, gauge, got[string(gauge)])
			}
		}
	}
}

func TestTheGaugesShowTheFactsOfTheWatermark(t *testing.T) {
	at := schemas.InstantOf(time.Unix(1_700_000_000, 0))
	mark := watermark.New("orders")
	for _, step := range []struct {
		change func()
		want   map[string]float64
	}{
		{func() {}, map[string]float64{"settled_timestamp_seconds": 0, "swept_timestamp_seconds": 0,
			"first_load": 0, "sweep_left": 0, "sweep_found/stale": 0, "owned": 0}},
		{func() { mark.Written, mark.Settled = at, at },
			map[string]float64{"first_load": 1, "settled_timestamp_seconds": 1.7e9}},
		{func() { mark.AsOf, mark.Sweep = at, &watermark.Sweep{At: at.Add(time.Second)} },
			map[string]float64{"first_load": 0, "swept_timestamp_seconds": 1.7e9 + 1}},
		{func() {
			mark.LastSweep = at.Add(time.Hour)
			mark.Swept = &watermark.Swept{Missing: 1, Stale: 2, Extra: 3, Left: "too many"}
		}, map[string]float64{"swept_timestamp_seconds": 1.7e9 + 3600, "sweep_left": 1,
			"sweep_found/missing": 1, "sweep_found/stale": 2, "sweep_found/extra": 3}},
	} {
		step.change()
		got := gauges(t, health.New(mark, at))
		for name, want := range step.want {
			if got[name] != want {
				t.Errorf("%s is %v, expected %v", name, got[name], want)
			}
		}
	}
	r := health.New(mark, at)
	r.DeadLetters, r.IntervalSeconds = []watermark.DeadLetters{{Rows: 2}, {Rows: 5}}, 30
	r.Polling, r.DedupBytes = true, 77
	got := fmt.Sprint(gauges(t, r))
	for _, want := range []string{"dead_letters_in_topic:7", "poll_interval_seconds:30", "owned:1",
		"dedup_bytes:77"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}

func TestTheLagGrowsFromScrapeToScrapeAndIsMissingIfAnotherInstanceReportsIt(t *testing.T) {
	since := schemas.InstantOf(time.Now().Add(-time.Hour))
	c := states{func() []health.Resource { return []health.Resource{{Name: "orders", LagSince: &since}} }}
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	last := 3599.
	for range 2 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "storestream_freshness_lag_seconds" {
				lag := f.GetMetric()[0].GetGauge().GetValue()
				if lag <= last {
					t.Errorf("lag %v after %v", lag, last)
				}
				last = lag
			}
		}
	}
	elsewhere := states{func() []health.Resource { return []health.Resource{{Name: "orders"}} }}
	if testutil.CollectAndCount(elsewhere, "storestream_freshness_lag_seconds") != 0 {
		t.Error("both report the lag, and a zero would say that the resource is fresh")
	}
}
