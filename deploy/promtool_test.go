//go:build promtool

package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The part of Prometheus' configuration that docs/deploying.md has readers copy.
func TestPrometheusUnderstandsTheScrapeConfiguration(t *testing.T) {
	text, err := os.ReadFile("../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- scrape -->\n```yaml\n")
	block, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("deploying.md has no block scrape")
	}
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	check := exec.Command("promtool", "check", "config", "--syntax-only", file)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// promtool reads rules, so the dashboard's expressions are made into some. make test-alerts runs this.
func TestPrometheusUnderstandsEveryExpressionOfTheDashboard(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$resource", ".*")
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			rules = append(rules, rule{"panel:" + strings.Repeat("x", len(rules)+1), variables.Replace(target.Expr)})
		}
	}
	group := map[string]any{"name": "dashboard", "rules": rules}
	text, err := json.Marshal(map[string]any{"groups": []any{group}}) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
