package terminal

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

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

// Writer escapes text and writes it to W, see Escape. Styles of a Paint stay if Paint is true. Each Write has
// to consist of whole characters.
type Writer struct {
	W     io.Writer
	Paint Paint
	Hide  func(text string) string // if set, masks the secrets in a text
	Err   error                    // the error of the first Write that failed
}

// Write is io.Writer's.
func (w *Writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.W, w.escape(w.hide(string(text)))); err != nil {
		w.Err = cmp.Or(w.Err, err)
		return 0, err
	}
	return len(text), nil
}

func (w *Writer) hide(text string) string {
	if w.Hide == nil {
		return text
	}
	return w.Hide(text)
}

func (w *Writer) escape(text string) string {
	if !w.Paint {
		return Escape(text)
	}
	var b strings.Builder
	for at := styled.FindStringIndex(text); at != nil; at = styled.FindStringIndex(text) {
		b.WriteString(Escape(text[:at[0]]))
		b.WriteString(text[at[0]:at[1]])
		text = text[at[1]:]
	}
	b.WriteString(Escape(text))
	return b.String()
}
