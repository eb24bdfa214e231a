package main

import (
	"strings"
	"testing"
	"time"
)

func TestWhatIsWaitedForSweepsIsExtendedWhileTheyComeOnAndBounded(t *testing.T) {
	began := time.Date(2026, 11, 24, 3, 40, 0, 0, time.UTC)
	type look struct {
		minute int
		stand  string
		over   string // what the bound is called; "": there is time
	}
	for name, looks := range map[string][]look{
		"no sweep": {{0, "", ""}, {7, "", ""}, {8, "", "no sweep was in hand"}},
		"a turn that comes late": {{0, "users waits", ""}, {7, "users waits", ""}, {7, "users begun", ""},
			{14, "users begun", ""}, {15, "users begun", "no sweep came on for 8m0s"}},
		"another sweep before it": {{0, "items reads, users waits", ""}, {7, "items repairs, users waits", ""},
			{13, "users reads", ""}, {20, "", ""}, {27, "", ""}, {28, "", "no sweep was in hand"}},
		"sweeps without end": {{0, "1", ""}, {7, "2", ""}, {14, "3", ""}, {21, "4", ""}, {28, "5", ""},
			{30, "6", "the most that is waited"}},
	} {
		p := newPatience(8*time.Minute, began)
		for _, l := range looks {
			got := p.over(began.Add(time.Duration(l.minute)*time.Minute), l.stand)
			if (got == "") != (l.over == "") || !strings.Contains(got, l.over) {
				t.Errorf("%s, minute %d: %q, want %q", name, l.minute, got, l.over)
			}
		}
	}
}
