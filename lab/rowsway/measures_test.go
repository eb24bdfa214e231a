package rowsway

import (
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAStackGoesOnWithThatOfTheGoroutineThatStartedIt(t *testing.T) {
	line := func(n int) token.Position { return token.Position{Line: n, Column: 1} }
	fs := functions{"/p/poller/a.go": {
		{name: "Run", at: line(1), end: line(9)},
		{name: "read", at: line(11), end: line(19)},
		{name: "in read", at: line(13), end: line(15), literal: true},
		{name: "ask", at: line(21), end: line(29)},
	}}
	const text = `goroutine 7 [IO wait, 2 minutes]:
net/http.(*Transport).RoundTrip(0xc0)
	/go/http.go:5 +0x1
p/poller.ask(...)
	/p/poller/a.go:22 +0x1
p/poller.Run-range1({0x1, 0x2})
	/p/poller/a.go:5 +0x1
p/poller.read.func1.2(0xc0)
	/p/poller/a.go:14 +0x1
p/poller.read(0xc0)
	/p/poller/a.go:14 +0x1
created by p/poller.Run in goroutine 1
	/p/poller/a.go:3 +0x1
[originating from goroutine 1]:
p/poller.Run(...)
	/p/poller/a.go:4 +0x1

goroutine 8 [select]:
net/http.(*Transport).readLoop(0xc0)
	/go/http.go:6 +0x1
created by net/http.(*Transport).dial in goroutine 7
	/go/http.go:4 +0x1
[originating from goroutine 7]:
p/poller.ask(...)
	/p/poller/a.go:22 +0x1
`
	found := readStacks(text, fs)
	if len(found) != 1 {
		t.Fatalf("%d goroutines, expected one", len(found))
	}
	g := found[0]
	if !slices.Equal(g.ids, []string{"7", "1"}) || !g.rests() || !g.speaks("net/http.(*Transport).") {
		t.Errorf("%+v", g)
	}
	var names []string
	for _, f := range g.ours {
		names = append(names, f.name)
	}
	if want := []string{"Run", "read", "in read", "Run", "ask"}; !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
	if way := from(g.ours[1], g.ours); len(way) != 4 {
		t.Errorf("%d functions from read on, expected 4", len(way))
	}
}

func TestAFunctionWorksOnARowIfItRunsOnceForEach(t *testing.T) {
	one, more := &trip{batch: batch{rows: 1}, ran: coverage{}}, &trip{batch: batch{rows: 21}, ran: coverage{}}
	for _, c := range []struct {
		name string
		// How often the first and the second block ran, for one row and for 21.
		one, more [2]int
	}{
		{"for each row", [2]int{1, 1}, [2]int{21, 0}},
		{"over rows", [2]int{1, 1}, [2]int{1, 21}},
		{"for each field", [2]int{3, 1}, [2]int{63, 21}},
		{"for each answer", [2]int{2, 2}, [2]int{3, 7}},
	} {
		f := &function{name: c.name, end: token.Position{Line: 3}}
		one.ran[f] = map[[2]int]int{{1, 1}: c.one[0], {2, 1}: c.one[1]}
		more.ran[f] = map[[2]int]int{{1, 1}: c.more[0], {2, 1}: c.more[1]}
	}
	var names []string
	for _, f := range one.forEachRow(more) {
		names = append(names, f.name)
	}
	slices.Sort(names)
	if want := []string{"for each row", "over rows"}; !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
}

func TestAFunctionCarriesARowIfBytesAreInItsParametersOrResults(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module " + module + "\n",
		"cmd/storestream/main.go": `package main

type record struct{ value []byte }

type list struct {
	next *list
	rows []record
}

func (l *list) bytes([]byte)        {}
func fields(*list)                  {}
func results() (_ [][]byte, _ error) { return nil, nil }
func (l *list) ids(int64, string)   {}

func main() { _ = func(record) {} }
`,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := readFunctions(root)
	if err != nil {
		t.Fatal(err)
	}
	var carry, names []string
	for _, f := range fs[filepath.Join(root, "cmd/storestream/main.go")] {
		names = append(names, f.name)
		if f.carries {
			carry = append(carry, f.name)
		}
	}
	want := "(*main.list).bytes main.fields main.results main.main, function at line 15"
	if got := strings.Join(carry, " "); got != want || len(names) != 6 {
		t.Errorf("%s carry rows, expected %s; of %q", got, want, names)
	}
}
