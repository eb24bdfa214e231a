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
	"unicode/utf8"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
)

// An operator searches the page for the words that the status page or the log shows. So each text in
// backticks in a heading of a failure, or in the first column of a table after <!-- texts of the program
// -->, is part of a text of the program. "..." is the part that the program fills in.
func TestTheTextsThatOperationsExplainsAreTheProgramsOwn(t *testing.T) {
	var texts []string
	for _, folder := range []string{"cmd/storestream", "config", "internal", "poller", "producer", "schemas"} {
		texts = append(texts, textsOf(t, filepath.Join("..", folder))...)
	}
	all := strings.Join(texts, "\n")
	page := readPage(t, operationsFile)
	names := failuresIn(page)
	tables := strings.Split(page, "<!-- texts of the program -->\n")[1:]
	if len(tables) < 4 || len(names) < 60 {
		t.Errorf("%s has %d marked tables and %d texts in headings, expected more", operationsFile, len(tables),
			len(names))
	}
	for _, table := range tables {
		_, table, _ = strings.Cut("\n"+table, "\n|") // after the mark of a generated one
		names = append(names, firstColumn("|"+table)...)
	}
	for _, name := range names {
		for part := range strings.SplitSeq(name, "...") {
			if !strings.Contains(all, strings.TrimSpace(part)) {
				t.Errorf("%s explains %q, which the program does not say", operationsFile, name)
			}
		}
	}
}

const operationsFile = "operations.md"

// failuresIn returns the texts of the program in the headings of failures: #### `text`, `another`.
func failuresIn(text string) (texts []string) {
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "#### "); ok {
			for _, m := range quoted.FindAllStringSubmatch(title, -1) {
				texts = append(texts, m[1])
			}
		}
	}
	return texts
}

// The tables of symptoms have each failure, so that an operator who begins there finds it.
func TestTheSymptomsOfOperationsLeadToEveryFailure(t *testing.T) {
	page := readPage(t, operationsFile)
	_, symptoms, _ := strings.Cut(page, "\n## Find the symptom\n")
	symptoms, _, found := strings.Cut(symptoms, "\n## ")
	if !found {
		t.Fatalf("%s has no symptoms", operationsFile)
	}
	var listed []string
	for line := range strings.Lines(symptoms) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok {
			for _, m := range quoted.FindAllStringSubmatch(first, -1) {
				listed = append(listed, m[1])
			}
		}
	}
	for _, text := range failuresIn(page) {
		if !slices.ContainsFunc(listed, func(l string) bool { return strings.HasPrefix(text, l) }) {
			t.Errorf("%s: no symptom has the failure %q", operationsFile, text)
		}
	}
}

// Warnings and errors in the log are explained. Lines of level info explain themselves.
func TestOperationsExplainsEveryWarningAndErrorOfTheLog(t *testing.T) {
	_, part, _ := strings.Cut(readPage(t, operationsFile), "\n## Log lines\n")
	_, lines, _ := strings.Cut(part, "<!-- texts of the program -->\n")
	explained := firstColumn(lines)
	logged := 0
	for _, folder := range []string{"cmd/storestream", "internal", "poller", "producer", "schemas"} {
		inspect(t, filepath.Join("..", folder), func(path string, n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || strings.Contains(path, "storefake") || strings.Contains(path, "servers") {
				return
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			said := sum(call.Args[0])
			if !ok || said == "" || !slices.Contains([]string{"Warn", "Error"}, method.Sel.Name) {
				return
			}
			logged++
			if !slices.ContainsFunc(explained, func(line string) bool { return strings.HasPrefix(said, line) }) {
				t.Errorf("%s does not explain the log line %q of %s", operationsFile, said, path)
			}
		})
	}
	if logged < 30 {
		t.Errorf("found %d warnings and errors in the sources, expected 30 or more", logged)
	}
}

// Each alert has a row, with its severity.
func TestOperationsHasEveryAlert(t *testing.T) {
	rules, err := os.ReadFile("../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	page := readPage(t, operationsFile)
	alert := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?severity: (\w+)`)
	alerts := alert.FindAllStringSubmatch(string(rules), -1)
	for _, m := range alerts {
		if !strings.Contains(page, "\n| `"+m[1]+"`, "+m[2]+" | ") {
			t.Errorf("%s has no row for the alert %s, %s", operationsFile, m[1], m[2])
		}
	}
	if len(alerts) < 10 {
		t.Errorf("found %d alerts, expected 10 or more", len(alerts))
	}
}

// textsOf returns the strings in the Go files in and below folder, except tests. Strings joined by + are one.
func textsOf(t *testing.T, folder string) (texts []string) {
	t.Helper()
	inspect(t, folder, func(_ string, n ast.Node) {
		if e, ok := n.(ast.Expr); ok {
			texts = append(texts, sum(e))
		}
	})
	return texts
}

// inspect calls f for every node of the Go files in and below folder, except tests.
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

// sum returns the literal parts of e.
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

// The table of reasons, and the heading of each with its remedy, are written from the one list of them. The
// heading has the first text of a reason, so that links to it stay short.
func TestOperationsHasEveryReasonWithItsRemedy(t *testing.T) {
	symptoms := newTable("the reason has", "state")
	headings := map[health.State]string{}
	for _, r := range health.Reasons {
		title, also := code(r.Texts()[0]), r.Texts()[1:]
		cell, text := fmt.Sprintf("[%s](#%s)", title, anchor(title)), r.Means
		if len(also) > 0 {
			others := "`" + strings.Join(also, "`, `") + "`"
			cell, text = cell+", "+others, "Also "+others+". "+text
		}
		symptoms.row(cell, code(string(r.State)))
		do := r.Remedy
		if !strings.HasPrefix(do, "`") {
			do = strings.ToUpper(do[:1]) + do[1:]
		}
		if file, title, ok := strings.Cut(r.See, ", "); ok {
			title = strings.Trim(title, `"`)
			file = strings.TrimPrefix(strings.TrimPrefix(file, "docs/"), operationsFile)
			do += fmt.Sprintf(" ([%s](%s#%s))", strings.ToLower(title[:1])+title[1:], file, anchor(title))
		}
		headings[r.State] += "\n#### " + title + "\n\n" + wrapped(text+" "+do+".")
	}
	generatedIn(t, operationsFile, "symptoms", symptoms.String())
	for name, states := range map[string][]health.State{"blocks": {health.Blocked}, "pauses": {health.Paused},
		"incomplete": {health.Incomplete}, "delays": {health.SettlingDelayed}} {
		text := ""
		for _, state := range states {
			text += headings[state]
			delete(headings, state)
		}
		generatedIn(t, operationsFile, name, text+"\n")
	}
	for state := range headings {
		t.Errorf("%s has no place for reasons of the state %s", operationsFile, state)
	}
}

// anchor is the name by which a heading can be linked to.
func anchor(heading string) string {
	return strings.ReplaceAll(notInIt.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// wrapped is a paragraph in lines of at most 120 letters.
func wrapped(text string) string {
	var lines strings.Builder
	length := 0
	for word := range strings.FieldsSeq(text) {
		switch n := utf8.RuneCountInString(word); {
		case length == 0:
			length = n
		case length+1+n > 120:
			lines.WriteString("\n")
			length = n
		default:
			lines.WriteString(" ")
			length += 1 + n
		}
		lines.WriteString(word)
	}
	return lines.String() + "\n"
}

// Every block is one of the reasons. A block that only wraps an error has its text from that error: in the
// service's client these are types with a method Error. The page explains temporary failures too.
func TestEveryBlockIsAReason(t *testing.T) {
	explained := explainedBelow(t, "Failing")
	said := 0
	inspect(t, filepath.Join("..", "poller"), func(path string, n ast.Node) {
		text := blockedBecause(n)
		if _, ok := n.(*ast.FuncDecl); ok && !strings.Contains(path, "client") {
			return
		}
		if len(text) < len("read table ") { // it adds a name, and the error has the reason
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

// isReason reports whether text belongs to a reason with one of these states.
func isReason(text string, states ...health.State) bool {
	return slices.ContainsFunc(health.Reasons, func(r health.Reason) bool {
		return slices.Contains(states, r.State) && explains(r.Texts(), text)
	})
}

// The code gives every reason of the list.
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

// Each refusal of a takeover is explained below "Not taken over".
func TestOperationsExplainsEveryRefusal(t *testing.T) {
	explained := explainedBelow(t, "Not taken over")
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

// Every text that explains a delay of settling is one of the reasons.
func TestEveryDelayIsAReason(t *testing.T) {
	said := 0
	inspect(t, filepath.Join("..", "poller"), func(path string, n ast.Node) {
		overREST := strings.Contains(path, "rest") && !strings.Contains(path, "client")
		for _, text := range stillBecause(n, overREST) {
			if len(notLetter.ReplaceAllString(verb.ReplaceAllString(text, ""), "")) <= len("andcounts") {
				continue // it joins other texts, which have the reason
			}
			if said++; !isReason(text, health.SettlingDelayed) && !strings.HasPrefix(text, ", and") {
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

// explainedBelow returns the texts of the program that operations.md explains below headings that begin with
// one of these.
func explainedBelow(t *testing.T, headings ...string) (explained []string) {
	t.Helper()
	for part := range strings.SplitSeq(readPage(t, operationsFile), "\n### ") {
		part, _, _ = strings.Cut(part, "\n## ")
		if slices.ContainsFunc(headings, func(h string) bool { return strings.HasPrefix(part, h) }) {
			explained = append(explained, failuresIn(part)...)
		}
	}
	if len(explained) == 0 {
		t.Errorf("%s explains no text below %v", operationsFile, headings)
	}
	return explained
}

func explains(explained []string, text string) bool {
	return slices.ContainsFunc(explained, func(part string) bool {
		begin, _, _ := strings.Cut(part, "...")
		return strings.Contains(text, strings.TrimSpace(begin))
	})
}

// refusedBecause returns the literal texts of n, if n is a RefusedError or the function that refuses a
// topic's settings by their names.
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
				return nil // it is in the function refuse, see below
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

// stillBecause returns the literal texts of n, if n says why settled stands still. Such texts are Why of an
// Outcome, Doubt of an Answer, the argument of explain, and the results of the functions that look for a
// reason. Over REST a variable named why has one too.
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
			case *ast.AssignStmt: // the value is returned later
				for _, e := range x.Rhs {
					texts = append(texts, format(e))
				}
			}
			return true
		})
	}
	return texts
}

// setting matches the name of a topic's setting.
var setting = regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`)

// blockedBecause returns the literal text of n, if n is the reason of a block: What of a BlockedError, the
// call of a function named blocked, or the result of a method Error.
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

// format returns the literal parts of e, or of the first argument if e is a call, such as fmt.Sprintf.
func format(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) > 0 {
		return sum(call.Args[0])
	}
	return sum(e)
}
