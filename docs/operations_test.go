package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Whoever is on call looks for the words that the page or the log shows. What stands in backticks in the
// first column of a table after <!-- texts of the program --> is in a text of the program; "..." is whatever
// the program puts there.
func TestTheTextsThatOperationsExplainsAreTheProgramsOwn(t *testing.T) {
	page, err := os.ReadFile("operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, folder := range []string{"cmd/storestream", "config", "internal", "poller", "producer", "schemas"} {
		texts = append(texts, textsOf(t, filepath.Join("..", folder))...)
	}
	all := strings.Join(texts, "\n")
	tables := strings.Split(string(page), "<!-- texts of the program -->\n")[1:]
	if len(tables) == 0 {
		t.Error("operations.md marks no table of the program's texts")
	}
	for _, table := range tables {
		for _, name := range firstColumn(table) {
			for part := range strings.SplitSeq(name, "...") {
				if !strings.Contains(all, strings.TrimSpace(part)) {
					t.Errorf("operations.md explains %q, which the program does not say", name)
				}
			}
		}
	}
}

// What the log says to whoever is on call, it explains: all but debug.
func TestOperationsExplainsEveryLogLine(t *testing.T) {
	page, err := os.ReadFile("operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "## What the log lines mean")
	_, lines, _ := strings.Cut(part, "<!-- texts of the program -->\n")
	explained := firstColumn(lines)
	for _, folder := range []string{"cmd/storestream", "internal", "poller", "producer", "schemas"} {
		inspect(t, filepath.Join("..", folder), func(path string, n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || strings.Contains(path, "storefake") || strings.Contains(path, "servers") {
				return
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			said := sum(call.Args[0])
			if !ok || said == "" || !slices.Contains([]string{"Info", "Warn", "Error"}, method.Sel.Name) {
				return
			}
			if !slices.ContainsFunc(explained, func(line string) bool {
				begin, _, _ := strings.Cut(line, "...")
				return strings.HasPrefix(said, strings.TrimSpace(begin))
			}) {
				t.Errorf("operations.md does not explain the log line %q of %s", said, path)
			}
		})
	}
}

// textsOf is the strings in the Go files in and below folder, tests apart; those that are added up are one.
func textsOf(t *testing.T, folder string) (texts []string) {
	t.Helper()
	inspect(t, folder, func(_ string, n ast.Node) {
		if e, ok := n.(ast.Expr); ok {
			texts = append(texts, sum(e))
		}
	})
	return texts
}

// inspect calls f for every node of the Go files in and below folder, tests apart.
func inspect(t *testing.T, folder string, f func(path string, n ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			f(path, n)
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sum is the text of e as far as it consists of literals.
func sum(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			text, _ := strconv.Unquote(x.Value)
			return text
		}
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			return sum(x.X) + sum(x.Y)
		}
	}
	return ""
}
