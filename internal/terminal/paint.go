// Package terminal prints for people: colored text, aligned tables, and numbers, times and sizes as people
// write them. A pipe or a file gets the same text without colors.
//
// Its callers choose the colors.
package terminal

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Style is a color or an emphasis: the number of an ANSI SGR code.
type Style string

// The styles in use.
const (
	Bold   Style = "1"
	Faint  Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint gives text a style. False leaves every text as it is, for pipes, files, and terminals without colors.
type Paint bool

// PaintFor returns the Paint for a stream. It is false if the stream is no terminal, NO_COLOR is not empty
// (https://no-color.org), or TERM is dumb. If a variable has several values, the last one counts.
func PaintFor(terminal bool, environ []string) Paint {
	return Paint(terminal && variable(environ, "NO_COLOR") == "" && variable(environ, "TERM") != "dumb")
}

func variable(environ []string, name string) string {
	for _, v := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// As returns text in a style. An empty style changes no text. As escapes text as Escape does, because it may
// hold text of others.
func (p Paint) As(s Style, text string) string {
	if !p || s == "" || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + Escape(text) + "\x1b[0m"
}

// styled matches the styles that Paint writes.
var styled = regexp.MustCompile("\x1b\\[(?:[012]|3[1236])m")

// Width returns how many columns text takes. Styles take none.
func Width(text string) int { return utf8.RuneCountInString(styled.ReplaceAllString(text, "")) }

// Pad fills text up with spaces, on its right, to so many columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Width(text)))
}
