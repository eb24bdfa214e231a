package budget

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func budgetOf(t *testing.T, text string) (Budget, error) {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(root)
}

func TestAMeasureAboveItsBudgetFails(t *testing.T) {
	b, err := budgetOf(t, "# sizes\ntypes 400 # aim 350\n\nmarks 5.5\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		is   float64
		says string // "": nothing
		ok   bool
	}{
		{"types", 400, "", true},
		{"types", 401, "is 1 above its budget of 400: make it smaller.", false},
		{"types", 390, "is 10 below its budget of 400: lower the line", true},
		{"marks", 5.7, "is 0.2 above its budget of 5.5", false},
		{"lines", 1, "has no budget", false},
	} {
		says, ok := b.Check(c.name, c.is)
		if ok != c.ok || !strings.HasPrefix(says, c.says) || (says == "") != (c.says == "") {
			t.Errorf("%s %v: %q, %v; expected %q, %v", c.name, c.is, says, ok, c.says, c.ok)
		}
	}
}

func TestABudgetThatCannotBeReadIsAnError(t *testing.T) {
	for _, text := range []string{"types", "types many", "types 1 2", "types 1\ntypes 2"} {
		if _, err := budgetOf(t, text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
