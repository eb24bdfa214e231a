package poller

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// SweepConfig is what a Poller sweeps with. The zero value: it never sweeps.
type SweepConfig struct {
	// Interval is from one sweep to the next; 0: only on request.
	Interval time.Duration
	// Tombstone: a sweep deletes from the topic what the source no longer has. Otherwise it only reports it.
	Tombstone bool
	// Source makes the source for the readings of one sweep that go on beside the polls.
	Source func() Source
	// Topic reads the data topic.
	Topic compare.TopicReader
	// Turn is shared by the pollers of a process. A sweep has a place in it while it reads beside the polls.
	// So its capacity limits the memory for these readings and the requests that they send to the service.
	Turn chan struct{}
	// MaxSuspects bounds what one round of a sweep repairs, Memory what a sweep takes; 0: compare.Config's.
	MaxSuspects int
	Memory      int64
	// LookAtOnce bounds how many rows one look of the repair is at; 0: 1000.
	LookAtOnce int
	// ByID: Source reads by id, so that a sweep can go part by part.
	ByID bool
	// Records is at most how many rows the topic holds, about.
	Records func(context.Context) (int64, error)
}

// The wait after the first sweep that failed, and the longest.
const (
	firstSweepRetry = 5 * time.Second
	lastSweepRetry  = 30 * time.Minute
)

const (
	// firstSweepBackoff is the wait after a sweep whose process died. With each death in a row it grows
	// eightfold, up to the interval of the sweeps, or to lastSweepBackoff where there is none. The first is
	// short, because an owner whose connections to Kafka break off looks the same as one that died.
	firstSweepBackoff = 2 * time.Minute
	lastSweepBackoff  = 24 * time.Hour
	// maxRounds bounds how often a part is begun anew because more differs than one round takes in.
	maxRounds = 10
)

// patientPolls is how many polls in a row may fail before a sweep that waits for one makes room for others.
const patientPolls = 5

// sweeper compares the whole topic with the whole source beside the polls, and returns what it found: rows
// that came later than the overlap, updates that did not touch updated_at, deleted rows, and what others
// wrote into the topic.
//
//	reading        topic and source in full, in a goroutine and with a source of its own, while polls go on
//	a poll         that begins after it: it delivers what was under way
//	looking again  at what differed, in the same way
//	a poll
//	repairing      in the poller's goroutine: one more look, and the repair of what differs still (repair)
//
// A sweep has the turn from the beginning of its first reading to the end of the second. It repairs without
// the turn: its looks take the place of polls, and hold a thousand rows. The repair may wait an overlap for a
// confirmation. If it had to take the turn again after that, it would wait for as long as another table takes
// to be read. While it waits, the sweep keeps its suspects, at most an eighth of its memory.
//
// A table that does not fit into memory is swept in parts, ranges of ids (package compare), and each part
// goes through all of this. How far the sweep has come is in the watermark, and so is that a part was begun,
// before it is:
//
//	a part ends        From moves behind it, in the transaction of its last repair. A crash costs one part.
//	it fails           it is due still: the sweeper waits, and begins the part anew. Polls go on.
//	a planned handover takes the attempt back. The next owner goes on with the part.
//	the process dies   the next owner finds the attempt, and backs off: maybe it died of the sweep, and would
//	                   take every owner with it. A request that comes after that begins at once.
//
// Polls come first: a new owner makes a complete pass before it sweeps.
type sweeper struct {
	cfg   *Config
	board *board

	born     schemas.Instant
	failures int
	retry    backoff.BackOff
	next     time.Time // not before this, after a failure
	inHand   *sweep    // nil: none
	hasTurn  bool
	sights   *sights // of the suspects in hand
}

// sweep is a sweep in hand.
type sweep struct {
	found *finding
	began time.Time
	// working gets the error of the goroutine at work; nil: there is none. cancel ends it.
	working chan error
	cancel  context.CancelFunc
	looked  bool      // it looked again, or there was nothing to look at
	due     time.Time // the repair goes on then
}

// finding is what a sweep found, and what became of it so far.
type finding struct {
	cmp  *compare.Comparison
	from int64 // where its part begins
	// rejects cannot be published; manyRejects: there were more than maxRejects.
	rejects     []schemas.Reject
	manyRejects bool
	// hadDeadLetter are the rows that had a dead letter when the sweep began, and the days of good versions of
	// them.
	hadDeadLetter map[int64]Suspect
	// empty: since the full reading the source has shown, once, that it has no row at all. That is likelier an
	// outage than true, so what was missing then is not taken for deleted.
	empty bool

	// unknown counts rows that one reading showed and a later one did not.
	unknown int
	// waits are rows that a look was at and that are not confirmed yet, and when they may be.
	waits  map[int64]time.Time
	until  time.Time       // the repair waits no longer for confirmation; zero: it did not begin yet
	result watermark.Swept // of this part
}

// maxRejects bounds the rejects kept. With more, something bigger is wrong, and polls say so.
const maxRejects = 10_000

func newSweeper(cfg *Config, b *board) *sweeper {
	return &sweeper{cfg: cfg, board: b, born: cfg.wall(), retry: doubling(firstSweepRetry, lastSweepRetry),
		sights: newSights()}
}

// found looks at the sweep that the watermark carries, when an owner begins: one that was in hand died.
func (s *sweeper) found(mark *watermark.Watermark) {
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
		err := fmt.Errorf("the owner before died while it swept (%s in a row); `storestream sweep %s` "+
			"begins it at once", terminal.Plural(mark.Sweep.Attempts, "time"), s.cfg.Resource.Name)
		s.board.change(func(status *Status) { status.Sweep.Err, status.Sweep.Next = err, at.Time() })
	}
}

func (s *sweeper) longestBackoff() time.Duration {
	return cmp.Or(s.cfg.Sweep.Interval, lastSweepBackoff)
}

// begunAnew asks for a sweep, because rows may have changed that no poll meets. One that is asked for already
// begins with its first part again, for it may have passed them.
func (s *sweeper) begunAnew(mark *watermark.Watermark) {
	switch sweep := mark.Sweep; {
	case sweep == nil && s.cfg.Sweep.Interval == 0:
		s.cfg.Log.Warn("rows may have changed that no poll meets, and sweeps are off: ask for one")
	case sweep == nil:
		mark.Sweep = &watermark.Sweep{Request: -1, At: s.cfg.wall()}
		s.cfg.Log.Info("a sweep is to follow: rows may have changed that no poll meets")
	default:
		mark.ChangeSweep(func(x *watermark.Sweep) { x.From, x.Done, x.Rounds = nil, nil, 0 })
	}
}

// step takes the sweep a step further, after a poll that went well. begin: there is a part to begin, and its
// turn has come, once the watermark says so (start). Otherwise it returns what to repair now, nil if nothing.
func (s *sweeper) step(ctx context.Context, mark *watermark.Watermark) (found *finding, begin bool) {
	w := s.inHand
	switch {
	case w == nil:
		return nil, s.due(mark) && s.turn()
	case w.working != nil:
		select {
		case err := <-w.working:
			return s.worked(ctx, mark, err), false
		default:
			return nil, false
		}
	case !w.looked:
		w.looked = true
		s.board.sweeping("looking again")
		s.work(ctx, w.found.cmp.Look)
		return nil, false
	case s.cfg.now().Before(w.due):
		return nil, false
	}
	return w.found, false
}

// worked ends a part of the sweep that went on beside the polls.
func (s *sweeper) worked(ctx context.Context, mark *watermark.Watermark, err error) *finding {
	w := s.inHand
	w.working = nil
	if ctx.Err() != nil {
		return nil // the poller stops, which ended the work
	}
	if err != nil {
		s.fail(mark, err)
		return nil
	}
	some := w.found.cmp.Suspects() > 0 || len(w.found.rejects) > 0
	if !w.looked && some {
		s.sights.watchOnly(w.found.cmp.IDs())
		return nil // the next poll begins later than what was read, and may deliver it
	}
	s.giveTurnBack()
	if some {
		return nil // and the next poll may deliver those, too
	}
	w.looked = true // there is nothing to look at
	return w.found
}

// due says whether to begin a sweep. Not before a first load is complete: all of the rest would differ. Not
// while a replay runs: it publishes everything anyway. And never with `run --once`, which would not stay to
// the end.
func (s *sweeper) due(mark *watermark.Watermark) bool {
	now, c := s.cfg.wall(), &s.cfg.Sweep
	switch {
	case c.Source == nil, s.cfg.Eager, mark.Replay != nil, mark.AsOf == schemas.MinInstant,
		s.cfg.now().Before(s.next):
		return false
	case mark.Sweep != nil:
		return s.mayBegin(mark, now)
	case c.Interval == 0:
		return false
	}
	// A time of the future was noted by a clock that was ahead. From there on none would be due for as long.
	last := mark.LastSweep
	if last > now {
		last = schemas.MinInstant
	}
	s.born = min(s.born, now)
	return now >= schemas.InstantOf(nextSweep(s.cfg.Resource.Name, last, s.born.Time(), c.Interval))
}

// mayBegin says whether the sweep that was asked for waits no longer for the death of its last owner. No
// pause is longer than longestBackoff: what is beyond was noted by a clock that was ahead.
func (s *sweeper) mayBegin(mark *watermark.Watermark, now schemas.Instant) bool {
	at := mark.Sweep.NotBefore
	if at == nil {
		return true
	}
	if latest := now.Add(s.longestBackoff()); *at > latest {
		mark.ChangeSweep(func(x *watermark.Sweep) { x.NotBefore = &latest })
	}
	return now >= *mark.Sweep.NotBefore
}

// nextSweep is when the next scheduled sweep is due. Sweeps stand at fixed times, so that restarts do not put
// them off, and at another time for each resource. A sweep on request replaces the scheduled one if that is
// less than half an interval away.
func nextSweep(resource string, last schemas.Instant, born time.Time, interval time.Duration) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(resource)) // never fails
	phase := time.Duration(h.Sum64() % uint64(interval))
	after := born
	if last > schemas.MinInstant {
		after = last.Time().Add(interval / 2)
	}
	return after.Add(-phase).Truncate(interval).Add(interval + phase)
}

// turn says whether it is this resource's turn, and takes it.
func (s *sweeper) turn() bool {
	select {
	case s.cfg.Sweep.Turn <- struct{}{}:
		s.hasTurn = true
		return true
	default:
		s.board.sweeping("waiting for the sweep of another resource")
		return false
	}
}

// giveTurnBack lets another resource sweep, if this one has the turn.
func (s *sweeper) giveTurnBack() {
	if s.hasTurn {
		<-s.cfg.Sweep.Turn
		s.hasTurn = false
	}
}

// begin notes in mark that a part is begun. Once that is committed, start starts it.
func (s *sweeper) begin(mark *watermark.Watermark) {
	now := s.cfg.wall()
	if mark.Sweep == nil {
		mark.Sweep = &watermark.Sweep{Request: -1, At: now}
	}
	mark.ChangeSweep(func(x *watermark.Sweep) { x.Tried, x.NotBefore, x.Attempts = &now, nil, x.Attempts+1 })
}

// start starts the part that the watermark says is begun.
func (s *sweeper) start(ctx context.Context, state *state) {
	mark := &state.mark
	f := &finding{hadDeadLetter: state.deadLetters.beginRound(), from: math.MinInt64,
		waits: map[int64]time.Time{}}
	if mark.Sweep.From != nil {
		f.from = *mark.Sweep.From
	}
	f.result = watermark.Swept{Request: mark.Sweep.Request, RequestUID: mark.Sweep.RequestUID,
		Began: *mark.Sweep.Tried}
	f.cmp = s.newComparison(f, Request{From: s.cfg.Start, Identity: mark.Identity,
		Fields: state.expectedFields()})
	s.inHand = &sweep{found: f, began: s.cfg.now()}
	expected := int64(0)
	if mark.Swept != nil && mark.Swept.TopicRows > 0 {
		expected = int64(mark.Swept.TopicRows)
	}
	s.board.sweeping("reading")
	s.sights.watchAll()
	s.work(ctx, func(ctx context.Context) error {
		if err := s.announce(ctx, f, expected); err != nil {
			return err
		}
		return f.cmp.First(ctx, func(at compare.Progress) {
			s.board.change(func(s *Status) { s.Sweep.Rows, s.Sweep.Of = at.SourceRows, at.TopicRows })
		})
	})
}

// announce says what the sweep is expected to take: by the rows of the last one, or else by the records of
// the topic, which are at least as many.
func (s *sweeper) announce(ctx context.Context, f *finding, rows int64) (err error) {
	if rows == 0 {
		if rows, err = s.cfg.Sweep.Records(ctx); err != nil {
			return err
		}
	}
	plan := compare.NewPlan(rows, cmp.Or(s.cfg.Sweep.Memory, compare.DefaultMemory), s.cfg.Sweep.ByID)
	say := "sweep begins"
	if f.from > math.MinInt64 {
		say = "sweep goes on with its next part"
	}
	s.cfg.Log.Info(say, zapRequest(f.result.Request), zap.Int64("expected_rows", plan.Rows),
		zap.Int64("parts", plan.Parts), zap.Int64("bytes", plan.Bytes), zap.Int64("from_id", f.from))
	if plan.Parts > 1 {
		s.board.sweeping(fmt.Sprintf("reading a part of about %d, the ids from %d on", plan.Parts, f.from))
	}
	return nil
}

// newComparison compares with a source of its own, and notes in f what that source shows. It knows no dead
// letters: a row that has one and could be published is a difference like any other, so the sweep heals it.
// known has the From, Identity and Fields of its requests.
func (s *sweeper) newComparison(f *finding, known Request) *compare.Comparison {
	c, source := s.cfg, s.cfg.Sweep.Source()
	read, createdAt := CompareSource(source, known, c.wall), CreatedAtIn(c.Resource)
	return compare.New(compare.Config{
		Start: c.Start, CreatedAt: createdAt, Now: c.now, MaxSuspects: c.Sweep.MaxSuspects, Topic: c.Sweep.Topic,
		Memory: c.Sweep.Memory, Records: c.Sweep.Records, ByID: c.Sweep.ByID, From: f.from, Cut: true,
		Source: func(ctx context.Context, ids compare.Range, suspects []Suspect, take compare.Take) error {
			noted := func(rows []schemas.Record, rejects []schemas.Reject) error {
				c.Metrics.RowsRead.Add(float64(len(rows) + len(rejects)))
				f.note(rows, rejects, createdAt)
				return take(rows, rejects)
			}
			err := read(ctx, ids, suspects, noted)
			unmet := f.unmet()
			if err != nil || suspects != nil || c.Sweep.ByID || len(unmet) == 0 {
				return err
			}
			r := known
			r.Kind, r.Everywhere, r.Suspects, r.Started = Lookup, true, unmet, c.wall()
			return Safely("reading", func() error {
				for b, err := range source.Read(ctx, r) {
					if err != nil {
						return err
					}
					f.empty = f.empty || b.Done != nil && b.Done.Empty
					if err := noted(b.Rows, b.Rejects); err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

// note keeps the rejects, and the days on which rows with a dead letter are found.
func (f *finding) note(rows []schemas.Record, rejects []schemas.Reject,
	createdAt func([]byte) schemas.Instant) {
	room := min(len(rejects), maxRejects-len(f.rejects))
	f.manyRejects = f.manyRejects || room < len(rejects)
	f.rejects = append(f.rejects, rejects[:room]...)
	if len(f.hadDeadLetter) == 0 {
		return
	}
	for i := range rows {
		row := &rows[i]
		if _, has := f.hadDeadLetter[row.ID]; has {
			f.hadDeadLetter[row.ID] = Suspect{ID: row.ID, UpdatedAt: row.UpdatedAt, CreatedAt: createdAt(row.Value)}
		}
	}
}

// unmet are the rows with a dead letter that the source has not shown. Over REST a row without created_at is
// on none of the days that a full reading asks for: it is neither deleted nor well.
func (f *finding) unmet() []Suspect {
	met := map[int64]bool{}
	for i := range f.rejects {
		met[f.rejects[i].ID] = f.rejects[i].HasID
	}
	var rows []Suspect
	for id, s := range f.hadDeadLetter {
		if !met[id] && s.UpdatedAt == schemas.MinInstant {
			rows = append(rows, s)
		}
	}
	return rows
}

// work does a part of the sweep beside the polls. One row that it cannot bear must not take the process down.
func (s *sweeper) work(ctx context.Context, part func(context.Context) error) {
	ctx, s.inHand.cancel = context.WithCancel(ctx)
	working := make(chan error, 1)
	s.inHand.working = working
	go func() { working <- Safely("the sweep", func() error { return part(ctx) }) }()
}

// hurry makes a sweep that failed before begin at once: somebody asked.
func (s *sweeper) hurry() {
	if s.next = (time.Time{}); s.inHand == nil {
		s.board.sweeping("")
	}
}

// pollFailed gives the sweep up if it waits for a poll in vain: n failed in a row.
func (s *sweeper) pollFailed(mark *watermark.Watermark, err error, n int) {
	if s.inHand != nil && n >= patientPolls {
		s.fail(mark, fmt.Errorf("polls fail: %w", err))
	}
}

// fail gives the sweep up for now. That is no death.
func (s *sweeper) fail(mark *watermark.Watermark, err error) {
	s.end()
	mark.HandSweepOver()
	pause := max(s.cfg.Interval, s.retry.NextBackOff())
	s.failures++
	s.next = s.cfg.now().Add(pause)
	s.cfg.Log.Warn("sweep failed, it is tried again", zap.Error(err), zap.Duration("in", pause),
		zap.Int("failures", s.failures))
	s.board.change(func(status *Status) { status.Sweep.Err, status.Sweep.Next = err, s.next })
}

// resumeAt lets the repair go on at a later poll.
func (s *sweeper) resumeAt(due time.Time) {
	s.inHand.due = due
	s.board.sweeping("waiting to look again")
}

// finish ends a part that was repaired, as it says in mark: of a sweep that is over, or goes on.
func (s *sweeper) finish(mark *watermark.Watermark) {
	s.failures, s.next = 0, time.Time{}
	s.retry.Reset()
	r := s.inHand.found.result
	s.cfg.Metrics.LateRows.Add(float64(r.Published))
	s.cfg.Metrics.SweepDifferences(string(compare.Missing)).Add(float64(r.Missing))
	s.cfg.Metrics.SweepDifferences(string(compare.Stale)).Add(float64(r.Stale))
	s.cfg.Metrics.SweepDifferences(string(compare.Extra)).Add(float64(r.Extra))
	say, what := s.cfg.Log.Info, "sweep finished"
	if r.Left != "" {
		say = s.cfg.Log.Warn
	}
	if goesOn := mark.Sweep; goesOn.CameTo(r) {
		what = "part of the sweep finished"
		if goesOn.Rounds > 0 {
			what = "part of the sweep is begun anew, for there is more to repair"
			now := s.cfg.now()
			s.next = now.Add(now.Sub(s.inHand.began)) // polls have half of the time for themselves
		}
	} else if mark.Swept != nil && mark.Swept.Request == r.Request {
		r = *mark.Swept
	}
	say(what, zapRequest(r.Request), zap.Int("source_rows", r.SourceRows), zap.Int("topic_rows", r.TopicRows),
		zap.Int("dead_letters", r.DeadLetters), zap.Int("missing", r.Missing), zap.Int("stale", r.Stale),
		zap.Int("extra", r.Extra), zap.Int("published", r.Published), zap.Int("tombstones", r.Tombstones),
		zap.String("left", r.Left))
	s.end()
}

// end waits until nothing of the sweep runs any more.
func (s *sweeper) end() {
	w := s.inHand
	if w == nil {
		return
	}
	w.cancel()
	if w.working != nil {
		s.cfg.Log.Debug("sweep cut short", zap.Error(<-w.working))
	}
	s.giveTurnBack()
	s.sights.watchOnly(func(func(int64) bool) {})
	s.inHand = nil
	s.board.sweeping("")
}
