package main

import "testing"

func TestATextIsCutToItsColumnsWithoutItsStyles(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"abcdef", 4, "abc…"}, {"abcd", 4, "abcd"}, {"\x1b[1mabc\x1b[0m", 2, "\x1b[1ma…\x1b[0m"}, {"ab", 0, ""},
	} {
		if got := cut(test.text, test.columns); got != test.want {
			t.Errorf("%q in %d columns is %q, expected %q", test.text, test.columns, got, test.want)
		}
	}
}
