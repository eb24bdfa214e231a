package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/storestream/storestream/internal/terminal"
)

// screen is the demo's output. On a terminal it can redraw the last lines. Any other output gets plain lines.
type screen struct {
	out      io.Writer
	terminal *os.File // nil if out cannot move a cursor
	paint    paint
	drawn    int   // lines of the block at the end, which draw replaces
	passing  bool  // that block goes when something else is written
	err      error // of the first write that failed
}

func newScreen(out io.Writer, environ []string) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok && terminal.Is(f) && !slices.Contains(environ, "TERM=dumb") {
		s.terminal, s.paint = f, paintFor(environ)
	}
	return s
}

// size is the terminal's, in columns and lines.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
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

// part writes a part's name, its address and remarks. It skips empty remarks.
func (s *screen) part(name, where string, remarks ...string) {
	remark := strings.Join(slices.DeleteFunc(remarks, func(r string) bool { return r == "" }), "; ")
	line := "  " + s.paint.as(bold, fmt.Sprintf("%-17s", name)) + " " + s.paint.as(cyan, where)
	if remark != "" {
		line += strings.Repeat(" ", max(0, 27-len(where))) + " " + s.paint.as(faint, remark)
	}
	s.print(line)
}

// reason writes below a part why it is as it is.
func (s *screen) reason(err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		s.print("    " + s.paint.as(yellow, line))
	}
}

// starting shows on a terminal the part that is being started, until the next line takes its place.
func (s *screen) starting(name string) { s.waiting(name, "starting") }

// waiting is starting in other words. They may change while the wait goes on.
func (s *screen) waiting(name, words string) {
	if s.terminal != nil {
		width, _ := s.size()
		s.draw([]string{"  " + s.paint.as(bold, fmt.Sprintf("%-17s", name)) + " " +
			s.paint.as(faint, cut(words, width-20))})
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
	s.print("  " + s.paint.as(faint, fmt.Sprintf(format, args...)))
}

// draw replaces the lines that it wrote last, as long as they are still the last ones. If out is not a
// terminal, it adds them.
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
