package instance

import (
	"errors"
	"slices"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// live is what an owner does now, for the page and the metrics.
type live struct {
	poller *poller.Poller // nil between the polls of two takeovers
	status poller.Status  // of the poller, when live is shown
	// doing is the activity instead of polling, and since is when it began. err is the failure that the owner
	// is in, nil if none, and failed is when that began.
	doing  string
	since  time.Time
	err    error
	failed time.Time
	// detail is the activity of the poller's source, or "", and detailSince is when it began.
	detail      string
	detailSince time.Time
	// days are the days that are not settled, from the poller's source. Nil means unknown.
	days []health.Days
}

// unansweredAfter is how long a statement may go unanswered before the page says so.
const unansweredAfter = 5 * time.Second

// addTo adds it to the facts of a resource.
func (l *live) addTo(r *health.Resource, paused bool) {
	p := &l.status
	r.Trouble = l.trouble(paused)
	if r.Polling = l.poller != nil; !r.Polling {
		r.Doing, r.DoingSince = l.doing, l.since.UTC()
		return
	}
	r.Passes, r.DedupBytes = p.Complete, p.DedupBytes
	r.Doing, r.DoingSince = p.Doing, p.Since.UTC()
	switch {
	case p.Doing == "polling" && l.detail == postgres.Unanswered && time.Since(l.detailSince) < unansweredAfter:
	case p.Doing == "polling" && l.detail != "":
		r.Doing, r.DoingSince = l.detail, l.detailSince.UTC()
	case p.Doing == "waiting" && p.Err != nil:
		r.Doing = "waiting to try again"
	case p.Doing == "waiting":
		r.Doing = "waiting for the next poll"
	}
	if s := p.Sweep; s.Doing != "" || s.Error != "" {
		s.Error, s.Since, s.Next = status.FirstLine(errors.New(s.Error)), s.Since.UTC(), s.Next.UTC()
		r.Sweeping = &s
	}
}

// trouble returns why the resource is blocked, fails, or settles no further. The watermark's Trouble may be a
// predecessor's until the first poll has ended. The first failures are not in it.
func (l *live) trouble(paused bool) *watermark.Trouble {
	t := l.status.Watermark.Trouble
	switch {
	case l.poller == nil && l.err == nil:
		return nil
	case l.poller == nil:
		return &watermark.Trouble{Why: status.FirstLine(l.err), Since: schemas.InstantOf(l.failed),
			Failing: !needsAPerson(l.err)}
	case l.status.Err != nil && (t == nil || t.SettlingDelayed()):
		return &watermark.Trouble{Why: status.FirstLine(l.status.Err), Failing: true,
			Since: schemas.InstantOf(l.status.FailedSince)}
	case l.status.Err != nil, l.status.Delayed != "", paused:
		return t
	}
	return nil
}

// mostRanges is how many ranges of days people are shown: the first ones, which hold settled, and the last.
const mostRanges = 30

// settling returns the open part of a resource behind settled.
func (l *live) settling(w *watermark.Watermark, c config.Resource) *health.Settling {
	s := &health.Settling{OverlapSeconds: c.Overlap.Seconds(), ByFloor: w.Floor != nil}
	at, start := max(w.Settled, connect.Start(c)), connect.Start(c)
	if w.Cursor != nil {
		s.Cursor, at = &w.Cursor.UpdatedAt, max(at, w.Cursor.UpdatedAt)
	}
	if w.Replay != nil {
		start = max(w.Replay.From, start)
	}
	if (w.Replay != nil || w.AsOf == schemas.MinInstant) && at != schemas.MinInstant {
		if s.LoadsAt = &at; start != schemas.MinInstant {
			s.LoadsFrom = &start
		}
	}
	for _, d := range l.days {
		if d.Why != "" {
			d.Why = status.FirstLine(errors.New(d.Why))
		}
		s.Days = append(s.Days, d)
	}
	if n := len(s.Days); n > mostRanges {
		s.Days = slices.Concat(s.Days[:mostRanges-1], s.Days[n-1:])
	}
	return s
}
