// Package terminal prints for people. It escapes the characters that a terminal would obey, and writes
// numbers, times and sizes as people do.
package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Escape replaces characters that a terminal would obey, or that would deceive its reader: control characters
// (C0 but tab and newline, DEL, C1), the line separators and bidirectional overrides of Unicode, and bytes
// that are no UTF-8. It writes each as JSON does, \u001b, so that JSON stays JSON and means the same. All
// text of others (the service, the database, a broker, the registry) goes through it before a person sees it.
func Escape(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, deceives) {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			_, _ = fmt.Fprintf(&b, `\u%04x`, text[0]) // in an 8-bit terminal the byte may be a C1 control
		case deceives(r):
			_, _ = fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

func deceives(r rune) bool {
	switch {
	case r == '\t', r == '\n':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r == 0x2028, r == 0x2029: // line separators
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional embeddings, overrides, isolates
		return true
	}
	return false
}

// Writer escapes text and writes it to W, see Escape. Each Write has to consist of whole characters.
type Writer struct {
	W    io.Writer
	Hide func(text string) string // if set, masks the secrets in a text
	Err  error                    // the error of the first Write that failed
}

// Write is io.Writer's.
func (w *Writer) Write(p []byte) (int, error) {
	text := string(p)
	if w.Hide != nil {
		text = w.Hide(text)
	}
	if _, err := io.WriteString(w.W, Escape(text)); err != nil {
		w.Err = cmp.Or(w.Err, err)
		return 0, err
	}
	return len(p), nil
}
