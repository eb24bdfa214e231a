package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode/utf8"
)

// mark is a sign of English that is hard to follow. It is a symptom, and a sentence that has one may be fine.
// To cure it, write the sentence again, as you would say it to a colleague. A synonym does not help.
type mark struct {
	name, reason string
	pattern      *regexp.Regexp
}

// newMark returns a mark for alternatives, each a regular expression of whole words.
func newMark(name, reason string, alternatives ...string) mark {
	return mark{name, reason, regexp.MustCompile(`\b(?:` + strings.Join(alternatives, "|") + `)\b`)}
}

var marks = []mark{
	newMark("no actor", "name the program or the person that acts",
		"nobody", "somebody", "whoever", "whatever", "wherever", "whichever", "whomever"),
	newMark("negated actor", "say what happens: a negation is a puzzle",
		"(?:nothing|none) (?:is|are|was|were|of|may|can|does|do|that)"),
	newMark("clause for a noun", "use the noun: the clause makes readers guess it",
		"[Ww]hat (?:is|was|has|had|it|they|a|the|no)", "[Ww]hat (?:cannot|can|others|stands|lies|comes|came)"),
	newMark("place for a condition", "begin a condition with if or when",
		"where (?:it|they|there|that|no|a|the|nothing)", "where (?:one|all|rows?|polls?)"),
	newMark("tail", "make it two sentences", "of which", "of whom", "of what"),
	newMark("dated or translated", "use the plain word",
		"likewise", "for ever", "anew", "is told", "are told", "tells of", "says so", "of before", "as yet",
		"who asks", "lest", "whence", "thereof"),
	{"ellipsis", "write the verb: each reader adds another one",
		regexp.MustCompile(`[;:] (?:nil|"")?:? ?(?:nil|none|no|0|""|else|the same|not|also)\b`)},
}

// prose counts the words that people read, and the marks among them.
type prose struct {
	words  int
	places []string // of the marks, such as "poller/poller.go:12: no actor (...): ..."
	tables []string // places of cells and rows that are too long to read in a table
}

const (
	maxCell = 20  // words
	maxRow  = 200 // characters that are shown, two lines of a table on GitHub
)

var word = regexp.MustCompile(`[A-Za-z']+`)

// line reads one line of text.
func (p *prose) line(place string, number int, text string) {
	p.words += len(word.FindAllString(text, -1))
	for _, m := range marks {
		for range m.pattern.FindAllString(text, -1) {
			p.places = append(p.places, fmt.Sprintf("%s:%d: %s (%s): %s", place, number, m.name, m.reason,
				strings.TrimSpace(text)))
		}
	}
}

// perThousand returns the marks per 1,000 words, with one decimal.
func (p *prose) perThousand() float64 { return float64(len(p.places)*10_000/max(1, p.words)) / 10 }

var inCode = regexp.MustCompile("`[^`]*`")

// document reads a Markdown file, without its blocks of code and the names in it.
func (p *prose) document(place, text string) {
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case !fenced:
			p.line(place, i+1, inCode.ReplaceAllString(line, "X"))
			if strings.HasPrefix(line, "|") {
				p.row(fmt.Sprintf("%s:%d", place, i+1), line)
			}
		}
	}
}

var linkTarget = regexp.MustCompile(`\]\([^)]*\)`)

// row reads a row of a table.
func (p *prose) row(place, line string) {
	shown := linkTarget.ReplaceAllString(line, "]")
	if n := utf8.RuneCountInString(shown); n > maxRow {
		p.tables = append(p.tables, fmt.Sprintf("%s: a row of %d characters", place, n))
	}
	for cell := range strings.SplitSeq(strings.ReplaceAll(shown, `\|`, "/"), "|") {
		if n := len(word.FindAllString(inCode.ReplaceAllString(cell, "X"), -1)); n > maxCell {
			p.tables = append(p.tables, fmt.Sprintf("%s: a cell of %d words: %s", place, n, strings.TrimSpace(cell)))
		}
	}
}

// message matches a string of four words or more. People read such a string, and programs the shorter ones.
var message = regexp.MustCompile(`(?:[A-Za-z']{2,}[^A-Za-z']+){3}[A-Za-z']{2,}`)

// code reads the comments and messages of a Go file. Directives are left out, and so are drawings and
// examples, which are indented.
func (p *prose) code(place string, files *token.FileSet, parsed *ast.File) {
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			text, _ := strings.CutPrefix(comment.Text, "//")
			if strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "  ") {
				p.line(place, files.Position(comment.Pos()).Line, text)
			}
		}
	}
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			tags[field.Tag] = true
		}
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && !tags[literal] {
			first := files.Position(literal.Pos()).Line
			for i, line := range strings.Split(literal.Value, "\n") {
				if message.MatchString(line) {
					p.line(place, first+i, line)
				}
			}
		}
		return true
	})
}
