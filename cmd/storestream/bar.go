package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/storestream/storestream/internal/compare"
)

// bar shows on a terminal how far a long reading is; elsewhere it shows nothing.
type bar struct {
	w       io.Writer // nil: no terminal
	current *progressbar.ProgressBar
	what    string
	said    bool // what is a line, and no bar
}

func newBar(w io.Writer) *bar {
	if !isTerminal(w) {
		return &bar{}
	}
	return &bar{w: w}
}

// reading shows how far the comparison of a resource is. The rows of the topic are the best guess of how many the service has.
func (b *bar) reading(resource string, p compare.Progress) {
	switch {
	case b.w == nil:
	case p.SourceRows == 0:
		b.begin(resource+": reading the topic", -1)
		_ = b.current.Set(p.TopicRows) // a terminal that has gone does not matter, here and below
	default:
		b.begin(resource+": reading the service", max(p.TopicRows, 1))
		if p.SourceRows >= b.current.GetMax() {
			b.current.ChangeMax(p.SourceRows + 1)
		}
		_ = b.current.Set(p.SourceRows)
	}
}

// say shows a line instead of a bar.
func (b *bar) say(text string) {
	if b.w == nil || b.what == text {
		return
	}
	b.clear()
	b.what, b.said = text, true
	_, _ = io.WriteString(b.w, text)
}

func (b *bar) begin(what string, most int) {
	if b.current != nil && b.what == what {
		return
	}
	b.clear()
	b.what = what
	// Without an interval of its own: a spinner with one goes on drawing after it was cleared.
	b.current = progressbar.NewOptions(most, progressbar.OptionSetWriter(b.w), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetSpinnerChangeInterval(0))
}

// clear takes what is shown off the terminal.
func (b *bar) clear() {
	if b.current != nil {
		_ = b.current.Clear()
	}
	if b.said {
		_, _ = io.WriteString(b.w, "\r\x1b[K")
	}
	b.current, b.what, b.said = nil, "", false
}
