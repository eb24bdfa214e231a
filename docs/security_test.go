package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/schemas"
)

// programTexts are all texts of the program.
func programTexts(t *testing.T) string {
	t.Helper()
	var texts []string
	for _, folder := range []string{"cmd/storestream", "config", "internal", "poller", "producer", "schemas"} {
		texts = append(texts, textsOf(t, filepath.Join("..", folder))...)
	}
	return strings.Join(texts, "\n")
}

// A person who follows an error message looks for its heading.
func TestSecurityHasTheHeadingsThatTheProgramNames(t *testing.T) {
	citation := regexp.MustCompile(`docs/security\.md says[^"\n]*"([^"\n]+)"`)
	named := citation.FindAllStringSubmatch(programTexts(t), -1)
	if len(named) < 3 {
		t.Errorf("the program names %d headings of security.md, expected 3 or more", len(named))
	}
	page := read(t, "security.md")
	for _, m := range named {
		if !strings.Contains(page, "\n### "+m[1]+"\n") {
			t.Errorf("the program names %q, which is no heading of security.md", m[1])
		}
	}
}

func TestTheAuditTrailNamesLinesOfTheLog(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "security.md"), "<!-- texts of the program -->\n")
	lines := firstColumn(table)
	if len(lines) == 0 {
		t.Error("security.md has no table of log lines")
	}
	texts := programTexts(t)
	for _, line := range lines {
		if !strings.Contains(texts, line) {
			t.Errorf("security.md names the log line %q, which the program does not write", line)
		}
	}
}

func TestSecurityListsThePersonalFieldsAndThePolicies(t *testing.T) {
	page := read(t, "security.md")
	_, rest, _ := strings.Cut(page, "The personal fields are ")
	list, _, _ := strings.Cut(rest, " of users.")
	var listed, personal []string
	for _, m := range quoted.FindAllStringSubmatch(list, -1) {
		listed = append(listed, m[1])
	}
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range schemas.Names() {
		for _, f := range set.Get(name).Fields {
			if f.PII && name == "users" {
				personal = append(personal, f.Name)
			} else if f.PII {
				t.Errorf("%s.%s is personal, and security.md lists users alone", name, f.Name)
			}
		}
	}
	if !slices.Equal(listed, personal) {
		t.Errorf("security.md lists the personal fields %q, the schemas mark %q", listed, personal)
	}
	for _, policy := range schemas.Policies {
		if !strings.Contains(page, "\n| `"+string(policy)+"` |") {
			t.Errorf("security.md does not explain the policy %q", policy)
		}
	}
}
