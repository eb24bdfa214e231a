package instance

import (
	"sync"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/poller/rest"
	"github.com/storestream/storestream/schemas"
)

// unansweredAfter is how long a statement may go unanswered before the page says so.
const unansweredAfter = 5 * time.Second

// ownerStatus is the state of an owner for the page and the metrics, across takeovers. It is safe for
// concurrent use.
type ownerStatus struct {
	name  string
	c     config.Resource
	start schemas.Instant // the configured one

	mu     sync.Mutex
	poller *poller.Poller // nil between polls of two takeovers
	doing  string         // the activity instead of polling, since when
	since  time.Time
	err    error     // the failure that the owner is in, nil if none
	failed time.Time // since when
	// detail is the activity of the poller's source, or "", and since when.
	detail      string
	detailSince time.Time
	// days are the days that are not settled, from the poller's source. Nil means unknown.
	days []rest.DayRange
	// earliest is the updated_at of the first row of a first load that began here, or MinInstant.
	earliest schemas.Instant
}

func newOwnerStatus(name string, c config.Resource) *ownerStatus {
	return &ownerStatus{name: name, c: c, start: connect.Start(c), earliest: schemas.MinInstant}
}

// does notes the owner's activity instead of polling, and its current failure.
func (s *ownerStatus) does(doing string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(nil, doing, err)
}

// goesOn notes the owner's next activity. The failure stays until it polls.
func (s *ownerStatus) goesOn(doing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(nil, doing, s.err)
}

// polls says that p polls from now on.
func (s *ownerStatus) polls(p *poller.Poller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(p, "", nil)
}

func (s *ownerStatus) show(p *poller.Poller, doing string, err error) {
	if err == nil {
		s.failed = time.Time{}
	} else if s.failed.IsZero() {
		s.failed = time.Now()
	}
	s.poller, s.doing, s.since, s.err, s.detail, s.days = p, doing, time.Now(), err, "", nil
}

// sourceDoes notes the activity of the poller's source, in words for people, or "".
func (s *ownerStatus) sourceDoes(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.detail != text {
		s.detail, s.detailSince = text, time.Now()
	}
}

// sourceHasDays notes the days that are not settled, from the poller's source.
func (s *ownerStatus) sourceHasDays(days []rest.DayRange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.days = days
}

// loadsFrom notes the start of a first load that began here.
func (s *ownerStatus) loadsFrom(earliest schemas.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.earliest = earliest
}

// polling says whether there is a poller, which then sets the resource's metrics.
func (s *ownerStatus) polling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poller != nil
}

// refused says whether this instance cannot take the resource over before a person has put something right.
func (s *ownerStatus) refused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poller == nil && needsAPerson(s.err)
}

// snapshot returns this instance's own state of the resource. refused and until are those of refusal.
func (s *ownerStatus) snapshot(owned bool, refused, until time.Time) status.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := status.Resource{Name: s.name, Source: s.c.Source, IntervalSeconds: s.c.Interval.Seconds(), Owned: owned}
	switch {
	case s.poller != nil:
		s.addPoller(&r, s.poller.Status(), refused, until)
	case owned:
		r.Doing, r.Since, r.FailedSince = s.doing, s.since.UTC(), s.failed.UTC()
		if s.err != nil {
			r.Error = status.FirstLine(s.err)
		}
	}
	return r
}

func (s *ownerStatus) addPoller(r *status.Resource, p poller.Status, refused, until time.Time) {
	r.Passes, r.Delayed, r.Replaying = p.Complete, p.Delayed, p.Watermark.Replay != nil
	r.Doing, r.Since = s.pollerDoes(p)
	r.Unanswered = r.Doing == postgres.Unanswered
	r.Settled, r.AsOf, r.Good = timeOf(p.Watermark.Settled), timeOf(p.Watermark.AsOf), timeOf(p.Good)
	r.Rows, r.DeadLetters, r.DedupBytes = p.Watermark.Rows, p.DeadLetters, p.DedupBytes
	r.Sweep, r.SweepInHand = lastSweep(p.Watermark), sweepInHand(p.Watermark, p.Sweep)
	r.Progress, r.OtherPolicies = s.progress(p.Watermark), p.Watermark.Policies.Mixed()
	r.Settling = settling(p.Watermark, s.c, s.days)
	for _, poll := range p.Polls {
		r.Polls = append(r.Polls, status.Poll{Began: timeOf(poll.Began), Seconds: poll.Took.Seconds(),
			Rows: poll.Rows, Outcome: poll.Outcome})
	}
	trouble := p.Watermark.Trouble // it may have begun before this instance did
	if p.Err != nil {
		r.Error, r.FailedSince = status.FirstLine(p.Err), p.FailedSince.UTC()
		if trouble != nil && !trouble.SettlingDelayed() && trouble.Since.Time().Before(r.FailedSince) {
			r.FailedSince = trouble.Since.Time()
		}
	}
	if p.Delayed != "" && trouble.SettlingDelayed() {
		r.DelayedSince = trouble.Since.Time()
	}
	if r.Source == config.REST && p.Doing == "polling" && !refused.IsZero() {
		r.Doing, r.Since = "waiting for the rate limit", refused.UTC()
		if !until.IsZero() {
			r.Doing += ", until " + until.UTC().Format(time.TimeOnly) + " UTC"
		}
	}
}

// pollerDoes returns the poller's activity and since when, in its source's words.
func (s *ownerStatus) pollerDoes(p poller.Status) (string, time.Time) {
	switch {
	case p.Doing == "polling" && s.detail == postgres.Unanswered && time.Since(s.detailSince) < unansweredAfter:
	case p.Doing == "polling" && s.detail != "":
		return s.detail, s.detailSince.UTC()
	case p.Doing == "waiting" && p.Err != nil:
		return "waiting to try again", p.Since.UTC()
	case p.Doing == "waiting":
		return "waiting for the next poll", p.Since.UTC()
	}
	return p.Doing, p.Since.UTC()
}

// progress returns the progress of a first load or a replay, or nil.
func (s *ownerStatus) progress(w watermark.Watermark) *status.Progress {
	at := w.Settled
	if w.Cursor != nil {
		at = max(at, w.Cursor.UpdatedAt)
	}
	switch {
	case w.Replay != nil:
		return &status.Progress{From: timeOf(max(w.Replay.From, s.start)), At: timeOf(max(at, s.start))}
	case w.AsOf == schemas.MinInstant:
		return &status.Progress{From: timeOf(max(s.earliest, s.start)), At: timeOf(at)}
	}
	return nil
}

// lastSweep returns the last sweep that was finished, or nil.
func lastSweep(w watermark.Watermark) *status.Sweep {
	s := w.Swept
	if s == nil {
		return nil
	}
	return &status.Sweep{Began: timeOf(s.Began), Ended: timeOf(w.LastSweep), SourceRows: s.SourceRows,
		TopicRows: s.TopicRows, DeadLetters: s.DeadLetters, Missing: s.Missing, Stale: s.Stale, Extra: s.Extra,
		Published: s.Published, Tombstones: s.Tombstones, Left: s.Left}
}

// sweepInHand returns the sweep that waits or is in hand, or nil.
func sweepInHand(w watermark.Watermark, now poller.SweepStatus) *status.SweepInHand {
	if w.Sweep == nil && now.Doing == "" && now.Err == nil {
		return nil
	}
	s := &status.SweepInHand{Doing: now.Doing, Since: now.Since.UTC(), Rows: now.Rows, Of: now.Of}
	if w.Sweep != nil {
		s.Asked = timeOf(w.Sweep.At)
	}
	if now.Err != nil {
		s.Error, s.Next = status.FirstLine(now.Err), now.Next.UTC()
	}
	return s
}

// timeOf is i as a time; the zero time for "not yet".
func timeOf(i schemas.Instant) time.Time {
	if i == schemas.MinInstant {
		return time.Time{}
	}
	return i.Time()
}
