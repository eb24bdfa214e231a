// Package docs holds nothing but tests of what the documents claim.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
	caseRow  = regexp.MustCompile(`(?m)^\| (K\d+) `)
)

// The table of cases is a promise about tests: each case of the field has one, and each that is named is there.
func TestTheCasesNameTestsThatExist(t *testing.T) {
	defined := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			defined[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{"reliability.md", "design.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllSubmatch(text, -1) {
			if !defined[string(m[1])] {
				t.Errorf("%s names %s, which is no test", document, m[1])
			}
		}
		if document != "reliability.md" {
			continue
		}
		covered := map[string]bool{}
		for _, m := range caseRow.FindAllSubmatch(text, -1) {
			covered[string(m[1])] = true
		}
		if len(covered) != 30 {
			t.Errorf("%s has %d cases, expected K1 to K30", document, len(covered))
		}
	}
}
