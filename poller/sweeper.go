package poller

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// SweepConfig has the settings and surroundings of sweeps and erases. The zero value means that there are
// none.
type SweepConfig struct {
	// Interval is the time between two sweeps. Zero means that a sweep runs only on request.
	Interval time.Duration
	// Tombstone is set if a sweep deletes rows that the source no longer has. Otherwise it only reports them.
	Tombstone bool
	// Source makes the source for the readings of one comparison, which go on beside the polls.
	Source func() Source
	// Topic reads the data topic.
	Topic reconcile.TopicReader
	// Turn is shared by the pollers of a process. A sweep has a place in it during its first reading, which
	// takes most of its memory and of its requests to the service. So its capacity limits both.
	Turn chan struct{}
	// MaxSuspects, Memory and Scratch are those of reconcile.Config, with its defaults.
	MaxSuspects int
	Memory      int64
	Scratch     int64
	// ByID is that of reconcile.Config.
	ByID bool
}

// The wait after the first comparison that failed, and the longest.
const (
	firstSweepRetry = 5 * time.Second
	lastSweepRetry  = 30 * time.Minute
)

const (
	// firstSweepBackoff is the wait after a sweep whose process died. With each death in a row it grows
	// eightfold, up to the interval of the sweeps, or to lastSweepBackoff if sweeps have no interval. The first
	// wait is short, because an owner whose connections to Kafka break off looks the same as one that died.
	firstSweepBackoff = 2 * time.Minute
	lastSweepBackoff  = 24 * time.Hour
	// mostLooks limits the looks of one comparison. Two confirm a difference. A row that is shown otherwise at
	// the second one, as by a copy of the service that lags, is looked at twice more.
	mostLooks = 4
)

// sweeper runs the comparisons of a resource beside its polls, one at a time, and acts upon the differences.
// A sweep compares all rows and repairs the topic: rows that came later than the overlap, updates that did
// not touch updated_at, deleted rows, and records of other programs. An erase compares named rows, and
// deletes those that the source does not have. A replay of a part publishes rows again. A retry publishes
// named rows that could not be published.
//
//	reading        the first reading of both sides (package reconcile), in a goroutine and with a source of its
//	               own, while polls go on
//	a poll         that begins after it: it delivers what was under way. A replay does not wait for it
//	looking again  at what differed, in the same way
//	an overlap     or more, of polls. Not if each difference counts after one look (reconcile.Config.CatchesUp)
//	looking again  a difference that both looks have shown counts, unless another read showed otherwise
//	repairing      what counts, in the poller's goroutine (repair, erase, replay, lookUp)
//
// The repair needs no look of its own. Between a look and the repair only this owner's polls may publish a
// newer version of a row: another writer with its transactional id would have fenced it. Each batch of a poll
// is shown to the comparison (See) before the poll publishes it, and then the difference does not count. A
// predecessor's reads are not known, so a new owner begins each confirmation with its own first look.
//
// If more rows differ than are kept, the table is swept in parts, ranges of ids, and each part goes through
// all of this. Only the first one reads both sides. How far the sweep has come is in the watermark, and so is
// that a part was begun, before it is:
//
//	a part ends        From moves behind it, in the transaction of its last repair. A crash costs one part.
//	it fails           it is due still: the sweeper waits, and begins the part again. Polls go on.
//	a planned handover, or a takeover that the poller asks for, takes the attempt back. The next owner goes
//	                   on with the part.
//	the process dies   or a commit fails: the next owner finds the attempt, and backs off: maybe the process
//	                   died of the sweep, and would take every owner with it. A request that comes after that
//	                   begins at once.
type sweeper struct {
	cfg    *Config
	board  *board
	state  *state
	writer *writer

	born   schemas.Instant
	retry  backoff.BackOff
	failed int         // tries in a row
	next   time.Time   // not before this, after a failure
	inHand *comparison // or nil
	// newest is the newest part of a sweep or a replay, also when it is over, or nil. The next part takes over
	// its reading.
	newest *comparison
	// sweepFirst is set after an erase or a replay that failed: a sweep that is due comes before the next try.
	sweepFirst bool
}

// comparison is a comparison in hand.
type comparison struct {
	*reconcile.Comparison
	kind  watermark.Kind // Erases or Retries, or of a part: Sweeps or Replays
	began schemas.Instant
	looks int
	due   time.Time // of the next look
	// working gets the error of the goroutine at work. It is nil if there is none. cancel ends the goroutine.
	working chan error
	cancel  context.CancelFunc
}

// found looks at the sweep that the watermark carries, when an owner begins: one that was in hand died.
func (s *sweeper) found() {
	mark := &s.state.mark
	if mark.Sweep == nil {
		return
	}
	if mark.Sweep.Tried != nil {
		pause := min(firstSweepBackoff<<(3*min(max(mark.Sweep.Attempts, 1)-1, 5)), s.longestBackoff())
		next := s.cfg.wall().Add(pause)
		mark.ChangeSweep(func(x *watermark.Sweep) { x.Tried, x.NotBefore = nil, &next })
		s.cfg.Log.Warn("the last owner died while it swept, the sweep waits", zapRequest(mark.Sweep.Request),
			zap.Int("attempts", mark.Sweep.Attempts), zap.Duration("for", pause))
	}
	if at := mark.Sweep.NotBefore; at != nil {
		why := fmt.Sprintf("the owner before died while it swept (%s in a row); `storestream sweep %s` "+
			"begins it at once", terminal.Plural(mark.Sweep.Attempts, "time"), s.cfg.Resource.Name)
		mark.ChangeSweep(func(x *watermark.Sweep) { x.Failure = why + ", or it is tried at " + at.String() })
		s.board.change(func(status *Status) { status.Sweep.Error, status.Sweep.Next = why, at.Time() })
	}
}

func (s *sweeper) longestBackoff() time.Duration {
	return cmp.Or(s.cfg.Sweep.Interval, lastSweepBackoff)
}

// begunAnew asks for a sweep, because rows may have changed that no poll meets. One that is asked for already
// begins with its first part again, for it may have passed them.
func (s *sweeper) begunAnew() {
	switch mark := &s.state.mark; {
	case mark.Sweep == nil && s.cfg.Sweep.Interval == 0:
		s.cfg.Log.Warn("rows may have changed that no poll meets, and sweeps are off: ask for one")
	case mark.Sweep == nil:
		mark.Sweep = &watermark.Sweep{Request: -1, At: s.cfg.wall()}
		s.cfg.Log.Info("a sweep is to follow: rows may have changed that no poll meets")
	default:
		mark.ChangeSweep(func(x *watermark.Sweep) { x.From, x.Done = nil, nil })
	}
}

// asked begins at once what failed before, because a request of this kind came in. A sweep in hand gives way
// to a sweep or a replay that is asked for now. A replay in hand gives way to a request that cancels it.
func (s *sweeper) asked(kind watermark.Kind) {
	if w := s.inHand; w != nil && map[watermark.Kind]bool{
		watermark.Sweeps:  w.kind == watermark.Sweeps,
		watermark.Replays: w.kind == watermark.Sweeps,
		watermark.Cancels: w.kind == watermark.Replays || w.kind == watermark.Retries,
	}[kind] {
		s.end()
	}
	if s.next = (time.Time{}); s.inHand == nil {
		s.board.sweeping("")
	}
}

// step takes the comparison in hand a step further, or begins one, after a poll that went well. Its error is
// one of a write, or ctx has ended. With any other error the comparison is tried again, and polls go on.
func (s *sweeper) step(ctx context.Context) error {
	w := s.inHand
	switch {
	case s.state.ended == 0: // polls come first: a new owner publishes the changes before it sweeps
		return nil
	case w == nil:
		return s.begin(ctx)
	case w.working == nil:
		if !s.cfg.now().Before(w.due) {
			w.looks++
			s.work(ctx, "looking again", w.Look)
		}
		return nil
	}
	var err error
	select {
	case err = <-w.working:
		w.working = nil
	default:
		return nil
	}
	if err == nil && w.looks == 0 && w.Suspects() > 0 && w.kind != watermark.Erases {
		return nil // the next poll may deliver rows that were under way
	}
	if err == nil {
		err = w.CatchUp(ctx)
	}
	if err == nil {
		err = map[watermark.Kind]func() error{watermark.Sweeps: s.repair, watermark.Erases: s.erase,
			watermark.Replays: s.replay, watermark.Retries: s.lookUp}[w.kind]()
	}
	if err == nil && s.inHand == nil && w.kind == watermark.Replays {
		err = s.begin(ctx) // the next part: there may be many
	}
	if err == nil || ctx.Err() != nil || s.writer.failed != nil {
		return err
	}
	s.fail(err)
	return nil
}

// waits reports whether the comparison is to look again before it is acted upon.
func (s *sweeper) waits() bool {
	due, waits := s.inHand.Due()
	if waits = waits && s.inHand.looks < mostLooks; waits {
		s.inHand.due = due
		s.board.sweeping("waiting to look again")
	}
	return waits
}

// begin begins a comparison if one is due: an erase before a replay, and that before a sweep. Not before a
// first load is complete: all of the rest would differ. Not while a reset is replayed: it publishes all of it
// anyway. And never with `run --once`, which would not stay to the end.
func (s *sweeper) begin(ctx context.Context) error {
	mark, kind := &s.state.mark, watermark.Sweeps
	switch {
	case s.cfg.Sweep.Source == nil, s.cfg.Eager, mark.Replay != nil, mark.AsOf == schemas.MinInstant,
		s.cfg.now().Before(s.next):
		return nil
	case s.sweepFirst && s.due():
	case len(mark.Erase) > 0:
		s.start(ctx, watermark.Erases)
		return nil
	case len(mark.Parts) > 0:
		p := &mark.Parts[0]
		if kind = p.Kind; p.IDs != nil || kind == watermark.Retries {
			s.start(ctx, kind)
			return nil
		}
	case !s.due():
		return nil
	}
	select {
	case s.cfg.Sweep.Turn <- struct{}{}:
	default:
		s.board.sweeping("waiting for the sweep of another resource")
		return nil
	}
	if kind == watermark.Replays {
		s.start(ctx, kind)
		return nil
	}
	now := s.cfg.wall()
	if mark.Sweep == nil {
		mark.Sweep = &watermark.Sweep{Request: -1, At: now}
	}
	mark.ChangeSweep(func(x *watermark.Sweep) { x.Tried, x.NotBefore, x.Attempts = &now, nil, x.Attempts+1 })
	if err := s.writer.commit(watermark.Transaction{}); err != nil {
		<-s.cfg.Sweep.Turn
		return err
	}
	s.start(ctx, kind)
	return nil
}

// due reports whether a sweep is due. After the death of its last owner it waits, but no longer than
// longestBackoff: a time beyond that was noted by a clock that was ahead.
func (s *sweeper) due() bool {
	mark, now, interval := &s.state.mark, s.cfg.wall(), s.cfg.Sweep.Interval
	switch {
	case mark.Sweep != nil && mark.Sweep.NotBefore != nil:
		return now >= *mark.Sweep.NotBefore || *mark.Sweep.NotBefore > now.Add(s.longestBackoff())
	case mark.Sweep != nil:
		return true
	case interval == 0:
		return false
	}
	s.born = min(s.born, now)
	after := s.born
	// A time of the future was noted by a clock that was ahead. From there on none would be due for as long. A
	// sweep on request replaces the scheduled one if that is less than half an interval away.
	if last := mark.LastSweep; last > schemas.MinInstant && last <= now {
		after = last.Add(interval / 2)
	}
	return !now.Time().Before(nextSweep(s.cfg.Resource.Name, after.Time(), interval))
}

// nextSweep is when the next scheduled sweep is due. Sweeps stand at fixed times, so that restarts do not put
// them off, and at another time for each resource.
func nextSweep(resource string, after time.Time, interval time.Duration) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(resource)) // never fails
	phase := time.Duration(h.Sum64() % uint64(interval))
	return after.Add(-phase).Truncate(interval).Add(interval + phase)
}

// start starts the first reading: of named rows, or of the part of the sweep or replay that the watermark
// names, which gives back its turn after that. The comparison has a source of its own. A replay looks at the
// rows at once: a poll between would clear few of them, and each of many parts would wait for it.
func (s *sweeper) start(ctx context.Context, kind watermark.Kind) {
	c, mark := s.cfg, &s.state.mark
	known := Request{From: c.Start, Identity: mark.Identity, Fields: s.state.expectedFields(),
		Everywhere: kind != watermark.Replays}
	source := CompareSource(c.Sweep.Source(), known, c.wall,
		func(n int) { c.Metrics.RowsRead.Add(float64(n)) })
	compare := reconcile.Config{Topic: c.Sweep.Topic, Source: source, ByID: c.Sweep.ByID,
		CatchesUp: c.CatchesUp, From: math.MinInt64,
		Start: c.Start, CreatedAt: CreatedAtIn(c.Resource), Now: c.now,
		Overlap: c.Overlap, MaxSuspects: c.Sweep.MaxSuspects, Memory: c.Sweep.Memory,
		Scratch: c.Sweep.Scratch}
	var from *int64
	switch kind {
	case watermark.Erases:
		for _, row := range mark.Erase {
			compare.IDs = append(compare.IDs, row.ID)
		}
		c.Log.Info("looking for the rows to erase", zap.Int("rows", len(compare.IDs)))
	case watermark.Replays, watermark.Retries:
		p := &mark.Parts[0]
		if from, compare.IDs = p.Next, p.IDs; kind == watermark.Replays {
			compare.Again = &reconcile.Again{From: p.From, To: p.To, Ends: p.Ends}
		}
		c.Log.Debug("part of the replay begins", zapRequest(p.Request), zap.Int64p("from_id", from))
	default:
		from = mark.Sweep.From
		c.Log.Info("sweep begins", zapRequest(mark.Sweep.Request), zap.Int64p("from_id", from))
	}
	if kind != watermark.Replays {
		compare.Letters = s.state.deadLetters.beginRound()
	}
	if kind == watermark.Retries && compare.IDs == nil {
		ids := slices.AppendSeq([]int64{}, maps.Keys(compare.Letters)) // no letters are no rows, and not all rows
		slices.Sort(ids)
		compare.IDs = ids[:min(mostRetried, len(ids))]
	}
	if from != nil {
		if compare.From = *from; s.newest != nil && s.newest.kind == kind {
			compare.Before = s.newest.Comparison
		}
	}
	w := &comparison{Comparison: reconcile.New(compare), kind: kind, began: c.wall()}
	if s.inHand = w; compare.IDs == nil {
		s.newest = w
	}
	first := func(ctx context.Context) error {
		if compare.IDs == nil {
			defer func() { <-c.Sweep.Turn }()
		}
		return w.First(ctx, func(topicRows, sourceRows int) {
			s.board.change(func(s *Status) { s.Sweep.Rows, s.Sweep.Of = sourceRows, topicRows })
		})
	}
	s.work(ctx, "reading", func(ctx context.Context) error {
		err := first(ctx)
		if err == nil && kind == watermark.Replays {
			w.looks++
			err = w.Look(ctx)
		}
		return err
	})
}

// work does a part of the comparison beside the polls. One row that it cannot bear must not take the process
// down.
func (s *sweeper) work(ctx context.Context, doing string, part func(context.Context) error) {
	if kind := s.inHand.kind; kind == watermark.Replays || kind == watermark.Retries {
		doing = string(kind) + ": " + doing
	}
	s.board.sweeping(doing)
	ctx, cancel := context.WithCancel(ctx)
	working := make(chan error, 1)
	s.inHand.working, s.inHand.cancel = working, cancel
	go func() {
		var err error
		defer func() { working <- err }()
		defer cancel()
		defer wait.Recover("the sweep", &err)
		err = part(ctx)
	}()
}

// fail gives the comparison up for now.
func (s *sweeper) fail(err error) {
	kind := s.inHand.kind
	s.sweepFirst = kind != watermark.Sweeps
	s.end()
	pause := max(s.cfg.Interval, s.retry.NextBackOff())
	s.next = s.cfg.now().Add(pause)
	s.failed++
	line, _, _ := strings.Cut(err.Error(), "\n")
	failure := fmt.Sprintf("it failed %s in a row and is tried again at %s: %s",
		terminal.Plural(s.failed, "time"), s.next.UTC().Format(time.RFC3339), line)
	switch kind {
	case watermark.Sweeps:
		s.state.mark.ChangeSweep(func(x *watermark.Sweep) { x.Failure = failure })
	case watermark.Replays, watermark.Retries:
		s.state.mark.ChangePart(func(x *watermark.Part) { x.Failure = failure })
	}
	s.cfg.Log.Warn("sweep failed, it is tried again", zap.String("kind", string(kind)), zap.Error(err),
		zap.Duration("in", pause))
	s.board.change(func(status *Status) { status.Sweep.Error, status.Sweep.Next = err.Error(), s.next.UTC() })
}

// done ends a comparison that was acted upon.
func (s *sweeper) done() {
	s.next, s.sweepFirst, s.failed = time.Time{}, false, 0
	s.retry.Reset()
	s.end()
}

// end cancels the comparison in hand, and waits for its goroutine. A sweep that ends so did not die.
func (s *sweeper) end() {
	w := s.inHand
	if w == nil {
		return
	}
	w.cancel()
	if w.working != nil {
		s.cfg.Log.Debug("sweep cut short", zap.Error(<-w.working))
	}
	if s.inHand = nil; w.kind == watermark.Sweeps {
		s.state.mark.HandSweepOver()
	}
	s.board.sweeping("")
}
