package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// paint colours text for a terminal; false: it leaves it as it is.
type paint bool

// The colors, as SGR codes.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p paint) as(code, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// paintFor is whether to color what goes to a terminal: not where NO_COLOR is set (no-color.org) or the terminal has none.
func paintFor(terminal bool, environ []string) paint {
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if name == "NO_COLOR" && value != "" || name == "TERM" && value == "dumb" {
			return false
		}
	}
	return paint(terminal)
}

var painted = regexp.MustCompile("\x1b\\[[0-9;]*m")

// width is how many columns text takes, its colors left out.
func width(text string) int { return utf8.RuneCountInString(painted.ReplaceAllString(text, "")) }

// pad makes text n columns wide, on the right or the left.
func pad(text string, n int, left bool) string {
	space := strings.Repeat(" ", max(0, n-width(text)))
	if left {
		return space + text
	}
	return text + space
}
