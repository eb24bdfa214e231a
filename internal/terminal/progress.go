package terminal

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress is one line of a terminal that shows a command's progress: a bar or a text. Without a terminal it
// shows nothing. No method fails.
type Progress struct {
	w     io.Writer // nil without a terminal
	outer Writer    // its Hide is applied to texts
	what  string    // the text that is shown now
	bar   *progressbar.ProgressBar
}

// NewProgress returns the progress line of w, usually stderr.
func NewProgress(w io.Writer) *Progress {
	if !Is(w) {
		return &Progress{}
	}
	p := &Progress{w: w}
	if outer, ok := w.(*Writer); ok { // a progress line is drawn with control characters, which that one escapes
		p.w, p.outer.Hide = outer.W, outer.Hide
	}
	return p
}

// Show draws a bar: done of about total. Zero means that the total is unknown. A bar that reaches a guessed
// total waits just before its end.
func (p *Progress) Show(what string, done, total int) {
	if p.w == nil {
		return
	}
	what = Escape(p.outer.hide(what))
	if p.bar == nil || p.what != what {
		p.begin(what, total)
	}
	if total > 0 && done >= p.bar.GetMax() {
		p.bar.ChangeMax(done + 1)
	}
	_ = p.bar.Set(done)
}

func (p *Progress) begin(what string, total int) {
	p.Clear()
	if total == 0 {
		total = -1 // the library's word for unknown
	}
	p.what = what
	p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(p.w),
		progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0)) // a spinner with an interval draws on after Clear
}

// Say replaces the line with a text.
func (p *Progress) Say(text string) {
	if p.w == nil {
		return
	}
	if text = Escape(p.outer.hide(text)); p.what == text {
		return
	}
	p.Clear()
	p.what = text
	_, _ = io.WriteString(p.w, text)
}

// Clear empties the line.
func (p *Progress) Clear() {
	switch {
	case p.bar != nil:
		_ = p.bar.Clear()
	case p.what != "":
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
	p.bar, p.what = nil, ""
}
