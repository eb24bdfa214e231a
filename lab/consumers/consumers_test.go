//go:build consumers

package consumers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// chosen are the examples that CONSUMERS names; without it all are.
func chosen(t *testing.T, fits func(example) bool) []example {
	t.Helper()
	names := strings.Fields(os.Getenv("CONSUMERS"))
	known := func(name string) bool {
		return slices.ContainsFunc(examples, func(e example) bool { return e.name == name })
	}
	for _, name := range names {
		if !known(name) {
			t.Fatalf("CONSUMERS names %q, which is no folder of examples/ that this test knows", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(examples), func(e example) bool {
		return !fits(e) || len(names) > 0 && !slices.Contains(names, e.name)
	})
}

// judge has examples read the stack's topics while the story happens, and compares their tables.
func (s *stack) judge(chosen []example) {
	s.t.Helper()
	var all []*running
	for _, e := range chosen {
		all = append(all, s.prepared(e))
	}
	for _, r := range all {
		r.start()
	}
	s.story(all)
	s.happened()
	for _, r := range all {
		s.t.Run(r.name, func(t *testing.T) { r.isEqual(t) })
	}
	s.lags()
}

// lags logs how many offsets each group has not committed, though it has read all rows: docs/consuming.md
// says what stays.
func (s *stack) lags() {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	lags, err := kadm.NewClient(client).Lag(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	lags.Each(func(l kadm.DescribedGroupLag) {
		s.t.Logf("group %s lags by %d offsets", l.Group, l.Lag.Total())
	})
}

// Apache Kafka and Apicurio, as docker-compose.yml has them.
func TestEveryExampleHoldsWhatTheServiceHas(t *testing.T) {
	s := start(t, false)
	s.judge(chosen(t, func(example) bool { return true }))
	s.readsAborted()
}

// readsAborted shows that the comparison can fail, and what isolation.level is for: the Python example
// without read_committed has rows that were aborted.
func (s *stack) readsAborted() {
	s.t.Helper()
	i := slices.IndexFunc(examples, func(e example) bool { return e.name == "python" })
	r := s.prepared(examples[i], "read_committed", "read_uncommitted", "example-python", "example-uncommitted")
	r.start()
	s.t.Run("read_uncommitted", func(t *testing.T) {
		eventually(t, "aborted rows are told from those of the service", func() (bool, string) {
			r.alive(t)
			got, err := r.rows(r)
			if err != nil {
				return false, err.Error()
			}
			return slices.Contains(s.differences(got), "orders 900000001 is not in the service"), ""
		})
	})
}

// The demo's broker and registry, and the few lines of the README beside the examples.
func TestTheExamplesAndTheReadmeWorkWithTheDemo(t *testing.T) {
	s := start(t, true)
	s.judge(chosen(t, func(e example) bool { return e.embedded }))
	t.Run("README", func(t *testing.T) { s.readme(t) })
}

// readme runs the Python of README.md, which says after each row how many orders there are, and does not end.
func (s *stack) readme(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```python\n")
	code, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("README.md has no Python")
	}
	i := slices.IndexFunc(examples, func(e example) bool { return e.name == "python" })
	python := s.prepared(examples[i])
	interpreter := filepath.Join(python.dir, "venv", "bin", "python")
	cmd := exec.Command(interpreter, "-u", "-c", s.addresses().Replace(code))
	readme := launch(t, "README", cmd)
	want := fmt.Sprintf("%d orders, ", s.fake.Count(storefake.Orders))
	eventually(t, "the README's Python counts the service's orders", func() (bool, string) {
		if readme.ended() {
			t.Fatalf("it has ended: %s", cmd.ProcessState)
		}
		said := tail(readme.output(t), 1)
		return strings.HasPrefix(said, want), fmt.Sprintf("it says %q, expected %q", said, want)
	})
}
