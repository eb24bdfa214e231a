package poller

import (
	"slices"
	"time"

	"github.com/storestream/storestream/schemas"
)

// Poll is how one poll ended.
type Poll struct {
	Began   schemas.Instant
	Took    time.Duration
	Rows    int64  // published since the poll before ended: by this one, and by a sweep's repair
	Outcome string // as the metric counts it: ok, blocked or failed

	began time.Time // by the clock that tells one poll from the next
}

// mostPolls is how many polls are kept for people.
const mostPolls = 50

// pollLog keeps the last polls, the newest last.
type pollLog struct {
	polls []Poll
	rows  int64 // the watermark's, when the last poll ended
}

// add notes how a poll ended; rows are the watermark's. A poll that went well and whose sweep failed ends
// twice: the second outcome counts. The slice that it returns does not change any more.
func (l *pollLog) add(poll Poll, rows int64) []Poll {
	poll.Rows, l.rows = rows-l.rows, rows
	kept := l.polls
	if n := len(kept); n > 0 && kept[n-1].began.Equal(poll.began) {
		poll.Rows += kept[n-1].Rows
		kept = kept[:n-1]
	}
	l.polls = append(slices.Clone(kept[max(0, len(kept)-mostPolls+1):]), poll)
	return l.polls
}
