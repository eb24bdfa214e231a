package main

import (
	"context"
	"sync"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// tenure guards what an owner shows while takeovers come and go.
type tenure struct {
	mu     sync.Mutex
	poller *poller.Poller
	doing  string // while there is no poller
	detail string // of what the poller's source does; "" for nothing in particular
	since  time.Time
	// detailed is when detail was last changed.
	detailed time.Time
	err      error
	failed   time.Time
	// earliest is the updated_at of the first row of a first load that began here; MinInstant: not known. awaited: it is to be noted.
	earliest schemas.Instant
	awaited  bool
}

// show replaces what the status page sees: a poller, or what is done while there is none.
func (o *owner) show(p *poller.Poller, doing string, err error) {
	t := &o.shown
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.failed = time.Time{}
	} else if t.failed.IsZero() {
		t.failed = time.Now()
	}
	t.poller, t.doing, t.since, t.err, t.detail = p, doing, time.Now(), err, ""
}

func (t *tenure) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// polls says whether there is a poller, which then tells the metrics.
func (o *owner) polls() bool {
	o.shown.mu.Lock()
	defer o.shown.mu.Unlock()
	return o.shown.poller != nil
}

// detail takes from a source what it does, for people; "" for nothing in particular.
func (o *owner) detail(text string) {
	o.shown.mu.Lock()
	defer o.shown.mu.Unlock()
	if o.shown.detail != text {
		o.shown.detail, o.shown.detailed = text, time.Now()
	}
}

// publish is how the poller writes: a commit, of which the page is shown a little.
func (o *owner) publish(session *producer.Session) func(context.Context, watermark.Transaction) error {
	mark := session.Watermark()
	if mark.Settled == schemas.MinInstant && mark.Cursor == nil {
		o.shown.mu.Lock()
		o.shown.earliest, o.shown.awaited = schemas.MinInstant, true
		o.shown.mu.Unlock()
	}
	return func(ctx context.Context, tx watermark.Transaction) error {
		if err := session.Commit(ctx, tx); err != nil {
			return err
		}
		o.in.board.Published(o.resource, tx.Rows, tx.Deletes)
		o.shown.began(tx.Rows)
		return nil
	}
}

// began notes where a first load begins: its first rows are the oldest.
func (t *tenure) began(rows []schemas.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.awaited || len(rows) == 0 {
		return
	}
	t.awaited, t.earliest = false, rows[0].UpdatedAt
	for i := range rows {
		t.earliest = min(t.earliest, rows[i].UpdatedAt)
	}
}

// snapshot is what this instance itself knows of the resource.
func (o *owner) snapshot(owned bool) status.Resource {
	r := status.Resource{Name: o.resource.Name, Source: o.in.cfg.Resources[o.resource.Name].Source,
		IntervalSeconds: o.in.cfg.Resources[o.resource.Name].Interval.Seconds(), Owned: owned}
	t := &o.shown
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.poller == nil && !owned {
		return r
	}
	if t.poller == nil {
		r.Doing, r.Since, r.FailedSince = t.doing, t.since.UTC(), t.failed.UTC()
		if t.err != nil {
			r.Error = firstLine(t.err)
		}
		return r
	}
	s := t.poller.Status()
	r.Passes, r.Held, r.Replaying = s.Complete, s.Held, s.Watermark.Replay != nil
	r.Doing, r.Since = t.does(s)
	r.Unanswered = r.Doing == postgres.Unanswered
	r.Settled, r.AsOf, r.Good = timeOf(s.Watermark.Settled), timeOf(s.Watermark.AsOf), timeOf(s.Good)
	r.Rows, r.DeadLetters, r.SeenBytes = s.Watermark.Rows, s.DeadLetters, s.DedupBytes
	r.Sweep, r.SweepInHand = sweeps(s.Watermark, s.Sweep)
	r.Progress = t.progress(s.Watermark, start(o.in.cfg.Resources[o.resource.Name]))
	if s.Err != nil {
		r.Error, r.FailedSince = firstLine(s.Err), s.FailedSince.UTC()
	}
	if refused := o.in.client.State().RefusedSince; r.Source == config.REST && s.Doing == "polling" && !refused.IsZero() {
		r.Doing, r.Since = "waiting for the rate limit", refused.UTC()
	}
	return r
}

// does says what the poller does and since when, as its source tells it. The caller holds t.mu.
func (t *tenure) does(s poller.Status) (string, time.Time) {
	switch {
	case s.Doing == "polling" && t.detail != "":
		return t.detail, t.detailed.UTC()
	case s.Doing == "waiting" && s.Err != nil:
		return "waiting to try again", s.Since.UTC()
	case s.Doing == "waiting":
		return "waiting for the next poll", s.Since.UTC()
	}
	return s.Doing, s.Since.UTC()
}

// progress is how far a first load or a replay has come; nil where there is none. The caller holds t.mu.
func (t *tenure) progress(w watermark.Watermark, start schemas.Instant) *status.Progress {
	at := w.Settled
	if w.Cursor != nil {
		at = max(at, w.Cursor.UpdatedAt)
	}
	switch {
	case w.Replay != nil:
		return &status.Progress{From: timeOf(max(w.Replay.From, start)), At: timeOf(max(at, start))}
	case w.AsOf == schemas.MinInstant:
		return &status.Progress{From: timeOf(max(t.earliest, start)), At: timeOf(at)}
	}
	return nil
}

// sweeps is the last sweep and the one asked for or in hand, nil where there is none.
func sweeps(w watermark.Watermark, now poller.SweepStatus) (last *status.Sweep, next *status.SweepInHand) {
	if s := w.Swept; s != nil {
		last = &status.Sweep{Began: timeOf(s.Began), Ended: timeOf(w.LastSweep), SourceRows: s.SourceRows, TopicRows: s.TopicRows, DeadLetters: s.DeadLetters,
			Missing: s.Missing, Stale: s.Stale, Extra: s.Extra, Published: s.Published, Tombstones: s.Tombstones, Left: s.Left}
	}
	if w.Sweep == nil && now.Doing == "" && now.Err == nil {
		return last, nil
	}
	next = &status.SweepInHand{Doing: now.Doing, Since: now.Since.UTC(), Rows: now.Rows, Of: now.Of}
	if w.Sweep != nil {
		next.Asked = timeOf(w.Sweep.At)
	}
	if now.Err != nil {
		next.Error, next.Next = firstLine(now.Err), now.Next.UTC()
	}
	return last, next
}

// requests is what was sent to the service for a resource.
func requests(codes map[string]int64) *status.Requests {
	r := &status.Requests{Codes: codes}
	for _, n := range codes {
		r.Total += n
	}
	return r
}

// service is the way to the REST service.
func (in *instance) service() *status.Service {
	state := in.client.State()
	s := &status.Service{Allowed: state.RequestsPerSecond, Ceiling: in.cfg.Store.MaxRequestsPerSecond, RefusedSince: state.RefusedSince.UTC()}
	if state.HasClock {
		skew := state.ClockSkew.Seconds()
		s.ClockSkewSeconds = &skew
	}
	return s
}

// counted adds what the metrics have counted.
func counted(s *status.Snapshot, m *metrics.Set) {
	sent, rows, fields := m.Requests(), m.Published(), m.Fields()
	for i := range s.Resources {
		r := &s.Resources[i]
		r.Published, r.UnknownFields = rows[r.Name], fields[r.Name]
		if r.Source == config.REST {
			r.Requests = requests(sent[r.Name])
		}
	}
}

// timeOf is the zero time for "not yet".
func timeOf(i schemas.Instant) time.Time {
	if i == schemas.MinInstant {
		return time.Time{}
	}
	return i.Time()
}
