package poller

import (
	"testing"
	"time"
)

func TestThePollLogKeepsTheLastPollsAndTellsTheirRowsApart(t *testing.T) {
	var l pollLog
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	first := l.add(Poll{Outcome: "ok", began: at}, 5)
	second := l.add(Poll{Outcome: "failed", began: at}, 7) // of the same poll: its sweep failed
	if len(first) != 1 || first[0].Rows != 5 || first[0].Outcome != "ok" {
		t.Errorf("somebody may be reading what was returned: %+v", first)
	}
	if len(second) != 1 || second[0].Rows != 7 || second[0].Outcome != "failed" {
		t.Errorf("one poll that ended twice: %+v", second)
	}
	for n := range 2 * mostPolls {
		second = l.add(Poll{Outcome: "ok", began: at.Add(time.Duration(n+1) * time.Second)}, int64(8+n))
	}
	if len(second) != mostPolls || second[0].Rows != 1 || !second[mostPolls-1].began.After(second[0].began) {
		t.Errorf("%d polls: %+v", len(second), second[0])
	}
}
