package status

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyTheFirstLineOfAnErrorIsShown(t *testing.T) {
	got := FirstLine(errors.New("polling panicked: out of range\ngoroutine 7 [running]"))
	if got != "polling panicked: out of range ... (the log has the rest)" {
		t.Error(got)
	}
	got = FirstLine(errors.New(strings.Repeat("ä", 1000)))
	if len(got) > 640 || strings.Contains(got, "\ufffd") {
		t.Error(got)
	}
}
