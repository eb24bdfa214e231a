package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
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

// The tables of reasons are written from the one list of them.
func TestOperationsHasEveryReasonWithItsRemedy(t *testing.T) {
	for name, states := range map[string][]health.State{"blocks": {health.Blocked},
		"incomplete": {health.Incomplete}, "delays": {health.SettlingDelayed, health.Deferred}} {
		list := newTable("the reason has", "it is", "do")
		for _, r := range health.Reasons {
			if !slices.Contains(states, r.State) {
				continue
			}
			do := r.Remedy
			if r.See != "" {
				anchor := strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(r.See), ",", ""), " ", "-")
				do += fmt.Sprintf(" ([%s](#%s))", r.See, anchor)
			}
			list.row("`"+strings.Join(r.Texts(), "`, `")+"`", r.Means, do)
		}
		generatedIn(t, "operations.md", name, list.String())
	}
}

// What blocks a resource is one of the reasons. One that only wraps an error has its text from there: in the
// service's client those are types with a method Error. A failure that passes is explained beside them.
func TestEveryBlockIsAReason(t *testing.T) {
	explained := explainedBelow(t, "It fails")
	said := 0
	inspect(t, filepath.Join("..", "poller"), func(path string, n ast.Node) {
		text := blockedBecause(n)
		if _, ok := n.(*ast.FuncDecl); ok && !strings.Contains(path, "client") {
			return
		}
		if len(text) < len("read table ") { // a name is added, and the error says why
			return
		}
		said++
		if !isReason(text, health.Blocked) && !explains(explained, text) {
			t.Errorf("health.Reasons has no block with the text %q of %s", text, path)
		}
	})
	if said < 15 {
		t.Errorf("found %d reasons in the sources, expected 15 or more", said)
	}
}

// isReason says whether text is a part of the text of a reason with one of these states.
func isReason(text string, states ...health.State) bool {
	return slices.ContainsFunc(health.Reasons, func(r health.Reason) bool {
		return slices.Contains(states, r.State) && explains(r.Texts(), text)
	})
}

// A reason that no code gives any more goes from the list.
func TestEveryReasonIsGivenByTheCode(t *testing.T) {
	texts := textsOf(t, filepath.Join("..", "poller"))
	texts = append(texts, textsOf(t, filepath.Join("..", "internal", "httpclient"))...)
	incomplete := health.Resource{DeadLetters: []watermark.DeadLetters{{Rows: 7}}}
	texts = append(texts, incomplete.Incomplete(), (&watermark.Pause{}).Text())
	all := strings.Join(texts, "\n")
	for _, r := range health.Reasons {
		for _, text := range r.Texts() {
			for part := range strings.SplitSeq(text, "...") {
				if !strings.Contains(all, strings.TrimSpace(part)) {
					t.Errorf("no text of the code has %q of the reason %s", part, r.Code)
				}
			}
		}
	}
}

// What a takeover is refused for, it explains where it writes of that.
func TestOperationsExplainsEveryRefusal(t *testing.T) {
	explained := explainedBelow(t, "It is not taken over")
	said := 0
	inspect(t, filepath.Join("..", "producer"), func(path string, n ast.Node) {
		for _, text := range refusedBecause(n) {
			if said++; !explains(explained, text) {
				t.Errorf("operations.md does not explain the refusal %q of %s", text, path)
			}
		}
	})
	if said < 8 {
		t.Errorf("found %d refusals in the sources, expected 8 or more", said)
	}
}

// Why settling is delayed is one of the reasons.
func TestEveryDelayIsAReason(t *testing.T) {
	said := 0
	inspect(t, filepath.Join("..", "poller"), func(path string, n ast.Node) {
		overREST := strings.Contains(path, "rest") && !strings.Contains(path, "client")
		for _, text := range stillBecause(n, overREST) {
			if len(notLetter.ReplaceAllString(verb.ReplaceAllString(text, ""), "")) <= len("andcounts") {
				continue // it joins others, which say why
			}
			if said++; !isReason(text, health.SettlingDelayed, health.Deferred) && !strings.HasPrefix(text, ", and") {
				t.Errorf("health.Reasons has no delay with the text %q of %s", text, path)
			}
		}
	})
	if said < 20 {
		t.Errorf("found %d reasons in the sources, expected 20 or more", said)
	}
}

var (
	verb      = regexp.MustCompile(`%[a-z]`)
	notLetter = regexp.MustCompile(`[^a-z]`)
)

// explainedBelow are the texts of the program that operations.md explains below headings that begin like one
// of these.
func explainedBelow(t *testing.T, headings ...string) (explained []string) {
	t.Helper()
	page, err := os.ReadFile("operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(page), "\n### ") {
		part, _, _ = strings.Cut(part, "\n## ")
		if slices.ContainsFunc(headings, func(h string) bool { return strings.HasPrefix(part, h) }) {
			_, table, _ := strings.Cut(part, "<!-- texts of the program -->\n")
			explained = append(explained, firstColumn(table)...)
		}
	}
	return explained
}

func explains(explained []string, text string) bool {
	return slices.ContainsFunc(explained, func(part string) bool {
		begin, _, _ := strings.Cut(part, "...")
		return strings.Contains(text, strings.TrimSpace(begin))
	})
}

// refusedBecause are the texts of n as far as they consist of literals, where n is a RefusedError, or the
// function that refuses a topic's settings by their names.
func refusedBecause(n ast.Node) (texts []string) {
	switch x := n.(type) {
	case *ast.CompositeLit:
		if name, ok := x.Type.(*ast.Ident); !ok || name.Name != "RefusedError" {
			return nil
		}
		text := ""
		for _, e := range x.Elts {
			value := e.(*ast.KeyValueExpr).Value
			text += format(value) + "\n"
			if key, ok := value.(*ast.Ident); ok && key.Name == "setting" {
				return nil // of the function that refuses
			}
		}
		return []string{text}
	case *ast.FuncDecl:
		if x.Name.Name != "refuse" {
			return nil
		}
		ast.Inspect(x, func(n ast.Node) bool {
			if e, ok := n.(*ast.BasicLit); ok && setting.MatchString(sum(e)) {
				texts = append(texts, sum(e))
			}
			return true
		})
	}
	return texts
}

// stillBecause are the texts of n as far as they consist of literals, where n says why settled stands still:
// Why of an Outcome, Doubt of an Answer, what a pass adds to its reasons, and what the functions return that
// find one. Over REST a variable why holds one, too.
func stillBecause(n ast.Node, overREST bool) (texts []string) {
	reason := func(e ast.Expr) bool {
		if s, ok := e.(*ast.SelectorExpr); ok {
			return s.Sel.Name == "Why" || s.Sel.Name == "Doubt"
		}
		name, ok := e.(*ast.Ident)
		return ok && overREST && name.Name == "why"
	}
	switch x := n.(type) {
	case *ast.AssignStmt:
		for i, to := range x.Lhs {
			if len(x.Lhs) == len(x.Rhs) && reason(to) {
				texts = append(texts, format(x.Rhs[i]))
			}
		}
	case *ast.CompositeLit:
		of := x.Type
		if s, ok := of.(*ast.SelectorExpr); ok {
			of = s.Sel
		}
		if name, ok := of.(*ast.Ident); !ok || name.Name != "Outcome" && name.Name != "Answer" {
			return nil
		}
		for _, e := range x.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && (kv.Key.(*ast.Ident).Name == "Why" ||
				kv.Key.(*ast.Ident).Name == "Doubt") {
				texts = append(texts, format(kv.Value))
			}
		}
	case *ast.CallExpr:
		add, ok := x.Fun.(*ast.SelectorExpr)
		if ok && add.Sel.Name == "explain" && len(x.Args) == 1 {
			texts = append(texts, format(x.Args[0]))
		}
	case *ast.FuncDecl:
		if !slices.Contains([]string{"delays", "early", "complaint", "cached", "learnUpTo"}, x.Name.Name) {
			return nil
		}
		ast.Inspect(x, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ReturnStmt:
				for _, e := range x.Results {
					texts = append(texts, format(e))
				}
			case *ast.AssignStmt: // of what is then returned
				for _, e := range x.Rhs {
					texts = append(texts, format(e))
				}
			}
			return true
		})
	}
	return texts
}

// setting is the name of a topic's setting.
var setting = regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`)

// blockedBecause is the text of n as far as it consists of literals, where n is the reason of a block: What
// of a BlockedError, the call of a function blocked that makes one, or what a method Error returns.
func blockedBecause(n ast.Node) string {
	switch x := n.(type) {
	case *ast.CompositeLit:
		of := x.Type
		if s, ok := of.(*ast.SelectorExpr); ok {
			of = s.Sel
		}
		if name, ok := of.(*ast.Ident); !ok || name.Name != "BlockedError" {
			return ""
		}
		for _, e := range x.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "What" {
				return format(kv.Value)
			}
		}
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.Ident); ok && f.Name == "blocked" && len(x.Args) > 0 {
			return sum(x.Args[0])
		}
	case *ast.FuncDecl:
		if x.Recv == nil || x.Name.Name != "Error" {
			return ""
		}
		if end, ok := x.Body.List[len(x.Body.List)-1].(*ast.ReturnStmt); ok {
			return format(end.Results[0])
		}
	}
	return ""
}

// format is sum, also of what fmt.Sprintf is given.
func format(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) > 0 {
		return sum(call.Args[0])
	}
	return sum(e)
}
