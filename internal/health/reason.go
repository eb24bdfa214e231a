package health

import (
	"slices"
	"strings"

	"github.com/storestream/storestream/internal/watermark"
)

// Reason is a reason for which a resource is blocked, incomplete or paused, settling is delayed, or a row is
// deferred.
type Reason struct {
	Code  string
	State State // Blocked, Incomplete, SettlingDelayed or Paused
	// Says are words of the text that storestream gives as the reason, and that no other reason has. "..."
	// stands for what differs from case to case, and "|" is between the texts of one reason.
	Says string
	// Means explains the reason in sentences. It is "" if the text explains itself.
	Means string
	// Remedy is the instruction. It begins in lower case and has no full stop at the end, because readers
	// print it after an arrow.
	Remedy string
	// See is the file and the heading that say more, or "": docs/operations.md, "Dead letters".
	See string
}

// ReasonOf returns the reason for a text that storestream gave while a resource was in this state, or nil if
// no reason of Reasons has it. Only Blocked is distinguished from the other states, because a deferred row
// also delays settling. A text may wrap another reason's ("2026-11-20 cannot be closed: ..."), so the wrapped
// ones come first in Reasons.
func ReasonOf(state State, text string) *Reason {
	i := slices.IndexFunc(Reasons, func(r Reason) bool {
		return (r.State == Blocked) == (state == Blocked) && r.in(text)
	})
	if i < 0 {
		return nil
	}
	return &Reasons[i]
}

// in reports whether text has the words of r.
func (r *Reason) in(text string) bool {
	return slices.ContainsFunc(r.Texts(), func(says string) bool {
		begin, end, _ := strings.Cut(says, "...")
		_, rest, found := strings.Cut(text, strings.TrimSpace(begin))
		return found && strings.Contains(rest, strings.TrimSpace(end))
	})
}

// Texts returns the texts of r: Says, taken apart.
func (r *Reason) Texts() []string { return strings.Split(r.Says, " | ") }

// remedyOf returns what to do about t, or "" if that is not known.
func remedyOf(t *watermark.Trouble) string {
	state := SettlingDelayed
	if t.Blocked() {
		state = Blocked
	}
	reason := ReasonOf(state, t.Why)
	if t.Failing || reason == nil {
		return ""
	}
	return reason.advice()
}

// advice returns the remedy, and where to read more.
func (r *Reason) advice() string {
	if r.See == "" {
		return r.Remedy
	}
	return r.Remedy + " (" + r.See + ")"
}
