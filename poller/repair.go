package poller

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// repair is one round of the repair of what a sweep found: a last look, and transactions for what differs
// still.
//
// It works in the poller's goroutine because nothing else writes the topic. (Whoever writes with our
// transactional id has fenced us.) So between the last look and the repair nobody publishes a newer version
// of a row, over which the repair would put an older one. The looks before are beside the polls because over
// REST they take minutes.
//
// Missing and stale rows are published as the look showed them: dedup knows what was published, and not what
// somebody did to the topic since. A row that may be older than what the topic or dedup has waits until the
// service has shown that state for an overlap, as any row that is deferred. An extra row is deleted when the
// service has not shown it for as long: over REST an updated row may be nowhere for a while. For these the
// repair takes more rounds.
type repair struct {
	cfg    *Config
	state  *state
	writer *writer
	read   func(context.Context, Request) iter.Seq2[Batch, error] // Poller.read
	found  *finding
	sights *sights               // of the suspects
	tx     watermark.Transaction // in hand
	keep   string                // why the extra rows stay in the topic, "" if they may go
	// looks is the time at which the last look began. The look confirms only the rows that were due by then.
	// If a row's confirmation ended while the look went on, the look did not include it.
	looks time.Time
}

// run makes the round. It returns when the next one is due; the zero time: the part is over, as the watermark
// says. Its error is one of a write or of a look.
func (r *repair) run(ctx context.Context) (again time.Time, err error) {
	began := r.cfg.now()
	for {
		some, err := r.repairSome(ctx)
		if err != nil || some && r.cfg.now().Sub(began) >= max(r.cfg.Interval/2, shortStop) {
			return r.cfg.now(), err
		}
		if !some {
			break
		}
	}
	rejects, everywhere, err := r.recheck(ctx)
	if err != nil {
		return time.Time{}, err
	}
	for i := range rejects {
		r.state.writeLetter(&r.tx, &rejects[i])
	}
	r.found.rejects = nil
	now := r.cfg.now()
	if r.found.until.IsZero() {
		r.found.until = now.Add(2 * r.cfg.Overlap)
	}
	var ready, extra []compare.Difference
	for _, d := range r.found.cmp.Differences() {
		due := r.confirmedAt(&d)
		waits := r.looks.Before(due)
		if waits && (again.IsZero() || due.Before(again)) {
			again = due
		}
		switch {
		case d.Kind == compare.Extra:
			extra = append(extra, d)
		case waits, d.Kind == compare.Unknown:
		default:
			ready = append(ready, d)
		}
	}
	if err := r.publishRows(ready); err != nil {
		return time.Time{}, err
	}
	if !again.IsZero() && now.Before(r.found.until) {
		return again, r.writer.commitIfDue(r.tx)
	}
	return time.Time{}, r.finish(extra, everywhere)
}

// Polls stop while a look goes on. So one look is at so many rows, and over REST, where it reads the whole
// day of each row, on so many days. When looks have taken half an interval, or shortStop, a poll comes
// before the next one.
const (
	lookAtOnce = 1000
	daysAtOnce = 8
	shortStop  = time.Second
)

// repairSome looks at some of the rows that differ, and repairs what may be, where there are more than one
// look should be at. Extra rows without a day are left to the last look.
func (r *repair) repairSome(ctx context.Context) (some bool, err error) {
	suspects, err := r.due(ctx)
	if err != nil {
		return false, err
	}
	suspects, more := r.slice(suspects)
	if !more {
		return false, nil
	}
	looked := compare.NewLookup(suspects)
	if _, err := r.look(ctx, looked); err != nil {
		return false, err
	}
	r.found.cmp.Apply(looked)
	var ready, extra []compare.Difference
	for _, s := range suspects {
		d, differs := r.found.cmp.Difference(s.ID)
		if !differs {
			continue
		}
		switch due := r.confirmedAt(&d); {
		case r.looks.Before(due):
			r.found.waits[s.ID] = due
		case d.Kind == compare.Extra && r.found.empty: // it stays, and the last look counts it
		case d.Kind == compare.Extra:
			extra = append(extra, d)
		case d.Kind == compare.Unknown:
			r.leave(&d)
		default:
			ready = append(ready, d)
		}
	}
	rejects := looked.Rejects()
	for i := range rejects {
		r.state.writeLetter(&r.tx, &rejects[i])
	}
	if err := r.publishRows(ready); err != nil {
		return false, err
	}
	for _, d := range extra {
		r.found.result.Extra++
		if err := r.deleteRow(&d); err != nil {
			return false, err
		}
	}
	tx := r.tx
	r.tx = watermark.Transaction{}
	return true, r.writer.commitIfDue(tx)
}

// look looks at rows once more. everywhere: also for those of which no day is known.
func (r *repair) look(ctx context.Context, l *compare.Lookup) (everywhere bool, err error) {
	for b, err := range r.read(ctx, r.state.lookup(l.Rows, r.cfg.wall())) {
		if err != nil {
			return false, err
		}
		if b.Done != nil {
			everywhere = b.Done.Complete
			r.found.empty = r.found.empty || b.Done.Empty
		}
		if err := l.Take(b.Rows, b.Rejects); err != nil {
			return false, err
		}
	}
	return everywhere, nil
}

// due returns the suspects to look at now. It leaves out those that wait for their confirmation, and extra
// rows that stay in the topic in any case. It restarts a suspect's confirmation if other reads have shown it
// otherwise since the last look (sights).
func (r *repair) due(ctx context.Context) ([]Suspect, error) {
	for id, seen := range r.sights.take() {
		if d, differs := r.found.cmp.Difference(id); differs && seen.differs(d.Row) {
			r.found.cmp.Restart(id)
		}
	}
	suspects, err := r.found.cmp.CatchUp(ctx)
	if err != nil {
		return nil, err
	}
	r.keep = r.keepReason(r.found.cmp.Report(), r.found.result.Extra+r.found.cmp.Count()[compare.Extra])
	r.looks = r.cfg.now()
	return slices.DeleteFunc(suspects, func(s Suspect) bool {
		d, _ := r.found.cmp.Difference(s.ID)
		return r.looks.Before(r.found.waits[s.ID]) || d.Kind == compare.Extra && r.keep != ""
	}), nil
}

// slice returns what one look should be at of the suspects. more: that is not all.
func (r *repair) slice(suspects []Suspect) (some []Suspect, more bool) {
	slices.SortFunc(suspects, func(a, b Suspect) int { // over REST those of one day are looked up together
		return cmp.Or(cmp.Compare(a.CreatedAt.Day(), b.CreatedAt.Day()), cmp.Compare(a.ID, b.ID))
	})
	sought := slices.DeleteFunc(slices.Clone(suspects), func(s Suspect) bool {
		d, _ := r.found.cmp.Difference(s.ID)
		return d.Kind == compare.Extra && s.CreatedAt == schemas.MinInstant && !r.cfg.Sweep.ByID
	})
	most, days := cmp.Or(r.cfg.Sweep.LookAtOnce, lookAtOnce), 0
	for i, s := range sought {
		if !r.cfg.Sweep.ByID && (i == 0 || s.CreatedAt.Day() != sought[i-1].CreatedAt.Day()) {
			days++
		}
		if i == most || days > daysAtOnce {
			return sought[:i], true
		}
	}
	return suspects, false
}

// recheck looks once more at the suspects that are due. It returns the rows that cannot be published, and
// whether the source looked everywhere, also for rows of which no day is known.
//
// It looks at the sweep's rejects too: one may be well by now, and its dead letter would stay until somebody
// changes the row. And, the other way round, at rows that have a dead letter and seemed to be well, or
// deleted.
func (r *repair) recheck(ctx context.Context) (rejects []schemas.Reject,
	everywhere bool, err error) {
	suspects, err := r.due(ctx)
	if err != nil {
		return nil, false, err
	}
	looked, everywhere := compare.NewLookup(suspects), true
	known := r.lookUpToo(looked)
	if len(looked.Rows) > 0 {
		if everywhere, err = r.look(ctx, looked); err != nil {
			return nil, false, err
		}
	}
	r.found.cmp.Apply(looked)
	if !everywhere {
		// Nobody looked for those of which no day is known, so nobody can say that they are well.
		for _, reject := range r.found.rejects {
			if reject.HasID && reject.UpdatedAt == schemas.MinInstant {
				known = append(known, reject)
			}
		}
	}
	return append(known, looked.Rejects()...), everywhere, nil
}

// lookUpToo adds the rows to look at beside the suspects, and returns the rejects that need no look: those
// without an id, and those whose dead letter is there already.
func (r *repair) lookUpToo(l *compare.Lookup) (known []schemas.Reject) {
	for i := range r.found.rejects {
		if reject := &r.found.rejects[i]; !reject.HasID || r.state.deadLetters.met(reject) {
			known = append(known, *reject)
		} else {
			l.Also(Suspect{ID: reject.ID, UpdatedAt: reject.UpdatedAt, CreatedAt: schemas.MinInstant})
		}
	}
	part, _ := r.found.cmp.Part()
	for _, s := range r.found.hadDeadLetter {
		if part.Holds(s.ID) {
			l.Also(s)
		}
	}
	return known
}

// confirmedAt is from when on a difference may be repaired; the zero time: at once.
func (r *repair) confirmedAt(d *compare.Difference) time.Time {
	if d.Kind == compare.Extra && r.keep != "" {
		return time.Time{}
	}
	if d.Row != nil {
		newest := int64(math.MinInt64)
		if d.Kind == compare.Stale {
			newest = d.TopicMillis
		}
		if before, known := r.state.dedup.rows.Get(d.ID); known {
			newest = max(newest, before.Millis)
		}
		if !r.state.mayBeOlder(d.Row, newest) {
			return time.Time{}
		}
	}
	return d.Since.Add(r.cfg.Overlap)
}

// publishRows publishes missing and stale rows. Tombstones over their strays come before, in transactions of
// their own: a consumer that keeps rows by key, from all partitions, takes such a tombstone for the row's own
// until the row comes.
func (r *repair) publishRows(rows []compare.Difference) error {
	var strays watermark.Transaction
	for _, d := range rows {
		for _, partition := range d.Strays {
			strays.Strays = append(strays.Strays, watermark.Stray{ID: d.ID, Partition: partition})
			r.found.result.Tombstones++
			if err := r.writer.commitIfFull(&strays); err != nil {
				return err
			}
		}
	}
	if len(strays.Strays) > 0 {
		if err := r.writer.commit(strays); err != nil {
			return err
		}
	}
	for _, d := range rows {
		r.found.cmp.Forget(d.ID)
		put, err := r.state.add(&r.tx, d.Row, schemas.Hash(d.Row.Value), false, r.cfg.wall())
		if err != nil { // there is no room for it
			if err := r.writer.commitIfDue(r.tx); err != nil {
				return err
			}
			return err
		}
		if !put {
			r.found.result.DeadLetters++
			continue
		}
		if d.Kind == compare.Missing {
			r.found.result.Missing++
		} else {
			r.found.result.Stale++
		}
		r.found.result.Published++
		if err := r.writer.commitIfFull(&r.tx); err != nil {
			return err
		}
	}
	return nil
}

// finish deletes what may be deleted, and says in the last transaction that the part is over and what is
// left.
func (r *repair) finish(extra []compare.Difference, everywhere bool) error {
	result, c, count := &r.found.result, r.found.cmp.Report(), r.found.cmp.Count()
	repaired := *result
	result.SourceRows, result.TopicRows = c.SourceRows, c.TopicRows
	result.DeadLetters += c.DeadLetters
	result.Early += c.Early
	result.Missing += count[compare.Missing]
	result.Stale += count[compare.Stale]
	result.Extra += count[compare.Extra]
	var left []string
	for _, d := range r.found.cmp.Differences() {
		if d.Kind == compare.Unknown {
			r.leave(&d)
		}
	}
	if n := r.found.cmp.Suspects() - len(extra); n > 0 {
		left = append(left, fmt.Sprintf("%s came older than what the topic has, and the service did not show the "+
			"same for %s", terminal.Plural(n, "row"), r.cfg.Overlap))
	}
	if n := r.found.unknown; n > 0 {
		left = append(left, fmt.Sprintf("the service showed %s in one reading and not in a later one: they are "+
			"left as they are, and the next sweep compares them again", terminal.Plural(n, "row")))
	}
	if c.Unread > 0 {
		left = append(left, fmt.Sprintf("%d batches of another program in the topic could not be read, and may "+
			"hold any row", c.Unread))
	}
	tooMany := r.tooManyDeletes(c) != ""
	reason, err := r.deleteRows(extra, c, everywhere)
	if err != nil {
		return err
	}
	if reason != "" {
		left = append(left, reason)
	}
	again := r.again(c)
	if c.Untracked > 0 && !again {
		left = append(left, terminal.Plural(c.Untracked, "row")+" more differed than one sweep takes in")
	}
	if text := r.state.deadLetters.delays(); text != "" {
		left = append(left, text)
	}
	result.Left = strings.Join(left, "; ")
	if err := r.takeOutDeadLetters(c, tooMany); err != nil {
		return err
	}
	if again { // the next round counts the rest: only what was repaired is to be kept
		repaired.Tombstones = result.Tombstones
		r.repeatPart(repaired)
	} else {
		part, more := r.found.cmp.Part()
		r.endPart(*result, part, more)
	}
	return r.writer.commit(r.tx)
}

// before is how many rows the service showed in the parts before this one.
func (r *repair) before() int {
	sweep := r.state.mark.Sweep
	if !sweep.CameTo(r.found.result) || sweep.Done == nil {
		return 0
	}
	return sweep.Done.SourceRows
}

// again says whether the part is begun anew: more rows differed than were looked at, and this round brought
// something. Extra rows alone are no reason unless they may be deleted: a sweep would find them for ever.
func (r *repair) again(c compare.Report) bool {
	sweep := r.state.mark.Sweep
	if !sweep.CameTo(r.found.result) || sweep.Rounds+1 >= maxRounds {
		return false
	}
	brought := r.found.result.Published+r.found.result.Tombstones+c.InFlight > 0 // there is room for others
	return brought && (c.UntrackedRows > 0 || c.Untracked > 0 && r.cfg.Sweep.Tombstone)
}

// tooManyDeletes returns why the part's extra rows are too many to delete, or "". They are too many if the
// request confirms fewer, and fewer are left of the day's budget. Then all of them stay.
func (r *repair) tooManyDeletes(c compare.Report) string {
	extra, done := r.found.cmp.Count()[compare.Extra], watermark.Swept{}
	if sweep := r.state.mark.Sweep; sweep.CameTo(r.found.result) && sweep.Done != nil {
		done = *sweep.Done
	}
	topicRows := done.TopicRows + c.TopicRows
	budget, left := r.state.budget(topicRows, r.cfg.wall())
	if extra <= max(r.confirmed(), left) {
		return ""
	}
	return fmt.Sprintf("the service does not have %d of the topic's %d rows. Without a confirmation %d may be "+
		"deleted in a day (UTC), and %d were today: these rows stay (if the service deleted them: storestream "+
		"sweep %s --confirm-deletes %d)", extra, topicRows, budget, budget-left, r.cfg.Resource.Name,
		extra+max(0, done.Extra-done.Tombstones))
}

// confirmed returns how many further deletions this sweep's request confirms.
func (r *repair) confirmed() int {
	if sweep := r.state.mark.Sweep; sweep.CameTo(r.found.result) {
		return sweep.ConfirmedDeletes
	}
	return 0
}

// notForDeletion is what is said of an answer without any row: a table restored empty, a filter that changed.
const notForDeletion = "an empty answer is not taken for deletion"

// keepReason says why the extra rows stay in the topic, "" if they may go.
func (r *repair) keepReason(c compare.Report, extra int) string {
	switch {
	case extra == 0:
		return ""
	case r.found.empty:
		return fmt.Sprintf("the service showed no row at all when %d were looked for again: %s", extra,
			notForDeletion)
	case c.SourceRows+r.before() == 0:
		return fmt.Sprintf("the service showed no row at all, the topic has %d: %s", c.TopicRows, notForDeletion)
	case r.cfg.Sweep.Tombstone && r.tooManyDeletes(c) != "":
		return r.tooManyDeletes(c)
	case c.Nameless > 0:
		return fmt.Sprintf("%s of the service came without a usable id, and may be some of the %d that it seems "+
			"not to have: they are not taken for deleted", terminal.Plural(c.Nameless, "row"), extra)
	case !r.cfg.Sweep.Tombstone:
		return "left in the topic (sweep.deletes: report): " + terminal.Plural(extra, "row") +
			" that the service does not have"
	}
	return ""
}

// leave leaves a row unchanged. The sweep's full reading showed it, and no reading has shown it since, for an
// overlap. If it was deleted meanwhile, the full reading of the next sweep does not show it.
func (r *repair) leave(d *compare.Difference) {
	r.found.unknown++
	r.found.cmp.Forget(d.ID)
}

// deleteRows writes tombstones for extra rows, where it may. It returns why it left some, "" if it left none.
func (r *repair) deleteRows(rows []compare.Difference, c compare.Report,
	everywhere bool) (reason string, err error) {
	if reason := cmp.Or(r.keepReason(c, r.found.result.Extra), r.keep); reason != "" {
		return reason, nil // also if only the last look had a reason: it left these rows out
	}
	unsought := 0
	for _, d := range rows {
		switch {
		case r.looks.Before(r.confirmedAt(&d)):
			reason = "rows that came and went while they were looked for stay in the topic"
			continue
		case r.state.deadLetters.metInRound(d.ID):
			// It is not deleted, but on no day by which it was looked for: it has lost its created_at.
			reason = "rows that cannot be published, and are on no day, stay in the topic"
			continue
		case d.CreatedAt == schemas.MinInstant && !everywhere:
			// Not a record of ours, so nobody knows the day of the row: nobody looked for it again.
			unsought++
			continue
		}
		if err := r.deleteRow(&d); err != nil {
			return "", err
		}
	}
	if unsought > 0 {
		reason = "left in the topic: " + terminal.Plural(unsought, "record") + " not of storestream's making, " +
			"without a row in the service, and with no day to look for it by"
	}
	return reason, nil
}

// deleteRow deletes an extra row. It counts against the number that the request confirms first, and then
// against the day's budget.
func (r *repair) deleteRow(d *compare.Difference) error {
	r.found.cmp.Forget(d.ID)
	confirmed := r.confirmed() > 0
	if confirmed {
		r.state.mark.ChangeSweep(func(s *watermark.Sweep) { s.ConfirmedDeletes-- })
	}
	r.state.delete(&r.tx, d.ID, d.Strays, confirmed, r.cfg.wall())
	r.found.result.Tombstones++
	return r.writer.commitIfFull(&r.tx)
}

// takeOutDeadLetters takes out the dead letters of rows that no read has met as unpublishable since the sweep
// began: they are deleted, or good again. It takes out none if the sweep's readings are in doubt, as when
// they missed too many rows.
func (r *repair) takeOutDeadLetters(c compare.Report, tooMany bool) error {
	empty := c.SourceRows+r.before() == 0 && (c.TopicRows > 0 || c.DeadLetters == 0)
	if r.found.manyRejects || c.Untracked > 0 || empty || r.found.empty || tooMany {
		return nil
	}
	part, _ := r.found.cmp.Part()
	for _, key := range r.state.deadLetters.unmet() {
		id, ok := watermark.DeadLetterRow(key, r.state.deadLetters.known[key].hash)
		if ok && !part.Holds(id) || !ok && !part.All() {
			continue // another part may meet it
		}
		r.state.deadLetters.remove(&r.tx, key)
		if err := r.writer.commitIfFull(&r.tx); err != nil {
			return err
		}
	}
	return nil
}

// endPart notes in the watermark what a part of a sweep came to. more is set if the sweep goes on behind the
// part. It does not if another sweep was asked for in its place meanwhile.
func (r *repair) endPart(result watermark.Swept, part IDRange, more bool) {
	mark := &r.state.mark
	sweep := mark.Sweep
	if !sweep.CameTo(result) {
		if !more && part.All() {
			mark.LastSweep, mark.Swept = r.cfg.wall(), &result
		}
		return
	}
	total := result
	if sweep.Done != nil {
		total = sweep.Done.Plus(result)
	}
	if !more {
		mark.LastSweep, mark.Swept, mark.Sweep = r.cfg.wall(), &total, nil
		sweptPolicies(r.cfg, mark, total)
		return
	}
	next := part.Last + 1
	mark.Sweep = &watermark.Sweep{Request: sweep.Request, RequestUID: sweep.RequestUID, At: sweep.At,
		ConfirmedDeletes: sweep.ConfirmedDeletes, From: &next, Done: &total}
}

// repeatPart notes in the watermark that the part begins again, and what was repaired of it.
func (r *repair) repeatPart(repaired watermark.Swept) {
	r.state.mark.ChangeSweep(func(s *watermark.Sweep) {
		if s.Done != nil {
			repaired = s.Done.Plus(repaired)
		}
		s.Done, s.Rounds, s.Tried, s.Attempts = &repaired, s.Rounds+1, nil, 0
	})
}
