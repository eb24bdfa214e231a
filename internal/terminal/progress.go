package terminal

import (
	"io"
	"time"
)

// redrawAfter is how long a count stays before Show replaces it.
const redrawAfter = 100 * time.Millisecond

const clearLine = "\r\x1b[K"

// Progress is one line of a terminal that shows a command's progress. Without a terminal it shows nothing. No
// method fails.
type Progress struct {
	w    io.Writer // nil without a terminal
	hide func(text string) string
	line string    // the text that is shown now
	at   time.Time // of the last count
}

// NewProgress returns the progress line of w, usually stderr.
func NewProgress(w io.Writer) *Progress {
	switch outer, ok := w.(*Writer); {
	case !Is(w):
		return &Progress{}
	case ok: // the line is drawn with control characters, which a Writer escapes
		return &Progress{w: outer.W, hide: outer.hide}
	}
	return &Progress{w: w, hide: func(text string) string { return text }}
}

// Show replaces the line with a count: done of about total. Zero means that the total is unknown.
func (p *Progress) Show(what string, done, total int) {
	if time.Since(p.at) < redrawAfter {
		return
	}
	p.at = time.Now()
	text := what + " " + Count(done)
	if total > 0 {
		text += " of about " + Count(total)
	}
	p.Say(text)
}

// Say replaces the line with a text.
func (p *Progress) Say(text string) {
	if p.w == nil || p.line == text {
		return
	}
	p.line = text
	_, _ = io.WriteString(p.w, clearLine+Escape(p.hide(text)))
}

// Clear empties the line.
func (p *Progress) Clear() {
	if p.line != "" {
		p.line = ""
		_, _ = io.WriteString(p.w, clearLine)
	}
}
