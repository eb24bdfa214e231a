package instance

import (
	"errors"
	"slices"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// live is what an owner does now, for the page and the metrics.
type live struct {
	poller *poller.Poller // nil between the polls of two takeovers
	status poller.Status  // of the poller, when live is shown
	// doing is the activity of the owner, of its poller or of the poller's source, and since is when it began.
	// err is the failure that the owner is in, nil if none, and failed is when that began.
	doing  string
	since  time.Time
	err    error
	failed time.Time
	// days are the days that are not settled, from the poller's source. Nil means unknown.
	days []health.Days
}

// addTo adds it to the facts of a resource.
func (l *live) addTo(r *health.Resource) {
	p := &l.status
	r.Trouble = l.trouble()
	r.Doing, r.DoingSince = l.doing, l.since.UTC()
	r.Polling, r.Passes, r.DedupBytes = l.poller != nil, p.Complete, p.DedupBytes
	if s := p.Sweep; s != (health.Sweeping{}) {
		if s.Error != "" {
			s.Error = status.FirstLine(errors.New(s.Error))
		}
		r.Sweeping = &s
	}
}

// trouble returns why the resource is blocked, fails, or settles no further.
func (l *live) trouble() *watermark.Trouble {
	t := l.status.Trouble
	switch {
	case l.poller == nil && l.err == nil:
		return nil
	case l.poller == nil:
		return &watermark.Trouble{Why: status.FirstLine(l.err), Since: schemas.InstantOf(l.failed),
			Failing: !producer.Refused(l.err)}
	case l.status.Err != nil && (t == nil || t.SettlingDelayed()):
		return &watermark.Trouble{Why: status.FirstLine(l.status.Err), Failing: true,
			Since: schemas.InstantOf(l.status.FailedSince)}
	}
	return t
}

// mostRanges is how many ranges of days people are shown: the first ones, which hold settled, and the last.
const mostRanges = 30

// settling returns the open part of a resource behind settled.
func (l *live) settling(w *watermark.Watermark, c config.Resource) *health.Settling {
	s := &health.Settling{OverlapSeconds: c.Overlap.Seconds(), ByFloor: w.Floor != nil}
	at, start := max(w.Settled, c.Start), c.Start
	if w.Cursor != nil {
		s.Cursor, at = &w.Cursor.UpdatedAt, max(at, w.Cursor.UpdatedAt)
	}
	if w.Replay != nil {
		start = max(w.Replay.From, start)
	}
	if l := w.Load; l != nil {
		s.LoadsPart = float64(l.Block) / float64(max(l.Blocks, 1))
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
