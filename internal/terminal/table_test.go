package terminal

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOnlyTerminalsThatWantColorsGetThem(t *testing.T) {
	for _, test := range []struct {
		terminal bool
		environ  []string
		want     Paint
	}{
		{true, []string{"TERM=xterm"}, true},
		{false, []string{"TERM=xterm"}, false},
		{true, []string{"NO_COLOR=1"}, false},
		{true, []string{"NO_COLOR="}, true},
		{true, []string{"NO_COLOR=1", "NO_COLOR="}, true},
		{true, []string{"TERM=dumb"}, false},
	} {
		if got := PaintFor(test.terminal, test.environ); got != test.want {
			t.Errorf("terminal %v, %s: %v", test.terminal, test.environ, got)
		}
	}
}

func TestColorsChangeNoAlignment(t *testing.T) {
	var b strings.Builder
	table := NewTable(true, "A", "B").Numbers(1)
	table.Row(Paint(true).As(Red, "fünf"), "5")
	table.Row("x", "1,000")
	_ = table.Print(&b)
	want := "\x1b[1mA\x1b[0m         \x1b[1mB\x1b[0m\n\x1b[31mfünf\x1b[0m      5\nx     1,000\n"
	if b.String() != want {
		t.Errorf("%q, expected %q", b.String(), want)
	}
}

func TestUnitsAreWrittenAsPeopleDo(t *testing.T) {
	got := []string{
		Count(0), Count(999), Count(1000), Count(int64(-1234567)), Plural(1, "row"), Plural(1000, "row"),
		Duration(-time.Second), Duration(840 * time.Millisecond), Duration(42 * time.Second),
		Duration(185 * time.Second), Duration(130 * time.Minute), Duration(99 * time.Hour),
		Pad("7", 3) + "|",
	}
	want := []string{
		"0", "999", "1,000", "-1,234,567", "1 row", "1,000 rows",
		"0.0s", "0.8s", "42s",
		"3m5s", "2h10m", "4d3h",
		"7  |",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nexpected %q", got, want)
	}
}
