package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	exampleRow = regexp.MustCompile(`(?m)^\| \[([a-z]+)\]\(\.\./examples/[a-z]+\) \| ([^|]*) \|`)
	versionOf  = regexp.MustCompile(`\d+\.\d+\S*`)
	playedBy   = regexp.MustCompile("`--([a-z][a-z0-9-]*)[^`]*`")
)

func TestTheVersionsOfExamplesAreThoseThatTheyPin(t *testing.T) {
	text, err := os.ReadFile("consuming.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := exampleRow.FindAllStringSubmatch(string(text), -1)
	entries, err := os.ReadDir("../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		named := slices.ContainsFunc(rows, func(row []string) bool { return row[1] == entry.Name() })
		if entry.IsDir() && !named {
			t.Errorf("consuming.md has no row for examples/%s", entry.Name())
		}
	}
	for _, row := range rows {
		pins := contents(t, "../examples/"+row[1]) + contents(t, "../lab/consumers/"+row[1])
		for _, version := range versionOf.FindAllString(row[2], -1) {
			if version = strings.TrimSuffix(version, ","); !strings.Contains(pins, version) {
				t.Errorf("consuming.md says %s of %s, and no file there does", version, row[1])
			}
		}
	}
}

// A flag that storefake does not have plays nothing.
func TestTheFlagsThatDataServiceNamesAreThoseOfStorefake(t *testing.T) {
	source := contents(t, "../cmd/storefake")
	flags := playedBy.FindAllStringSubmatch(documents(t)["data-service.md"], -1)
	if len(flags) == 0 {
		t.Error("data-service.md names no flags of storefake")
	}
	for _, flag := range flags {
		if !regexp.MustCompile(`\bf\.\w+\([^"\n]*"` + flag[1] + `"`).MatchString(source) {
			t.Errorf("data-service.md names --%s, which storefake does not have", flag[1])
		}
	}
}

// contents are the texts of all files below a folder, if there is one, without what its example leaves there
// when it is run.
func contents(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	if _, err := os.Stat(folder); err != nil {
		return ""
	}
	left := ignored(t)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case left[path] && entry.IsDir():
			return filepath.SkipDir
		case left[path] || entry.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// ignored are the paths that are there, and that .gitignore gives from the root of the clone.
func ignored(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../.gitignore")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		pattern, fromRoot := strings.CutPrefix(strings.TrimSpace(line), "/")
		if !fromRoot {
			continue
		}
		found, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			paths[path] = true
		}
	}
	return paths
}
