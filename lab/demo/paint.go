package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/storestream/storestream/internal/terminal"
)

// style is a color or an emphasis: the number of an ANSI SGR code.
type style string

// The styles in use.
const (
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// paint gives text a style. False leaves every text as it is, for pipes, files, and terminals without colors.
type paint bool

// paintFor returns the paint for a terminal. It is false if NO_COLOR is not empty (https://no-color.org), or
// TERM is dumb. If a variable has several values, the last one counts.
func paintFor(environ []string) paint {
	return paint(variable(environ, "NO_COLOR") == "" && variable(environ, "TERM") != "dumb")
}

func variable(environ []string, name string) string {
	for _, v := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// as returns text in a style. It escapes text, because it may hold text of others.
func (p paint) as(s style, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + terminal.Escape(text) + "\x1b[0m"
}

// columnsOf is how many columns text takes. Styles take none.
func columnsOf(text string) int { return utf8.RuneCountInString(painted.ReplaceAllString(text, "")) }
