package poller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// idleWrite is how often a watermark is written that says nothing new but the time. Kafka keeps all of them
// until a segment rolls: at one a second a takeover would read half a gigabyte after some months.
const idleWrite = 10 * time.Second

// recordOverhead is what a record takes in a batch beside key and value: lengths, deltas and the batch's own
// 61 bytes.
const recordOverhead = 61 + 36

// publisher decides what becomes of each row (the table is in doc.go), and puts what is to be written
// together with the watermark that says so.
type publisher struct {
	cfg   *Config
	board *board

	mark        watermark.Watermark // the one that the next commit writes
	written     time.Time           // when a transaction last said so
	began       time.Time           // when the pass in hand began, or went on
	beganAt     schemas.Instant     // the same by the clock on the wall
	passes      int                 // complete ones since the takeover
	dedup       dedup
	heldBack    heldBack
	deadLetters *deadLetters
	// forgot: rows were forgotten because the watermark's cursor lies behind them.
	forgot bool
	// moved is when settled last moved here, held why the last pass said that it does not.
	moved time.Time
	held  string
	// finished is the replay that the next commit finishes, nil if none.
	finished *watermark.Replay
	// told is what the last transaction said of a hold, toldAt when one was written that said otherwise than
	// the one before.
	told   *watermark.Held
	toldAt time.Time
	// waits: the watermark in hand says of a wait, and said beforeWait before.
	waits      bool
	beforeWait *watermark.Held
}

func newPublisher(cfg *Config, b *board) *publisher {
	p := &publisher{cfg: cfg, board: b, mark: cfg.Watermark,
		dedup: newDedup(cfg), heldBack: newHeldBack(cfg.Overlap), deadLetters: newDeadLetters(cfg),
		forgot: cfg.Watermark.Cursor != nil, moved: cfg.Now(), told: cfg.Watermark.Held}
	p.policyInForce()
	p.show()
	return p
}

// policyInForce notes in the watermark under which policies for fields rows are published from now on. Where
// others were before, the topic holds rows of theirs, and what a sweep in hand has compared does not count. A
// first load may find some too: the producer tells, where the watermark was lost.
func (p *publisher) policyInForce() {
	now := p.cfg.Resource.PolicyFingerprint()
	if p.mark.Rows == 0 && p.mark.Settled == schemas.MinInstant && !p.mark.Policies.Mixed() {
		p.mark.Policies = watermark.PoliciesOf(now) // a first load: it publishes every row
		return
	}
	if !p.mark.Policies.InForce(now) && p.mark.Sweep != nil {
		p.mark.ChangeSweep(func(s *watermark.Sweep) { s.From, s.Done, s.Rounds = nil, nil, 0 })
	}
	p.mark.Policies = p.mark.Policies.Then(now)
	if p.mark.Policies.Mixed() {
		p.cfg.Log.Warn("the topic may hold rows as other policies for fields (privacy.fields) let them through, "+
			"until a sweep has published them again", zap.String("do", "storestream sweep "+p.cfg.Resource.Name))
	}
}

// sweptPolicies notes that no row of another policy is left: a sweep found every row of the topic equal to
// the source's, or made it so. A row that cannot be published now is left in the topic as it was.
func (p *publisher) sweptPolicies(total watermark.Swept) {
	if total.Left != "" || total.DeadLetters > 0 || total.Extra != total.Tombstones ||
		total.Missing+total.Stale != total.Published || !p.mark.Policies.Mixed() {
		return
	}
	if total.Early > 0 {
		name := p.cfg.Resource.Name
		p.cfg.Log.Warn("rows from before the start of the resource were not compared, and may be as other "+
			"policies for fields let them through", zap.Int("rows", total.Early),
			zap.String("do", fmt.Sprintf("take out resources.%s.start, restart, storestream sweep %s", name, name)))
		return
	}
	p.mark.Policies = watermark.PoliciesOf(p.cfg.Resource.PolicyFingerprint())
	p.cfg.Log.Info("no row of another policy for fields is left in the topic")
}

// writeError is an error of Config.Publish, which ends the poller.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// nextPass is the pass that comes next. The first one after a takeover is complete.
func (p *publisher) nextPass() Request {
	p.heldBack.beyond.newPass()
	p.deadLetters.beyond.newPass()
	p.began, p.beganAt = p.cfg.Now(), p.cfg.Clock()
	complete := p.cfg.Eager || p.mark.Replay != nil || p.passes == 0
	return Request{Kind: Pass, From: max(p.mark.Settled, p.cfg.Start), Complete: complete, Cursor: p.mark.Cursor,
		Floor: p.mark.Floor, Identity: p.mark.Identity, Fields: expectedFields(p.cfg, &p.mark), Started: p.beganAt}
}

// otherSource returns a *LostError where the watermark says that the resource was read from another source
// until now, and notes that it is read from this one. PostgreSQL shows the time of an update to the
// microsecond, the REST API to the second: a row stamped after settled, and before the next second, lies
// before settled there. And the rows below settled have their times as the other source showed them, until a
// sweep.
func (p *publisher) otherSource() error {
	was, now := p.mark.Source, p.cfg.SourceName
	if was == "" && p.mark.Floor != nil {
		was = "postgres" // a watermark from before it was noted; only PostgreSQL leaves a floor
	}
	p.mark.Source = now
	if was == "" || was == now || p.mark.Settled == schemas.MinInstant && p.mark.Cursor == nil {
		return nil
	}
	return &LostError{Sweep: true, From: schemas.InstantOf(p.mark.Settled.Time().Truncate(time.Second)),
		Why: fmt.Sprintf("%s is read from %s now, and was from %s: rows with another updated_at there are "+
			"published again, also by a sweep", p.cfg.Resource.Name, now, was)}
}

// lookup asks for the suspects once more.
func (p *publisher) lookup(suspects []Suspect) Request {
	return Request{Kind: Lookup, Suspects: suspects, Identity: p.mark.Identity,
		Fields: expectedFields(p.cfg, &p.mark), Started: p.cfg.Clock()}
}

// expectedFields are the fields that the source had when mark was written. What the schema no longer has
// nobody misses.
func expectedFields(cfg *Config, mark *watermark.Watermark) (names []string) {
	for i := range cfg.Resource.Fields {
		if name := cfg.Resource.Fields[i].Name; slices.Contains(mark.Fields, name) {
			names = append(names, name)
		}
	}
	return names
}

// publish writes what is new in a batch of a pass, in as many transactions as MaxRows asks for. The last one
// moves the watermark. Its error is a *writeError, or a *HoldError where a limit is reached: then what came
// before is committed, and the watermark stays before this batch.
func (p *publisher) publish(ctx context.Context, b Batch, from schemas.Instant) error {
	p.cfg.Metrics.RowsRead.Add(float64(len(b.Rows) + len(b.Rejects)))
	// The rows to publish move to the front of the slice that was read.
	tx := watermark.Transaction{Rows: b.Rows[:0]}
	for i := range b.Rejects {
		if r := &b.Rejects[i]; r.UpdatedAt != schemas.MinInstant && r.UpdatedAt < from {
			p.deadLetters.met(r)
			p.cfg.Metrics.Suppressed(metrics.BeforeStart).Inc()
		} else {
			p.deadLetters.write(&tx, r)
		}
	}
	limit, shown := p.cfg.MaxRows(), p.cfg.Now().Add(-b.Age)
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.UpdatedAt < from {
			// A source that reads by day returns such rows, and dedup knows nothing from before settled.
			p.cfg.Metrics.Suppressed(metrics.BeforeStart).Inc()
			continue
		}
		put, err := p.decide(&tx, row, shown, b.Final != nil && b.Final[i])
		if err != nil && p.settleBefore(&b, i) { // that may make room
			put, err = p.decide(&tx, row, shown, b.Final != nil && b.Final[i])
		}
		if err != nil && p.settlesPast(&b, i) {
			p.deadLetters.takeOut(&tx, row.ID)
			p.heldBack.forget(row.ID)
			tx.Rows = append(tx.Rows, *row)
			if err := p.commit(ctx, tx); err != nil {
				return err
			}
			tx, limit = watermark.Transaction{Rows: b.Rows[i+1 : i+1]}, p.cfg.MaxRows()
			continue
		}
		if err != nil {
			return p.hold(ctx, tx, err)
		}
		if put && len(tx.Rows) >= limit {
			if err := p.commit(ctx, tx); err != nil {
				return err
			}
			tx, limit = watermark.Transaction{Rows: b.Rows[i+1 : i+1]}, p.cfg.MaxRows()
		}
	}
	loading := p.mark.AsOf == schemas.MinInstant
	p.advance(&b)
	err := p.commitIfDue(ctx, tx)
	if err == nil && loading && p.mark.AsOf != schemas.MinInstant {
		p.cfg.Log.Info("first load finished", zap.Int64("rows", p.mark.Rows), zapInstant("settled", p.mark.Settled))
	}
	return err
}

// settlesPast moves settled past the i-th row of b, for which poll.memory has no room, if the batch lets it
// and all rows after it are later. Then no pass meets the row again, and what settled has passed makes room.
// So one row that a late commit brings does not keep a full memory full.
func (p *publisher) settlesPast(b *Batch, i int) bool {
	row := &b.Rows[i]
	if p.dedup.lacking > 0 {
		return false // nobody knows whether it was published
	}
	if recordSize(row) > p.cfg.MaxRecordBytes {
		return false
	}
	for _, later := range b.Rows[i+1:] {
		if later.UpdatedAt.Millis() <= row.UpdatedAt.Millis() {
			return false
		}
	}
	if p.reaches(b).Millis() <= row.UpdatedAt.Millis() || !p.settleBefore(b, i+1) {
		return false
	}
	p.dedup.forget(row.ID)
	return true
}

// reaches is how far b lets settled move: it stays before every row that a later pass is to meet again.
func (p *publisher) reaches(b *Batch) schemas.Instant {
	return min(b.Settled, p.heldBack.earliest(), p.deadLetters.beyond.all().earliest)
}

// settleBefore moves settled as far as b lets it without the rows of b from the i-th on. It says whether it
// did.
func (p *publisher) settleBefore(b *Batch, i int) bool {
	settled := p.reaches(b)
	for _, row := range b.Rows[i:] {
		settled = min(settled, row.UpdatedAt)
	}
	if settled <= p.mark.Settled {
		return false
	}
	p.mark.Settled, p.moved = settled, p.cfg.Now()
	if c := p.mark.Cursor; c != nil && c.UpdatedAt < settled {
		p.mark.Cursor = nil
	}
	return true
}

// publishOnly writes what is new of the wanted rows in a batch of a lookup.
func (p *publisher) publishOnly(ctx context.Context, b Batch, wanted map[int64]Suspect) error {
	var tx watermark.Transaction
	shown := p.cfg.Now().Add(-b.Age)
	for i := range b.Rejects {
		r := &b.Rejects[i]
		if _, ok := wanted[r.ID]; ok && r.HasID {
			p.deadLetters.write(&tx, r)
		}
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		if _, ok := wanted[row.ID]; ok {
			if _, err := p.decide(&tx, row, shown, false); err != nil {
				return p.hold(ctx, tx, err)
			}
		}
	}
	return p.commitIfDue(ctx, tx)
}

// hold ends a read at a limit: it commits what was decided before, which is remembered as published, and
// returns full.
func (p *publisher) hold(ctx context.Context, tx watermark.Transaction, full error) error {
	if tx.Len() > 0 {
		if err := p.commit(ctx, tx); err != nil {
			return err
		}
	}
	p.dedup.batchDealtWith(false)
	return full
}

// decide publishes a row in tx, suppresses it as a repeat, or holds it back as one that may be older. It says
// whether it put the row into tx. The source had the row as it is here at shown, or later. final is
// Batch.Final's word for it. Its error is add's.
func (p *publisher) decide(tx *watermark.Transaction, row *schemas.Record, shown time.Time, final bool) (
	put bool, err error) {
	millis, hash := row.UpdatedAt.Millis(), schemas.Hash(row.Value)
	before, known := p.dedup.rows.Get(row.ID)
	switch {
	case !known && p.dedup.lacking > 0:
		return false, p.lacks()
	case known && !before.Marked && before.Equal(millis, hash):
		// If it was a dead letter in between it is now again what the topic holds: only the dead letter goes.
		p.deadLetters.takeOut(tx, row.ID)
		p.heldBack.forget(row.ID)
		p.cfg.Metrics.Suppressed(metrics.Seen).Inc()
		return false, nil
	case known && !before.Equal(millis, hash) && p.mayBeOlder(row, before.Millis) &&
		!p.heldBack.confirmed(row, hash, p.cfg.Now(), shown):
		p.cfg.Metrics.Suppressed(metrics.Older).Inc()
		return false, nil
	}
	return p.add(tx, row, hash, final)
}

// mayBeOlder says whether a row that differs from what was published of it may be an older state, by the
// updated_at of what was published (heldBack says why). Not where settled has passed the row: there every
// copy of the service shows the same, so other content at the same time is an update that left updated_at
// alone. Only a replay, or a sweep, meets such a row.
func (p *publisher) mayBeOlder(row *schemas.Record, published int64) bool {
	switch millis := row.UpdatedAt.Millis(); {
	case millis != published:
		return millis < published
	case p.cfg.CatchesUp: // it shows no state that is older than one before, so this one is newer
		return false
	}
	// Of what settled has passed every copy of the service shows the same. The published version may be later
	// within its millisecond than this row: so the whole millisecond has to lie behind settled.
	end := schemas.InstantOfMillis(published + 1)
	if p.mark.Replay != nil && end <= p.mark.Replay.Settled {
		return false
	}
	return end > p.mark.Settled
}

// recordSize is at most how many bytes a row's record takes.
func recordSize(row *schemas.Record) int {
	return len(row.Value) + schemas.HeaderSize + 10 + recordOverhead
}

// TooLarge returns a function that reports whether a row takes more than Config.MaxRecordBytes.
func TooLarge(maxRecordBytes int) func(*schemas.Record) bool {
	return func(row *schemas.Record) bool { return recordSize(row) > maxRecordBytes }
}

// add puts a row into tx and remembers it. A row that is too large for the topic becomes a dead letter, and
// add returns false. Its error is a *HoldError: the row cannot be remembered, so nothing was done with it.
func (p *publisher) add(tx *watermark.Transaction, row *schemas.Record, hash uint64, final bool) (
	put bool, err error) {
	if size := recordSize(row); size > p.cfg.MaxRecordBytes {
		p.deadLetters.writeTooLarge(tx, row, size)
		return false, nil
	}
	if !p.dedup.remember(row, hash, final, p.mark.Settled) {
		return false, p.full()
	}
	p.deadLetters.takeOut(tx, row.ID)
	p.heldBack.forget(row.ID)
	tx.Rows = append(tx.Rows, *row)
	return true, nil
}

// full says that what was published lately fills poll.memory.
func (p *publisher) full() error {
	p.cfg.Metrics.SeenFull.Inc()
	settled := "nothing is settled yet"
	if p.mark.Settled != schemas.MinInstant {
		settled = "settled stands at " + p.mark.Settled.String()
	}
	settled += " since " + schemas.InstantOf(p.moved).String()
	if p.held != "" {
		settled += " (" + p.held + ")"
	}
	// With a cursor the next try reads one chunk, and each try notes a horizon by which settled may move.
	return &HoldError{Soon: p.mark.Cursor != nil, What: fmt.Sprintf("%s: poll.memory is full: %d rows that "+
		"a poll may meet again fill %s, and %s. Nothing more is published until settled moves, which it does "+
		"by itself once what holds it is over: end a transaction that stays open; or raise poll.memory (%s "+
		"holds twice as many) and restart",
		p.cfg.Resource.Name, p.dedup.rows.Len(), size(p.cfg.Memory), settled, size(2*p.cfg.Memory))}
}

// lacks says that the takeover could not restore all that a poll may meet again, so that nobody knows of a
// row whether it was published.
func (p *publisher) lacks() error {
	p.cfg.Metrics.SeenFull.Inc()
	rows := p.dedup.rows.Len() + p.dedup.lacking
	needed := max(rows*rowset.RowBytes, p.cfg.Memory+p.dedup.lacking*rowset.RowBytes)
	return &HoldError{What: fmt.Sprintf("%s: poll.memory is too small to go on: since settled (%s) %d rows "+
		"were published that a poll may meet again, and %s hold %d of them. No other row is published, so none "+
		"is published twice, until settled moves: raise poll.memory to %s and restart. Where only a transaction "+
		"that stays open holds settled, it may go on by itself once that has ended",
		p.cfg.Resource.Name, p.mark.Settled, rows, size(p.cfg.Memory), p.dedup.rows.Len(), size(needed))}
}

// restoresMore says whether another takeover restores more than this one did: settled has moved, so there is
// less to restore.
func (p *publisher) restoresMore() bool {
	return p.dedup.lacking > 0 && p.mark.Settled > p.cfg.Watermark.Settled
}

// size is a number of bytes as the configuration takes it, rounded up.
func size(bytes int) string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%dMiB", (bytes+mebibyte-1)/mebibyte)
}

// At most this many rows, or this part of the topic, are deleted in a UTC day without a confirmation that
// names their number. A shop deletes few rows in a day. If an answer lacks more, it is more likely broken (a
// replica half filled, a filter that changed, a table restored empty) than true. And many requests to erase
// are more likely forged. In a topic of up to 10,000 rows the count decides, so that a small topic can be
// tidied at all.
//
// A resource has one budget, which sweeps and erases share. If each path or request had its own, many of them
// could delete any number of rows. The budget is in the watermark, so a takeover does not reset it.
const (
	maxDeletes      = 100
	maxDeletesShare = 1 // percent of the topic's rows
)

// budget returns how many rows may be deleted in a day without a confirmation, and how many of them are left
// today. topicRows is the size of the topic as far as the caller has counted it. If the last sweep counted
// more, that number is used.
func (p *publisher) budget(topicRows int) (rows, left int) {
	if swept := p.mark.Swept; swept != nil {
		topicRows = max(topicRows, swept.TopicRows)
	}
	rows = max(maxDeletes, topicRows*maxDeletesShare/100)
	return rows, max(0, rows-p.mark.Deleted.On(p.cfg.Clock()))
}

// delete removes every copy of a row that is ours to delete. It adds to tx a tombstone in the row's own
// partition and tombstones for its strays, and it takes out the row's dead letter. It forgets the published
// version of the row, so if the row comes back, it is new. No other code writes a tombstone for a row, so
// delete also counts it against the day's budget, unless a request has confirmed the deletion.
func (p *publisher) delete(tx *watermark.Transaction, id int64, strays []int32, confirmed bool) {
	if !confirmed {
		p.mark.Deleted = p.mark.Deleted.Plus(p.cfg.Clock())
	}
	tx.Deletes = append(tx.Deletes, id)
	for _, partition := range strays {
		tx.Strays = append(tx.Strays, watermark.Stray{ID: id, Partition: partition})
	}
	p.dedup.forget(id)
	p.heldBack.forget(id)
	p.deadLetters.takeOut(tx, id)
}

// advance moves the watermark by what b says. Settled and the cursor stay behind every row that is held
// back: a successor does not know of that row, and has to meet it again.
func (p *publisher) advance(b *Batch) {
	if b.Done != nil && b.Done.Complete {
		p.heldBack.beyond.completePass()
		p.deadLetters.beyond.completePass()
	}
	settled := p.reaches(b)
	if settled > p.mark.Settled {
		p.mark.Settled, p.moved = settled, p.cfg.Now()
	}
	p.moveCursor(b)
	if b.Identity != nil {
		p.mark.Identity = b.Identity
	}
	if b.Dialect != nil {
		p.mark.Dialect = b.Dialect
	}
	if b.Done == nil {
		return
	}
	p.held = b.Done.Held
	if p.dealtWithAll() { // else a successor has to meet these rows again
		p.mark.Floor = b.Done.Floor
	}
	now := p.cfg.Clock()
	started := p.startedBy(b.Done, now)
	if b.Done.Complete {
		p.passes++
		// `run --once` is over when this says so, and no later run would know of a row that is held back.
		if !p.cfg.Eager || p.heldBack.empty() {
			p.mark.AsOf = latest(p.mark.AsOf, started, now)
		}
		if b.Done.Fields != nil {
			p.mark.Fields = b.Done.Fields
		}
		// Every pass from the takeover on began after the reset was accepted, whatever the clocks say.
		if r := p.mark.Replay; r != nil {
			p.mark.Replay, p.finished = nil, r
			p.dedup.unmark()
		}
	}
	p.noteHeld(watermark.Held{Why: p.whyHeld(), Since: now, Publishes: true})
	p.board.change(func(s *Status) { s.Good, s.Held = latest(s.Good, started, now), p.whyHeld() })
}

// startedBy is when a pass began that ends now, by the clock of now. The clock may have stepped back since.
// If the pass goes on from a cursor, it began by the clock of another process as well: where that time is
// still to come nobody knows when it was (MinInstant).
func (p *publisher) startedBy(done *Done, now schemas.Instant) schemas.Instant {
	wentOn := now.Add(-p.cfg.Now().Sub(p.began))
	switch {
	case done.Started <= wentOn:
		return done.Started
	case done.Started == p.beganAt:
		return wentOn
	}
	return schemas.MinInstant
}

// latest is the later one of two starts of passes. One from the future was noted by a clock that was ahead:
// it would say for as long that the resource is up to date. MinInstant: nobody knows when that pass began.
func latest(known, started, now schemas.Instant) schemas.Instant {
	if known > now && started != schemas.MinInstant {
		return started
	}
	return max(known, started)
}

// moveCursor moves the cursor behind b, or to the end of the pass, and forgets the final rows that need no
// longer be remembered then: those that the cursor, or the floor, has passed.
//
// While a row is to be met again the cursor stands still. If rows were forgotten before, it stays where it
// is even when the pass ends: the floor stands still too, and without the cursor those rows would be met
// again.
func (p *publisher) moveCursor(b *Batch) {
	if !p.dealtWithAll() {
		p.dedup.batchDealtWith(false)
		if b.Done != nil && !p.forgot {
			p.mark.Cursor = nil
		}
		return
	}
	passed := b.Done != nil && b.Done.Floor != nil
	if c := b.Cursor; c != nil && len(b.Rows) > 0 && (p.mark.Cursor == nil || *p.mark.Cursor != *c) {
		passed = true // a source moves it behind the whole batch, or not at all
	}
	p.mark.Cursor = b.Cursor
	forgot := p.dedup.batchDealtWith(passed)
	p.forgot = b.Done == nil && (p.forgot || forgot)
}

// dealtWithAll says that no row of the passes so far is to be met again: none is held back, and none lacks
// its dead letter.
func (p *publisher) dealtWithAll() bool {
	return p.heldBack.empty() && p.deadLetters.beyond.all() == nothingLeft
}

// whyHeld says why settled stands still, "" if it does not.
func (p *publisher) whyHeld() string {
	var why []string
	for _, text := range []string{p.held, p.deadLetters.says(), p.heldBack.says()} {
		if text != "" {
			why = append(why, text)
		}
	}
	return strings.Join(why, "; ")
}

// mostHeldText bounds what the watermark says of a hold: every watermark carries it.
const mostHeldText = 1000

// noteHeld notes in the watermark in hand why the resource is held or fails; without Why, that it does
// neither.
func (p *publisher) noteHeld(held watermark.Held) {
	p.waits = false
	if held.Why == "" {
		p.mark.Held = nil
		return
	}
	if len(held.Why) > mostHeldText {
		held.Why = strings.ToValidUTF8(held.Why[:mostHeldText], "") + "..."
	}
	if sameHold(p.mark.Held, &held) {
		held.Since = min(held.Since, p.mark.Held.Since)
	}
	if due := p.heldBack.nextDue(); held.Publishes && !due.IsZero() {
		until := p.cfg.Clock().Add(due.Sub(p.cfg.Now()))
		held.Until = &until
	}
	p.mark.Held = &held
}

// tellFailure says in the watermark that a poll ended with a *HoldError, or with another error where polls
// have failed for a while: most failures are over before anybody could read of them. The rest of that
// watermark is true: what a batch brought is dealt with before the watermark in hand says so, and after a
// failed write nobody comes here. Its error is a *writeError.
func (p *publisher) tellFailure(ctx context.Context, err error, since time.Time) error {
	now, failed := p.cfg.Clock(), p.cfg.Now().Sub(since)
	var hold *HoldError
	switch {
	case errors.As(err, &hold):
		p.noteHeld(watermark.Held{Why: hold.Error(), Since: now, Publishes: hold.Publishes,
			LeavesOut: hold.Publishes})
	case failed >= idleWrite:
		p.noteHeld(watermark.Held{Why: err.Error(), Since: now.Add(-failed), Failing: true})
	default:
		return nil
	}
	return p.commitIfDue(ctx, watermark.Transaction{})
}

// tellWait says in the watermark that the source waits because the service asked for it, every idleWrite, and
// that it does so no longer. It may wait for longer than an owner may leave its watermark alone, and without
// that everybody would take this one for dead. It is called between two batches, when what the watermark says
// is true. Its error is a *writeError.
func (p *publisher) tellWait(ctx context.Context, w *Wait) error {
	now := p.cfg.Now()
	switch {
	case w == nil && p.waits:
		p.mark.Held, p.waits = p.beforeWait, false
		return p.commitIfDue(ctx, watermark.Transaction{})
	case w == nil, w.Until.Before(now), w.Until.Sub(w.Since) < idleWrite, now.Sub(p.written) < idleWrite:
		return nil // also while the answer of the first request after the wait is under way
	}
	if !p.waits {
		p.beforeWait = p.mark.Held
	}
	clock := p.cfg.Clock()
	p.noteHeld(watermark.Held{Since: clock.Add(w.Since.Sub(now)), Failing: true, Why: fmt.Sprintf(
		"waiting for the service: %s. Nothing is sent to it until %s", w.Why, clock.Add(w.Until.Sub(now)))})
	p.waits = true
	return p.commit(ctx, watermark.Transaction{})
}

// tellsOtherwise says whether a transaction is due only because the last one said otherwise of a hold. What
// comes and goes with every poll waits for the next watermark, and so does another wording: there are numbers
// and times in it. The end of a failure does not wait: there are ten seconds in it.
func (p *publisher) tellsOtherwise() bool {
	works := p.told != nil && p.told.Failing && p.mark.Held == nil
	return works || !sameHold(p.told, p.mark.Held) && p.cfg.Now().Sub(p.toldAt) >= idleWrite
}

// sameHold tells whether a and b are of one kind. Since is when that began, whatever the reason is by now: so
// long rows have waited. Whether other rows go on may differ with each read.
func sameHold(a, b *watermark.Held) bool {
	return (a == nil) == (b == nil) && a.OnHold() == b.OnHold() && a.StandsStill() == b.StandsStill()
}

// lose gives up what the source cannot use: cursor and floor, and what settled has passed from lost.From on.
// Everything from settled on is to be read again. A takeover, which comes next, reads back what was published
// of it. lose says whether it changed anything; if not, a takeover would lead to the same.
func (p *publisher) lose(lost *LostError) (changed bool) {
	from := max(lost.From, p.cfg.Start)
	back := from < p.mark.Settled
	identity := p.mark.Identity
	if lost.Sweep {
		identity = identity.Anew()
	}
	if !back && p.mark.Cursor == nil && p.mark.Floor == nil && reflect.DeepEqual(identity, p.mark.Identity) {
		return false
	}
	p.cfg.Log.Warn("what was read before does not count any more: it is read again", zap.String("why", lost.Why),
		zapInstant("from", min(from, p.mark.Settled)), zapInstant("settled", p.mark.Settled))
	p.mark.Cursor, p.mark.Floor, p.mark.Identity = nil, nil, identity
	p.dedup.oldest = schemas.MinInstant
	if back {
		p.mark.Settled = from
		p.dedup.passedAgain = true
	}
	return true
}

// beginReplay makes every row with updated_at at or after r.To be published again.
//
// Settled goes back, never forward: a reset to a later time would skip what lies between. The end offsets say
// which records are of this replay: only those suppress an equal row, also after a takeover in the middle.
// And the caller begins with a takeover: dedup has forgotten the rows between the reset's time and settled.
// Without them an old state that a lagging service still returns would be published over the newer one in the
// topic.
func (p *publisher) beginReplay(r watermark.Request, now schemas.Instant, ends []int64) {
	from := *r.To
	if running := p.mark.Replay; running != nil {
		from = min(from, running.From)
	}
	settled := p.mark.Settled
	if running := p.mark.Replay; running != nil {
		settled = max(settled, running.Settled)
	}
	p.mark.Settled = min(p.mark.Settled, max(*r.To, p.cfg.Start))
	p.mark.Cursor, p.mark.Floor, p.mark.Identity = nil, nil, p.mark.Identity.Confirmed()
	p.dedup.replay()
	p.mark.Replay = &watermark.Replay{Request: r.ID, RequestUID: r.UID, From: from, At: now, Settled: settled,
		Ends: ends}
	p.cfg.Log.Info("replay begins", zapInstant("from", *r.To), zapAsked(r))
}

// endPart notes in the watermark what a part of a sweep came to. more: it goes on behind the part. A sweep in
// whose place another was asked for meanwhile does not.
func (p *publisher) endPart(result watermark.Swept, part IDRange, more bool) {
	sweep := p.mark.Sweep
	if !sweep.CameTo(result) {
		if !more && part.All() {
			p.mark.LastSweep, p.mark.Swept = p.cfg.Clock(), &result
		}
		return
	}
	total := result
	if sweep.Done != nil {
		total = sweep.Done.Plus(result)
	}
	if !more {
		p.mark.LastSweep, p.mark.Swept, p.mark.Sweep = p.cfg.Clock(), &total, nil
		p.sweptPolicies(total)
		return
	}
	next := part.Last + 1
	p.mark.Sweep = &watermark.Sweep{Request: sweep.Request, RequestUID: sweep.RequestUID, At: sweep.At,
		ConfirmedDeletes: sweep.ConfirmedDeletes, From: &next, Done: &total}
}

// repeatPart notes that the part is begun anew, and what was repaired of it.
func (p *publisher) repeatPart(repaired watermark.Swept) {
	p.mark.ChangeSweep(func(s *watermark.Sweep) {
		if s.Done != nil {
			repaired = s.Done.Plus(repaired)
		}
		s.Done, s.Rounds, s.Tried, s.Attempts = &repaired, s.Rounds+1, nil, 0
	})
}

// commitIfDue commits tx unless all that it would say is the time.
func (p *publisher) commitIfDue(ctx context.Context, tx watermark.Transaction) error {
	idle := tx.Len() == 0 && !p.cfg.Eager && p.mark.Replay == nil && p.finished == nil && !p.tellsOtherwise()
	if idle && p.cfg.Now().Sub(p.written) < idleWrite {
		p.show()
		return nil
	}
	return p.commit(ctx, tx)
}

// commitIfFull commits tx and empties it when it holds as much as one transaction should.
func (p *publisher) commitIfFull(ctx context.Context, tx *watermark.Transaction) error {
	if tx.Len() < p.cfg.MaxRows() {
		return nil
	}
	full := *tx
	*tx = watermark.Transaction{}
	return p.commit(ctx, full)
}

// commit writes tx with the watermark as it is now. Its error is a *writeError.
func (p *publisher) commit(ctx context.Context, tx watermark.Transaction) error {
	now := p.cfg.Now()
	p.mark.Rows += int64(len(tx.Rows))
	p.countReplayed(int64(len(tx.Rows)))
	p.mark.DedupFrom, p.mark.Future = p.dedup.from(p.mark.Settled)
	p.mark.Written = p.cfg.Clock()
	tx.Watermark = p.mark
	if err := p.cfg.Publish(ctx, tx); err != nil {
		return &writeError{err}
	}
	if r := p.finished; r != nil {
		p.finished = nil
		p.cfg.Log.Info("replay finished", zapInstant("from", r.From), zapRequest(r.Request),
			zap.Int64("rows", p.mark.Replayed.Rows))
	}
	p.written = now
	if !sameHold(p.told, p.mark.Held) {
		p.toldAt = now
	}
	p.told = p.mark.Held
	p.cfg.Metrics.RowsPublished.Add(float64(len(tx.Rows)))
	p.dedup.committed(p.mark.Settled, now)
	p.show()
	return nil
}

// countReplayed counts rows that are about to be published for the replay that they belong to. It changes a
// copy: transactions that were written before hold the old one.
func (p *publisher) countReplayed(rows int64) {
	if r := p.finished; r != nil {
		p.mark.Replayed = &watermark.Replayed{Request: r.Request, RequestUID: r.RequestUID, From: r.From,
			Began: r.At, Ended: p.cfg.Clock(), Rows: r.Rows + rows}
	} else if p.mark.Replay != nil {
		r := *p.mark.Replay
		r.Rows += rows
		p.mark.Replay = &r
	}
}

// show puts on the board what can be read off the publisher.
func (p *publisher) show() {
	p.board.change(func(s *Status) {
		s.Watermark, s.Complete = p.mark, p.passes
		s.DeadLetters, s.DedupBytes = len(p.deadLetters.held), p.dedup.rows.Bytes()
	})
}
