package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var painted = regexp.MustCompile("\x1b\\[[0-9;]*m")

// cut shortens text to so many columns. The last column then shows that text is missing. Styles stay and end
// as in text.
func cut(text string, columns int) string {
	if columnsOf(text) <= columns {
		return text
	}
	var b strings.Builder
	for used := 0; text != ""; {
		if at := painted.FindStringIndex(text); at != nil && at[0] == 0 {
			b.WriteString(text[:at[1]])
			text = text[at[1]:]
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		if used++; used < columns {
			b.WriteString(text[:size])
		} else if used == columns {
			b.WriteString("…")
		}
		text = text[size:]
	}
	return b.String()
}
