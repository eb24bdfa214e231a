// Command picture draws a terminal's output, with its colors, as an SVG. It reads standard input and writes
// standard output. build/terminal calls it.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	columns    = 132 // wider lines are cut: a picture is not read to the end of a line
	charWidth  = 7.8
	lineHeight = 19
	margin     = 16
)

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// draw reads all of r and writes the picture of it.
func draw(r io.Reader, w io.Writer) error {
	var lines []string
	in := bufio.NewScanner(r)
	for in.Scan() {
		line := in.Text()
		if i := strings.LastIndex(strings.TrimRight(line, "\r"), "\r"); i >= 0 {
			line = line[i+1:] // a progress line was drawn before
		}
		lines = append(lines, strings.TrimRight(line, "\r"))
	}
	if err := in.Err(); err != nil {
		return err
	}
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-size="13" `+
		`font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" fill="#d7dae0">`+"\n",
		columns*charWidth+2*margin, len(lines)*lineHeight+2*margin)
	svg.WriteString(`<rect width="100%" height="100%" rx="8" fill="#16181d"/>` + "\n")
	for i, line := range lines {
		drawLine(&svg, line, margin+(i+1)*lineHeight-5)
	}
	svg.WriteString("</svg>\n")
	_, err := io.WriteString(w, svg.String())
	return err
}

var escape = regexp.MustCompile("\x1b\\[([0-9;]*)([A-Za-z])")

// looks are the styles of build/terminal and of the demo, by their SGR code.
var looks = map[string]string{"1": `font-weight="bold"`, "2": `opacity="0.6"`, "31": `fill="#ff7b72"`,
	"32": `fill="#7ee787"`, "33": `fill="#e3b341"`, "36": `fill="#79c0ff"`}

// drawLine draws a line with its base at y, each part of one style at its column.
func drawLine(svg *strings.Builder, line string, y int) {
	at, look := 0, ""
	text := func(part string) {
		if room := columns - at; utf8.RuneCountInString(part) > room {
			part = string([]rune(part + "…")[:max(0, room-1)]) + "…"
		}
		n := utf8.RuneCountInString(part)
		if strings.TrimSpace(part) != "" {
			fmt.Fprintf(svg, `<text x="%.1f" y="%d" textLength="%.1f" xml:space="preserve" %s>%s</text>`+
				"\n", margin+float64(at)*charWidth, y, float64(n)*charWidth, look, html.EscapeString(part))
		}
		at += n
	}
	for {
		found := escape.FindStringSubmatchIndex(line)
		if found == nil {
			text(line)
			return
		}
		text(line[:found[0]])
		if line[found[4]:found[5]] == "m" {
			look = looks[line[found[2]:found[3]]]
		}
		line = line[found[1]:]
	}
}
