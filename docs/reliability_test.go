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
	fileName = regexp.MustCompile("`([a-zA-Z0-9_./-]+\\.(?:go|md|yaml|yml|csv|avsc|svg))`")
	link     = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	tried    = regexp.MustCompile("\\| `(Test[A-Za-z0-9]+)` \\| ([0-9,]+) \\|")
	rounds   = regexp.MustCompile(`rounds\.Check\(t, ([0-9]+),`)
	notInIt  = regexp.MustCompile(`[^a-z0-9 _-]`) // an anchor
	caseHead = regexp.MustCompile(`(?m)^### (.+)$`)
	made     = regexp.MustCompile("`make\\s+([a-z0-9-]+)[^`]*`")
)

// documents are the pages of the project, by path from this folder.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "../*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
	}
	return texts
}

// tests are all tests by name, the lab's too: what stands in the file from there on.
func tests(t *testing.T) map[string]string {
	t.Helper()
	defined := map[string]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatchIndex(text, -1) {
			defined[string(text[m[2]:m[3]])] = string(text[m[1]:])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return defined
}

func TestTheDocumentsNameTestsThatExist(t *testing.T) {
	defined := tests(t)
	for path, text := range documents(t) {
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			if defined[m[1]] == "" {
				t.Errorf("%s names %s, which is no test", path, m[1])
			}
		}
	}
}

func TestReliabilitySaysHowManyRoundsEachModelHas(t *testing.T) {
	defined := tests(t)
	models := tried.FindAllStringSubmatch(documents(t)["reliability.md"], -1)
	if len(models) == 0 {
		t.Error("reliability.md has no table of models")
	}
	for _, m := range models {
		has := rounds.FindStringSubmatch(defined[m[1]])
		if has == nil || has[1] != strings.ReplaceAll(m[2], ",", "") {
			t.Errorf("reliability.md says that %s has %s rounds, and the test %v", m[1], m[2], has)
		}
	}
}

// A break that no test holds may come back.
func TestEveryPastBreakNamesATest(t *testing.T) {
	_, rest, _ := strings.Cut(documents(t)["reliability.md"], "\n## Past breaks\n")
	list, _, _ := strings.Cut(rest, "\n## ")
	breaks := 0
	for _, line := range strings.Split(list, "\n") {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		breaks++
		if !testName.MatchString(line) {
			t.Errorf("reliability.md: no test is named in %q", line)
		}
	}
	if breaks < 40 {
		t.Errorf("reliability.md lists %d past breaks, expected 40 or more", breaks)
	}
}

// A case without a test is a claim.
func TestEveryCaseNamesATest(t *testing.T) {
	text, err := os.ReadFile("cases.md")
	if err != nil {
		t.Fatal(err)
	}
	heads := caseHead.FindAllStringSubmatchIndex(string(text), -1)
	if len(heads) < 30 {
		t.Errorf("cases.md has %d cases, expected 30 or more", len(heads))
	}
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		if !testName.Match(text[head[0]:end]) {
			t.Errorf("cases.md: no test is named for %q", text[head[2]:head[3]])
		}
	}
}

// history is not held against today's tree: it speaks of files that are gone.
var history = map[string]bool{"../CHANGELOG.md": true}

func TestTheDocumentsNameFilesThatExist(t *testing.T) {
	for path, text := range documents(t) {
		if history[path] {
			continue
		}
		for _, m := range fileName.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[1], "/") { // a file by its bare name, such as a user's configuration
				continue
			}
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s names the file %s, which is not there", path, m[1])
			}
		}
	}
}

func TestTheDocumentsLinksLeadSomewhere(t *testing.T) {
	texts := documents(t)
	for path, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to := path
			if m[1] != "" {
				to = strings.TrimPrefix(filepath.Join(filepath.Dir(path), m[1]), "../docs/")
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if m[2] != "" && !anchors(texts[to])[m[2]] {
				t.Errorf("%s links to %s#%s, which has no such heading", path, m[1], m[2])
			}
		}
	}
}

// anchors are the names by which a page's headings can be linked to.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		names[strings.ReplaceAll(notInIt.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return names
}

func TestTheDocumentsNameTargetsOfMake(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range documents(t) {
		for _, m := range made.FindAllStringSubmatch(text, -1) {
			if !history[path] && !strings.Contains(string(makefile), "\n"+m[1]+": ") {
				t.Errorf("%s names make %s, which there is not", path, m[1])
			}
		}
	}
}

// What stands in a cell for which the head has no column is not shown to anybody.
func TestEveryRowOfATableHasAsManyCellsAsItsHead(t *testing.T) {
	for path, text := range documents(t) {
		inCode, columns := false, 0
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "```") {
				inCode = !inCode
			}
			cells := strings.Count(line, "|") - strings.Count(line, `\|`) - 1
			switch {
			case inCode || !strings.HasPrefix(strings.TrimSpace(line), "|"):
				columns = 0
			case columns == 0:
				columns = cells
			case cells != columns:
				t.Errorf("%s:%d: a row of %d cells, expected %d as in the table's head: %.60s", path, i+1, cells,
					columns, line)
			}
		}
	}
}
