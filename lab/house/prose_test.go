package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func TestEachMarkIsFound(t *testing.T) {
	for name, text := range map[string]string{
		"no actor":              "Nothing tells, and nobody asks.",
		"negated actor":         "Here nothing is read.",
		"clause for a noun":     "It keeps what was read.",
		"place for a condition": "It stops where a page is short.",
		"tail":                  "Two pages, of which one is empty.",
		"dated or translated":   "The pass begins anew.",
		"ellipsis":              "Start bounds reads; nil: none.",
	} {
		var p prose
		p.line("a.go", 1, text)
		if len(p.places) != 1 || !strings.Contains(p.places[0], ": "+name+" (") {
			t.Errorf("%q: found %q, expected one %s", text, p.places, name)
		}
	}
	var p prose
	p.line("a.go", 1, "Read returns an error if the page is short. The caller tries again.")
	if len(p.places) != 0 || p.words != 13 {
		t.Errorf("%d words and %q, expected 13 words without a mark", p.words, p.places)
	}
}

func TestCommentsAndMessagesAreReadAndCodeIsNot(t *testing.T) {
	const text = `package a

//go:generate nobody
// Two words.
//
//	nobody draws this
type T struct {
	A int ` + "`json:\"a\" default:\"nobody is in a tag\"`" + ` // three words here
}

const message, name = "nobody reads four words", "nobody"
const long = ` + "`short\nwhere a line has more words`" + `
`
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "a.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var p prose
	p.code("a.go", files, parsed)
	if len(p.places) != 2 || p.words != 2+3+4+6 {
		t.Errorf("%d words and %q, expected 15 words and two marks", p.words, p.places)
	}
	var d prose
	d.document("a.md", "One `nobody` two.\n```\nnobody\n```\nNobody or nobody.\n")
	if len(d.places) != 1 || d.words != 3+3 || !strings.HasPrefix(d.places[0], "a.md:5: ") {
		t.Errorf("%d words and %q, expected 6 words and one mark on line 5", d.words, d.places)
	}
}

func TestAParagraphInATableIsFound(t *testing.T) {
	short, long := strings.Repeat("word ", maxCell), strings.Repeat("word ", maxCell+1)
	for line, want := range map[string]int{
		"| " + short + "| [a](" + strings.Repeat("x", maxRow) + ") |": 0,
		"| " + long + "| b |":                                  1,
		"| `" + strings.Repeat("x", maxRow) + "` | b |":        1,
		"| `w w` \\| " + strings.TrimSpace(short[5:]) + " | |": 0,
		long: 0,
	} {
		var p prose
		p.document("a.md", line)
		if len(p.tables) != want {
			t.Errorf("%q: found %q, expected %d", line, p.tables, want)
		}
	}
}
