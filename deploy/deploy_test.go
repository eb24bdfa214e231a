// Package deploy holds what people run storestream with. Its tests keep that in step with the program.
package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.yaml.in/yaml/v3"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/schemas"
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
	set.Render(func() []health.Resource {
		return []health.Resource{{Name: "orders", LagSince: new(schemas.Instant)}}
	})
	orders.UnknownFields([]string{"discount"})
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

// expectation is one of promtool's tests: which alerts of a name fire at a time.
type expectation struct {
	Alert string        `yaml:"alertname"`
	At    time.Duration `yaml:"eval_time"`
	Fires []struct {
		Labels map[string]string `yaml:"exp_labels"`
	} `yaml:"exp_alerts"`
}

// staysAndClears says whether an alert of that name is expected to fire, to fire still a day later or more,
// and then to be over.
func staysAndClears(expected []expectation, name string) bool {
	// By its labels: those at which it fires. At the others of all it does not.
	firing, all := map[string][]time.Duration{}, []time.Duration{}
	for _, e := range expected {
		if e.Alert != name {
			continue
		}
		all = append(all, e.At)
		for _, alert := range e.Fires {
			labels := fmt.Sprint(alert.Labels) // a map is printed in the order of its keys
			firing[labels] = append(firing[labels], e.At)
		}
	}
	for _, at := range firing {
		first, last := slices.Min(at), slices.Max(at)
		if last-first >= 24*time.Hour && slices.Max(all) > last {
			return true
		}
	}
	return false
}

// Rules that only tests of minutes had tried gave up after a day, with all that was wrong still so. promtool
// does the tests; this is that there is one of each rule.
func TestEachAlertIsTriedForADayAndUntilItIsOver(t *testing.T) {
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	readYAML(t, "prometheus/alerts.yml", &rules)
	files, err := filepath.Glob("prometheus/*_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, file := range files {
		var promtool struct {
			Tests []struct {
				Expected []expectation `yaml:"alert_rule_test"`
			}
		}
		readYAML(t, file, &promtool)
		for _, test := range promtool.Tests {
			for _, e := range test.Expected {
				tried[e.Alert] = tried[e.Alert] || staysAndClears(test.Expected, e.Alert)
			}
		}
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if !tried[rule.Alert] {
				t.Errorf("no test in %v expects %s to fire, to fire a day later, and then to be over",
					files, rule.Alert)
			}
			delete(tried, rule.Alert)
		}
	}
	for name := range tried {
		t.Errorf("%v try %s, which is no rule", files, name)
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
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
