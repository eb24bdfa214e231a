package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write makes a source tree of files.
func write(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"README.md":                       "# Readme\n",
		"CONTRIBUTING.md":                 "# Contributing\n",
		"config/config.go":                "package config\n\n// Config is one.\ntype Config struct{}\n",
		"internal/watermark/watermark.go": "package watermark\n\n// Watermark is one.\ntype Watermark struct{}\n",
	} {
		if files[name] == "" {
			files[name] = text
		}
	}
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

func TestASizeAboveItsBudgetFails(t *testing.T) {
	files := map[string]string{
		"config/config.go": "package config\n\n// Config has three settings.\ntype Config struct {\n" +
			"\tA int `koanf:\"a\"`\n\tB *Part `koanf:\"b\"`\n\tC map[string]string `koanf:\"c\"`\n}\n\n" +
			"// Part is embedded in none.\ntype Part struct {\n\tD int `koanf:\"d\"`\n\tE int\n}\n",
		"lab/budget/budget.txt": "lines 12\ntypes 4\nkeys 3\nmembers 0\ncode-marks 0\ndocument-marks " +
			"0\ndocument-words 1\n",
	}
	run := func() (string, bool) {
		var out bytes.Buffer
		order, err := run(&out, write(t, files), false)
		if err != nil {
			t.Fatal(err)
		}
		return out.String(), order
	}
	if out, order := run(); !order || !strings.Contains(out, "types is 1 below its budget of 4") {
		t.Errorf("expected order, and that types are fewer:\n%s", out)
	}
	files["poller/poller.go"] = "package poller\n\n/* a\n\ncomment */\nconst s = `two\nlines` // comment\n"
	if out, order := run(); order || !strings.Contains(out, "lines is 3 above its budget of 12") {
		t.Errorf("expected three lines too many:\n%s", out)
	}
}
