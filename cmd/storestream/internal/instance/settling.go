package instance

import (
	"errors"
	"slices"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller/rest"
)

// mostRanges is how many ranges of days people are shown: the first ones, which hold settled, and the last.
const mostRanges = 30

var dayStates = map[rest.DayState]status.DayState{
	rest.Unread: status.DayUnread, rest.Closed: status.DayClosed,
	rest.NotClosed: status.DayNotClosed, rest.Open: status.DayOpen,
}

// settling returns the settled part of a resource by its watermark, and the open part. days are the days that
// are not settled, from its source here. Nil means unknown.
func settling(w watermark.Watermark, c config.Resource, days []rest.DayRange) *status.Settling {
	s := &status.Settling{Settled: timeOf(w.Settled), OverlapSeconds: c.Overlap.Seconds()}
	if w.Replay != nil {
		s.ReplayFrom, s.ReplayTo = timeOf(max(w.Replay.From, connect.Start(c))), timeOf(w.Replay.Settled)
	}
	if c.Source == config.Postgres {
		s.ByFloor = w.Floor != nil
		if w.Cursor != nil {
			s.Cursor = timeOf(w.Cursor.UpdatedAt)
		}
		return s
	}
	for _, r := range since(days, s.Settled.Truncate(oneDay)) {
		state := dayStates[r.State]
		if again := s.ReplayTo.Truncate(oneDay); state == status.DayUnread && r.From.Before(again) {
			first := r
			first.To = earlier(r.To, again.Add(-oneDay))
			s.Days = append(s.Days, daysOf(first, status.DayReplaying))
			if r.From = again; r.To.Before(again) {
				continue
			}
		}
		s.Days = append(s.Days, daysOf(r, state))
	}
	if n := len(s.Days); n > mostRanges {
		s.Days = slices.Concat(s.Days[:mostRanges-1], s.Days[n-1:])
	}
	return s
}

const oneDay = 24 * time.Hour

// since returns days from the first one that is not settled on. Days behind that one which the source has
// closed, and no longer names, are about to settle.
func since(days []rest.DayRange, first time.Time) []rest.DayRange {
	for len(days) > 0 && !days[0].To.IsZero() && days[0].To.Before(first) {
		days = days[1:]
	}
	if len(days) == 0 || first.IsZero() {
		return days
	}
	days = slices.Clone(days)
	if days[0].From.After(first) {
		days = slices.Insert(days, 0, rest.DayRange{From: first, To: days[0].From.Add(-oneDay), State: rest.Closed})
	}
	days[0].From = first
	return days
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func daysOf(r rest.DayRange, state status.DayState) status.Days {
	d := status.Days{From: r.From.Format(time.DateOnly), State: state, Next: r.Next.UTC()}
	if !r.To.IsZero() {
		d.To = r.To.Format(time.DateOnly)
	}
	if r.Why != "" {
		d.Why = status.FirstLine(errors.New(r.Why))
	}
	return d
}
