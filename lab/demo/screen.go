package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// style is the number of an ANSI colour or emphasis.
type style string

const (
	normal style = ""
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// screen is where the demo writes: a terminal, on which the last lines can be drawn anew, or anything else, which gets plain lines.
type screen struct {
	out      io.Writer
	terminal *os.File // nil: out is none that can move its cursor
	colours  bool
	drawn    int   // lines of the block at the end that draw draws anew
	passing  bool  // that block goes when something else is written
	err      error // of the first write that failed
}

func newScreen(out io.Writer, environ []string) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && variable(environ, "TERM") != "dumb" {
		s.terminal = f
		s.colours = variable(environ, "NO_COLOR") == "" // https://no-color.org: any value but the empty one
	}
	return s
}

// variable is the value of an environment variable, "" where it is not set. Of several the last counts, as everywhere.
func variable(environ []string, name string) string {
	for _, v := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// size is the terminal's, in columns and lines.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// paint gives text a style, where there are colours.
func (s *screen) paint(as style, text string) string {
	if !s.colours || as == normal || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// print writes lines below everything that was written before.
func (s *screen) print(lines ...string) {
	if s.passing {
		s.draw(nil)
	}
	s.drawn, s.passing = 0, false
	s.write(strings.Join(lines, "\n") + "\n")
}

func (s *screen) write(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.out, text)
	}
}

func (s *screen) title(name, text string) {
	s.print(s.paint(bold, name)+": "+text, "")
}

// part writes what a part is called, where it is, and what else is to say of it; empty remarks are left out.
func (s *screen) part(name, where string, remarks ...string) {
	remark := strings.Join(slices.DeleteFunc(remarks, func(r string) bool { return r == "" }), "; ")
	line := "  " + s.paint(bold, fmt.Sprintf("%-17s", name)) + " " + s.paint(cyan, where)
	if remark != "" {
		line += strings.Repeat(" ", max(0, 27-len(where))) + " " + s.paint(faint, remark)
	}
	s.print(line)
}

// reason writes below a part why it is as it is.
func (s *screen) reason(err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		s.print("    " + s.paint(yellow, line))
	}
}

// starting says on a terminal what is being waited for, until the next line takes its place.
func (s *screen) starting(name string) {
	if s.terminal != nil {
		s.draw([]string{"  " + s.paint(bold, fmt.Sprintf("%-17s", name)) + " " + s.paint(faint, "starting")})
		s.passing = true
	}
}

// farewell is a note after an interrupt, whose ^C the terminal may have put at the start of the line.
func (s *screen) farewell(text string) {
	if s.terminal != nil {
		s.write("\r\x1b[K\n")
	}
	s.note("%s", text)
}

func (s *screen) note(format string, args ...any) {
	s.print("  " + s.paint(faint, fmt.Sprintf(format, args...)))
}

// draw replaces the lines that it wrote last, as long as nothing else was written since. On what is no terminal it adds them.
func (s *screen) draw(lines []string) {
	if s.terminal == nil {
		s.print(lines...)
		return
	}
	var text strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\r", s.drawn)
	}
	for _, line := range lines {
		text.WriteString(line + "\x1b[K\n")
	}
	text.WriteString("\x1b[J")
	s.write(text.String())
	s.drawn = len(lines)
}
