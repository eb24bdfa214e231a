// Package deploy holds what people run storestream with. Its tests keep that in step with the program.
package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/storestream/storestream/internal/metrics"
)

// dashboard is the part of Grafana's model that the tests look at.
type dashboard struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("grafana/storestream.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// exported is the names of all metrics that storestream has, with at least one series.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	reg := prometheus.NewRegistry()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	reg.MustRegister(collectors.NewGoCollector(), process)
	set := metrics.New(reg)
	orders, kafka := set.Resource("orders"), set.Kafka
	orders.Lag.Since(orders.Lag.Start().Add(1))
	orders.UnknownFields("discount").Inc()
	for _, v := range []*prometheus.CounterVec{
		kafka.Connects, kafka.Disconnects, kafka.ConnectErrors, kafka.WriteBytes, kafka.ReadBytes,
		kafka.Throttled, kafka.RequestErrors, kafka.ProduceRecords, kafka.ProduceBytes,
	} {
		v.WithLabelValues("x")
	}
	kafka.RequestDuration.WithLabelValues("x")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	return names
}

var metricName = regexp.MustCompile(`\b(storestream|process|go)_[a-z0-9_]+`)

func TestTheDashboardAndTheAlertsSpeakOfMetricsThatThereAre(t *testing.T) {
	names := exported(t)
	alerts, err := os.ReadFile("prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(alerts)}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			texts = append(texts, target.Expr)
		}
	}
	asked := map[string]bool{}
	for _, text := range texts {
		for _, name := range metricName.FindAllString(text, -1) {
			if name = strings.TrimSuffix(name, "_bucket"); !names[name] {
				t.Errorf("there is no metric %s", name)
			}
			asked[name] = true
		}
	}
	for name := range names {
		unseen := strings.HasSuffix(name, "connects_total") || strings.HasSuffix(name, "throttled_seconds_total")
		if strings.HasPrefix(name, "storestream_") && !asked[name] && !unseen {
			t.Errorf("nothing shows %s", name)
		}
	}
}

func TestTheDashboardsPanelsLieBesideEachOther(t *testing.T) {
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d, %q, has another's id, no title, or nothing to show", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies over %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
