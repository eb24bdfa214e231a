package poller

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// advance moves the watermark as far as b says, after the rows of b were decided about. rows is how many the
// transaction in hand publishes. Settled and the cursor stay before every row that is deferred, or that lacks
// its dead letter: a successor does not know of that row, and has to read it again.
func (s *state) advance(b *Batch, at Moment, rows int) {
	if b.Done != nil && b.Done.Complete {
		s.deferred.beyond.completePass()
		s.deadLetters.beyond.completePass()
	}
	s.mark.Settled = max(s.mark.Settled, s.reaches(b))
	s.moveCursor(b)
	if b.Identity != nil {
		s.mark.Identity = b.Identity
	}
	if b.Dialect != nil {
		s.mark.Dialect = b.Dialect
	}
	if b.Done == nil {
		if b.Failed != "" && s.mark.AsOf == schemas.MinInstant { // the first load may take long
			s.noteTrouble(watermark.Trouble{Why: b.Failed, Since: at.Wall, Publishes: true, Failing: true}, at)
		}
		return
	}
	s.ended++
	s.delayed = b.Done.Delayed
	if s.dealtWithAll() { // otherwise a successor has to read these rows again
		s.mark.Floor = b.Done.Floor
	}
	began := s.passBegan(b.Done, at)
	s.mark.FreshAsOf = latest(s.mark.FreshAsOf, began, at.Wall)
	// The first pass of all tells too, though it may lack rows: perhaps no pass will ever be complete.
	if b.Done.Fields != nil && (b.Done.Complete || s.mark.Fields == nil) {
		s.mark.Fields = b.Done.Fields
	}
	if b.Done.Complete {
		s.passes++
		// `run --once` ends when as_of has moved. If a row were deferred then, no later run would know of it.
		if !s.settings.Eager || s.deferred.empty() {
			s.mark.AsOf = latest(s.mark.AsOf, began, at.Wall)
		}
		// Every pass from the takeover on began after the reset was accepted, even if the clocks say otherwise.
		if r := s.mark.Replay; r != nil {
			s.mark.End(watermark.Result{Request: r.Request, RequestUID: r.RequestUID, Kind: watermark.Reset,
				From: r.From, Began: r.At, Ended: at.Wall, Rows: r.Rows + int64(rows)})
			s.mark.Replay = nil
			s.dedup.unmark()
		}
	}
	s.noteTrouble(watermark.Trouble{Why: s.whyDelayed(), Since: at.Wall, Publishes: true}, at)
}

// reaches returns how far b lets settled move: it stays before every row that a later pass has to read
// again.
func (s *state) reaches(b *Batch) schemas.Instant {
	return min(b.Settled, s.deferred.earliest(), s.deadLetters.beyond.earliest())
}

// makeRoom moves settled as far as b lets it, because poll.memory has no room for the first row of b. Rows
// that settled has passed need not be remembered. If all other rows of b are later, settled may pass the
// first row too. Then no pass reads it again. Without this rule one row that a late commit brings would keep
// a full memory full. A later pass compares milliseconds, so the row's whole millisecond has to lie below
// settled. makeRoom reports whether settled moved.
func (s *state) makeRoom(b *Batch) bool {
	settled, row := s.reaches(b), &b.Rows[0]
	for _, later := range b.Rows[1:] {
		settled = min(settled, later.UpdatedAt)
	}
	// A takeover may have had no room for this row: then it may have been published, and is not published
	// now.
	if s.dedup.lacking > 0 || settled.Millis() <= row.UpdatedAt.Millis() {
		settled = min(settled, row.UpdatedAt)
	}
	if settled <= s.mark.Settled {
		return false
	}
	s.mark.Settled = settled
	if c := s.mark.Cursor; c != nil && c.UpdatedAt < settled {
		s.mark.Cursor = nil
	}
	return true
}

// passBegan returns when the pass began that ended at this moment. The clock may have stepped back since. A
// pass that goes on from a cursor began by the clock of another process: if that time is still to come, it
// is not known when the pass began, and passBegan returns MinInstant.
func (s *state) passBegan(done *Done, at Moment) schemas.Instant {
	wentOn := at.Wall.Add(-at.Now.Sub(s.readBegan.Now))
	switch {
	case done.Started <= wentOn:
		return done.Started
	case done.Started == s.readBegan.Wall:
		return wentOn
	}
	return schemas.MinInstant
}

// latest returns the later one of two starts of passes. began is MinInstant if it is not known. A known
// start in the future was noted by a clock that was ahead: it would say for as long that the resource is up
// to date.
func latest(known, began, now schemas.Instant) schemas.Instant {
	if known > now && began != schemas.MinInstant {
		return began
	}
	return max(known, began)
}

// moveCursor moves the cursor and the load behind b, or to the end of the pass. It forgets the final rows
// that need no longer be remembered then: those that the cursor, the load or the floor has passed.
//
// While a row has to be read again the cursor stands still. If rows were forgotten before, it stays even
// when the pass ends: the floor stands still too, and without the cursor those rows would be read again.
func (s *state) moveCursor(b *Batch) {
	if !s.dealtWithAll() {
		s.dedup.batchDealtWith(false)
		if b.Done != nil && !s.forgot {
			s.mark.Cursor = nil
		}
		return
	}
	passed := b.Done != nil && b.Done.Floor != nil
	if c := b.Cursor; c != nil && (s.mark.Cursor == nil || *s.mark.Cursor != *c) {
		passed = true // a source moves it behind the whole batch, or not at all
	}
	passed = passed || b.Load != nil && b.Load != s.mark.Load
	s.mark.Cursor, s.mark.Load = b.Cursor, b.Load
	forgot := s.dedup.batchDealtWith(passed)
	s.forgot = b.Done == nil && (s.forgot || forgot)
}

// dealtWithAll reports whether no row is deferred and no row lacks its dead letter. Then no row of the passes
// so far has to be read again.
func (s *state) dealtWithAll() bool {
	return s.deferred.empty() && s.deadLetters.beyond.rows() == 0
}

// whyDelayed returns why settled stands still, "" if it does not.
func (s *state) whyDelayed() string {
	return joined(s.delayed, s.deadLetters.delays(), s.deferred.delays())
}

// joined joins the reasons that are not "".
func joined(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(text string) bool { return text == "" }), "; ")
}

// mostTroubleText limits the bytes of the reason in a watermark. Every watermark carries it.
const mostTroubleText = 1000

// noteTrouble notes in the watermark why the resource is blocked, delayed, or fails. Without Why, it is not.
func (s *state) noteTrouble(trouble watermark.Trouble, at Moment) {
	if s.judged = true; trouble.Why == "" {
		s.mark.Trouble = nil
		return
	}
	if due := s.deferred.nextDue(); trouble.Publishes && !due.IsZero() {
		until := at.Wall.Add(due.Sub(at.Now))
		trouble.Until = &until
	}
	s.mark.Trouble = continued(s.mark.Trouble, trouble)
}

// continued returns trouble with a bounded text. If before is of the same kind, it began when before did.
// Whether other rows go on is no other kind: it may differ with each read.
func continued(before *watermark.Trouble, trouble watermark.Trouble) *watermark.Trouble {
	if len(trouble.Why) > mostTroubleText {
		trouble.Why = strings.ToValidUTF8(trouble.Why[:mostTroubleText], "") + "..."
	}
	if before != nil && before.Blocked() == trouble.Blocked() &&
		before.SettlingDelayed() == trouble.SettlingDelayed() {
		trouble.Since = min(trouble.Since, before.Since)
	}
	return &trouble
}

// noteSource notes the source in use, and returns a *LostError if the watermark says that the resource was
// read from another source until now. PostgreSQL shows the time of an update to the
// microsecond, the REST API to the second: a row stamped after settled, and before the next second, lies
// before settled there. And until a sweep, the rows below settled have their times as the other source
// showed them.
func (s *state) noteSource() error {
	was, now := s.mark.Source, s.settings.SourceName
	s.mark.Source = now
	begun := s.mark.Settled != schemas.MinInstant || s.mark.Cursor != nil || s.mark.Load != nil
	if was == "" || was == now || !begun {
		return nil
	}
	return &LostError{Sweep: true, From: schemas.InstantOf(s.mark.Settled.Time().Truncate(time.Second)),
		Why: fmt.Sprintf("%s is read from %s now, and was from %s: rows with another updated_at there are "+
			"published again, also by a sweep", s.settings.Resource.Name, now, was)}
}

// lose gives up the cursor and the floor, and moves settled back to lost.From. All rows from settled on
// have to be read again, without those of a load that goes on. A replay that is cancelled later takes settled
// back there at most. A takeover, which comes next, reads back their published versions. lose reports whether
// it changed anything. If not, a takeover would lead to the same.
func (s *state) lose(lost *LostError) (changed bool) {
	from := max(lost.From, s.settings.Start)
	back := from < s.mark.Settled
	if r := s.mark.Replay; r != nil && from < r.Settled {
		lower := *r
		lower.Settled = from
		s.mark.Replay, s.dedup.passedAgain, changed = &lower, true, true
	}
	identity := s.mark.Identity
	if lost.Sweep {
		identity = identity.Anew()
	}
	load := s.mark.Load.Back(from, max(s.mark.Settled, s.settings.Start))
	changed = changed || back || s.mark.Cursor != nil || s.mark.Floor != nil
	if !changed && reflect.DeepEqual(load, s.mark.Load) &&
		reflect.DeepEqual(identity, s.mark.Identity) {
		return false
	}
	s.mark.Cursor, s.mark.Load, s.mark.Floor, s.mark.Identity = nil, load, nil, identity
	s.dedup.readAgain(load)
	if back {
		s.mark.Settled = from
		s.dedup.passedAgain = true
	}
	return true
}

// beginReplay makes every row with updated_at at or after r.To be published again. ends are the end offsets
// of the data topic.
//
// Settled goes back, never forward: a reset to a later time would skip the rows between. The end offsets
// say which records are of this replay. Only those suppress an equal row, also after a takeover in the
// middle.
//
// The caller ends with a takeover, because dedup has forgotten the rows between the reset's time and
// settled. Without them an old state that a lagging service still returns would be published over the newer
// one in the topic.
func (s *state) beginReplay(r watermark.Request, now schemas.Instant, ends []int64) {
	from, settled := *r.To, s.mark.Settled
	if running := s.mark.Replay; running != nil {
		from, settled = min(from, running.From), max(settled, running.Settled)
	}
	s.mark.Settled = min(s.mark.Settled, max(*r.To, s.settings.Start))
	s.mark.Load = s.mark.Load.Back(*r.To, max(s.mark.Settled, s.settings.Start))
	s.mark.Cursor, s.mark.Floor, s.mark.Identity = nil, nil, s.mark.Identity.Confirmed(r.Schema)
	s.dedup.replay(s.mark.Load)
	s.mark.Replay = &watermark.Replay{Request: r.ID, RequestUID: r.UID, From: from, At: now, Settled: settled,
		Ends: ends}
}

// cancelReplays ends the replays in hand, and returns their number. reset is set if the caller has to end
// with a takeover.
//
// When a reset is cancelled, settled returns to its place before the reset. Every row below is published, and
// no other can appear there (Request.Passed, lose). The replay's passes may have read rows behind that place
// that dedup has forgotten, because the cursor, the load or the floor had passed them. So these three are
// given up. A takeover reads back every version from settled on, those of the replay too, so that no version
// is published again. Before the first load is complete, a replay is a part of it, and goes on.
func (s *state) cancelReplays(now schemas.Instant) (ended int, reset bool) {
	const cancelled = "cancelled"
	for i := range s.mark.Parts {
		s.mark.End(s.mark.Parts[i].Ended(now, cancelled))
	}
	ended, s.mark.Parts = len(s.mark.Parts), nil
	r := s.mark.Replay
	if r == nil || s.mark.AsOf == schemas.MinInstant {
		return ended, false
	}
	s.mark.Settled = max(s.mark.Settled, r.Settled)
	s.mark.Cursor, s.mark.Load, s.mark.Floor = nil, nil, nil
	s.dedup.readAgain(nil)
	s.mark.Replay = nil
	s.mark.End(watermark.Result{Request: r.Request, RequestUID: r.RequestUID, Kind: watermark.Reset,
		From: r.From, Began: r.At, Ended: now, Rows: r.Rows, Left: cancelled})
	return ended + 1, true
}

// seal completes tx with the watermark that is true once tx is committed.
func (s *state) seal(tx *watermark.Transaction, wall schemas.Instant) {
	rows := int64(len(tx.Rows))
	s.mark.Rows += rows
	if s.mark.Replay != nil {
		r := *s.mark.Replay // a copy: transactions before this one have the old one
		r.Rows += rows
		s.mark.Replay = &r
	}
	s.mark.DedupFrom, s.mark.Future = s.dedup.from(s.mark.Settled)
	s.mark.Written = wall
	tx.Watermark = s.mark
}
