package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var manFolder = flag.String("man", "", "folder to write the man pages to (make man)")

// What writes man pages is no part of the program: this test does.
func TestEveryCommandHasAManPage(t *testing.T) {
	folder := *manFolder
	if folder == "" {
		folder = t.TempDir()
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	root := rootCommand(&environment{})
	root.DisableAutoGenTag = true
	date := time.Unix(0, 0) // the same bytes whenever they are made
	header := &doc.GenManHeader{Section: "1", Source: "storestream", Date: &date}
	if err := doc.GenManTree(root, header, folder); err != nil {
		t.Fatal(err)
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		page, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
		}
		for _, part := range []string{".SH NAME", ".SH SYNOPSIS", ".SH EXAMPLE", "storestream"} {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s: no %q", cmd.CommandPath(), part)
			}
		}
		for _, sub := range cmd.Commands() {
			if sub.Name() != "help" {
				visit(sub)
			}
		}
	}
	visit(root)
}
