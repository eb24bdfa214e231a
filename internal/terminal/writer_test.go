package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWhatATerminalWouldObeyIsEscaped(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"Łódź, 東京 🙂\tand a line\n", "Łódź, 東京 🙂\tand a line\n"},
		{"\x1b[2J\x1b]0;title\x07", `\u001b[2J\u001b]0;title\u0007`},
		{"a\rb\x00c\x7f\b", `a\u000db\u0000c\u007f\u0008`},
		{"\u009b31m", `\u009b31m`},
		{"\x9b31m", `\u009b31m`},
		{"invoice\u202etxt.exe\u2066", `invoice\u202etxt.exe\u2066`},
		{"one\u2028line\u2029", `one\u2028line\u2029`},
		{"\ufffd", "\ufffd"}, // as a replaced character it is harmless
	} {
		if got := Escape(test.text); got != test.want {
			t.Errorf("%q becomes %q, expected %q", test.text, got, test.want)
		}
	}
}

func TestOnlyOurOwnStylesReachATerminalAndNoneAPipe(t *testing.T) {
	painted := Paint(true).As(Red, "not\x1b[5mice") + " \x1b[8mhidden \x1b[31;5m"
	for _, test := range []struct {
		paint Paint
		want  string
	}{
		{true, "\x1b[31mnot\\u001b[5mice\x1b[0m \\u001b[8mhidden \\u001b[31;5m"},
		{false, `\u001b[31mnot\u001b[5mice\u001b[0m \u001b[8mhidden \u001b[31;5m`},
	} {
		var out bytes.Buffer
		if n, err := (&Writer{W: &out, Paint: test.paint}).Write([]byte(painted)); n != len(painted) || err != nil {
			t.Errorf("%d of %d, %v", n, len(painted), err)
		}
		if out.String() != test.want {
			t.Errorf("paint %v: %q, expected %q", test.paint, out.String(), test.want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[31m", "\u009b\u202e\x9b\xff", "ä\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Escape(text)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\r\b\x07\u009b\u202e\u2028") {
			t.Errorf("%q becomes %q", text, got)
		}
		if Escape(got) != got {
			t.Errorf("%q is escaped twice", got)
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal([]byte(Escape(string(encoded))), &back); err != nil ||
			back != strings.ToValidUTF8(text, "\ufffd") && utf8.ValidString(text) {
			t.Errorf("JSON of %q means %q, %v", text, back, err)
		}
	})
}
