package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// write makes a source tree of files.
func write(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	files["go.mod"] = "module github.com/storestream/storestream\n\nrequire (\n\texample.org/a v1.0.0\n" +
		"\texample.org/b v1.0.0 // indirect\n)\n"
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestEachRuleFindsWhatBreaksIt(t *testing.T) {
	long := "// " + string(slices.Repeat([]byte("x"), maxColumns)) + "\n"
	found, err := inspect(write(t, map[string]string{
		"poller/a.go":      "// Package poller polls.\npackage poller\n\ntype T struct{}\n\nfunc (T) A() {}\n",
		"poller/b.go":      "package poller\n\nfunc (T) b() {}\n",
		"poller/c.go":      "package poller\n\nfunc (t *T) c() {}\n",
		"poller/d.go":      "package poller\n\nimport _ \"" + module + "producer\"\n\nfunc (T) d() {}\n",
		"poller/d_test.go": "package poller\n\n" + long + "func (T) Error() {}\n",
		"schemas/s.go":     "package schemas\n\nimport _ \"" + module + "internal/wait\"\n",
		"lab/l.go":         "package lab\n\nfunc Bare() {}\n\nfunc (s *stage) a() {}\n",
		"lab/m.go":         "package lab\n\nfunc (s *stage) b() {}\n",
		"lab/n.go":         "package lab\n\nfunc (s *stage) c() {}\n",
		"lab/o.go":         "package lab\n\nfunc (s *stage) d() {}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []struct {
		name       string
		have, want []string
	}{
		{"scattered", found.scattered(), []string{"lab.stage (4 files)", "poller.T (4 files)"}},
		{"long", found.long, []string{"poller/d_test.go:3 (113)"}},
		{"bare", found.bare, []string{"poller/a.go:4 T", "poller/a.go:6 A"}},
		{"against", found.against, []string{"poller/d.go imports producer", "schemas/s.go imports internal/wait"}},
	} {
		if !slices.Equal(rule.have, rule.want) {
			t.Errorf("%s: %q, expected %q", rule.name, rule.have, rule.want)
		}
	}
	if found.dependencies != 1 {
		t.Errorf("%d direct dependencies, expected 1", found.dependencies)
	}
}
