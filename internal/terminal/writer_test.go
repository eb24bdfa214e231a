package terminal

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
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

func TestAWriterHidesSecretsAndEscapes(t *testing.T) {
	var out bytes.Buffer
	w := &Writer{W: &out, Hide: func(text string) string { return strings.ReplaceAll(text, "geheim", "***") }}
	const text, want = "\x1b[31mred\x1b[0m geheim", `\u001b[31mred\u001b[0m ***`
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil || out.String() != want {
		t.Errorf("%q, %d of %d, %v", out.String(), n, len(text), err)
	}
}

func TestUnitsAreWrittenAsPeopleDo(t *testing.T) {
	got := []string{
		Count(0), Count(999), Count(1000), Count(int64(-1234567)), Plural(1, "row"), Plural(1000, "row"),
		Duration(-time.Second), Duration(840 * time.Millisecond), Duration(42 * time.Second),
		Duration(185 * time.Second), Duration(130 * time.Minute), Duration(99 * time.Hour),
	}
	want := []string{
		"0", "999", "1,000", "-1,234,567", "1 row", "1,000 rows",
		"0.0s", "0.8s", "42s",
		"3m5s", "2h10m", "4d3h",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nexpected %q", got, want)
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
