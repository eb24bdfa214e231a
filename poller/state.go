package poller

import (
	"fmt"
	"maps"
	"slices"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// state is a poller's knowledge of its topic, and the watermark that its next transaction writes. Its methods
// read no clock, write no log and count no metric. So the same calls lead to the same state. They take notes,
// and the writer counts and logs these.
//
// A transaction is decided first and committed after that (writer). So the state runs ahead of the topic: it
// remembers a row as published before the row is committed. This is safe by one rule: a failed commit ends
// the poller, the state is dropped with it, and a takeover builds a new one from the topic.
type state struct {
	settings       *Settings
	maxRecordBytes int
	rowOverhead    int // watermark.RowOverhead

	mark        watermark.Watermark
	dedup       *dedup
	deferred    deferred
	deadLetters *deadLetters

	// The read in hand. from is the beginning of a pass: rows before it are suppressed. wanted are the rows of a
	// second look, by id, or nil in a pass.
	from      schemas.Instant
	wanted    map[int64]Suspect
	readBegan Moment

	passes, ended int             // complete passes since the takeover, and all that ended
	forgot        bool            // the pass in hand forgot rows that the watermark's cursor has passed
	settledBefore schemas.Instant // settled when the takeover began
	delayed       string          // why settled stands still, as the last pass said
	judged        bool            // mark.Trouble is no predecessor's

	// Since the writer counted and logged them: rows that were suppressed as repeats, deferred, or from
	// before the start; rows that poll.memory had no room for; dead letters whose row can be published
	// again.
	repeats, deferrals, beforeStart, full int
	healed                                []string
}

func newState(cfg *Config, at Moment) *state {
	mark := cfg.Session.Watermark()
	return &state{settings: &cfg.Settings, maxRecordBytes: cfg.Session.MaxRecordBytes(),
		rowOverhead: watermark.RowOverhead(cfg.Resource), mark: mark,
		dedup: newDedup(&cfg.Settings, &mark), deferred: newDeferred(cfg.Overlap),
		deadLetters: newDeadLetters(&cfg.Settings, cfg.Session.DeadLetters()),
		from:        schemas.MinInstant, readBegan: at, forgot: mark.Cursor != nil, settledBefore: mark.Settled}
}

// nextPass begins a pass. The first one after a takeover is complete.
func (s *state) nextPass(at Moment) Request {
	s.deferred.beyond.newPass()
	s.deadLetters.beyond.newPass()
	s.from, s.wanted, s.readBegan = max(s.mark.Settled, s.settings.Start), nil, at
	complete := s.settings.Eager || s.mark.Replay != nil || s.passes == 0
	passed := s.from
	if s.mark.Replay != nil {
		passed = max(passed, s.mark.Replay.Settled)
	}
	return Request{Kind: Pass, From: s.from, Passed: passed, Complete: complete, Cursor: s.mark.Cursor,
		Load: s.mark.Load, Rows: s.mark.Rows, Floor: s.mark.Floor, Identity: s.mark.Identity,
		Fields: s.expectedFields(), Started: at.Wall}
}

// secondLook begins a look at these deferred rows.
func (s *state) secondLook(due map[int64]Suspect, at Moment) Request {
	s.from, s.wanted, s.readBegan = schemas.MinInstant, due, at
	return Request{Kind: Lookup, Suspects: slices.Collect(maps.Values(due)), Identity: s.mark.Identity,
		Fields: s.expectedFields(), Started: at.Wall}
}

// expectedFields returns the fields that the source had, less those that the schema has no more.
func (s *state) expectedFields() []string {
	return slices.DeleteFunc(slices.Clone(s.mark.Fields), func(name string) bool {
		return !slices.Contains(s.settings.Resource.Columns(), name)
	})
}

// add puts a row into tx and remembers it. A row that is too large for the topic becomes a dead letter, and
// add returns false. An error is a *BlockedError: the row cannot be remembered, and add has changed nothing.
func (s *state) add(tx *watermark.Transaction, row *schemas.Record, hash uint64, final bool,
	wall schemas.Instant) (put bool, err error) {
	if size := s.rowOverhead + len(row.Value); size > s.maxRecordBytes {
		s.writeLetter(tx, s.deadLetters.tooLarge(row, size, s.maxRecordBytes))
		return false, nil
	}
	if !s.dedup.remember(row, hash, final, s.mark.Settled, wall) {
		return false, s.memoryFull()
	}
	if len(s.deadLetters.known) > 0 {
		s.heal(tx, row.ID)
	}
	if len(s.deferred.rows) > 0 {
		delete(s.deferred.rows, row.ID)
	}
	tx.Rows = append(tx.Rows, *row)
	return true, nil
}

// writeLetter puts the dead letter of a row into tx, unless it is in the topic.
func (s *state) writeLetter(tx *watermark.Transaction, r *schemas.Reject) {
	if !s.deadLetters.write(tx, r) {
		s.repeats++
	}
}

// heal takes out the dead letter of a row that can be published again, if there is one.
func (s *state) heal(tx *watermark.Transaction, id int64) {
	if key, there := s.deadLetters.takeOut(tx, id); there {
		s.healed = append(s.healed, key)
	}
}

// delete removes every copy of a row that is ours to delete. It puts a tombstone for the row's own partition
// and tombstones for its strays into tx, and takes out the row's dead letter. It forgets the published
// version of the row, so if the row comes back, it is new. No other code writes a tombstone for a row, so
// delete also counts it against the day's budget, unless a request has confirmed the deletion.
func (s *state) delete(tx *watermark.Transaction, d *reconcile.Difference, confirmed bool,
	wall schemas.Instant) {
	if !confirmed {
		s.mark.Deleted = s.mark.Deleted.Plus(wall)
	}
	tx.Deletes = append(tx.Deletes, d.ID)
	for _, stray := range d.Strays {
		tx.Strays = append(tx.Strays, watermark.Stray{ID: d.ID, Partition: stray.Partition})
	}
	s.dedup.forget(d.ID)
	delete(s.deferred.rows, d.ID)
	s.deadLetters.takeOut(tx, d.ID)
}

// At most this many rows, or this part of the topic, are deleted in a UTC day without a confirmation that
// names their number. A shop deletes few rows in a day. If an answer lacks more, it is more likely broken
// (a replica half filled, a filter that changed, a table restored empty) than true. And many requests to
// erase are more likely forged. In a topic of up to 10,000 rows the count decides, so that a small topic
// can be tidied at all.
//
// A resource has one budget, which sweeps and erases share. If each path or request had its own, many of
// them could delete any number of rows. The budget is in the watermark, so a takeover does not reset it.
const (
	maxDeletes      = 100
	maxDeletesShare = 1 // percent of the topic's rows
)

// budget returns how many rows may be deleted in a day without a confirmation, and how many of them are left
// today. topicRows is the size of the topic as far as the caller has counted it. If the last sweep counted
// more, that number is used.
func (s *state) budget(topicRows int, wall schemas.Instant) (rows, left int) {
	if swept := s.mark.Swept; swept != nil {
		topicRows = max(topicRows, swept.TopicRows)
	}
	rows = max(maxDeletes, topicRows*maxDeletesShare/100)
	return rows, max(0, rows-s.mark.Deleted.On(wall))
}

// memoryFull returns the error for a row that poll.memory has no room for.
func (s *state) memoryFull() error {
	s.full++
	settled := "nothing is settled yet"
	if s.mark.Settled != schemas.MinInstant {
		settled = "settled stands at " + s.mark.Settled.String()
	}
	// With a cursor the next try reads one chunk, and each try notes a horizon by which settled may move.
	return &BlockedError{Soon: s.mark.Cursor != nil, What: fmt.Sprintf("%s: poll.memory is full: %d rows that "+
		"a poll may meet again fill %s (%s). Nothing more is published until settled moves, which it does "+
		"by itself once what holds it is over: end a transaction that stays open; or raise poll.memory (%s "+
		"holds twice as many) and restart",
		s.settings.Resource.Name, s.dedup.rows.Len(), size(s.settings.Memory), joined(settled, s.delayed),
		size(2*s.settings.Memory))}
}

// memoryLacks returns the error for a row that may have been published, which this poller cannot know: its
// takeover had no room for all rows that a pass may read again.
func (s *state) memoryLacks() error {
	s.full++
	rows := s.dedup.rows.Len() + s.dedup.lacking
	needed := max(rows*rowset.RowBytes, s.settings.Memory+s.dedup.lacking*rowset.RowBytes)
	return &BlockedError{What: fmt.Sprintf("%s: poll.memory is too small to go on: since settled (%s) %d rows "+
		"were published that a poll may meet again, and %s hold %d of them. No other row is published, so none "+
		"is published twice, until settled moves: raise poll.memory to %s and restart. Where only a transaction "+
		"that stays open holds settled, it may go on by itself once that has ended",
		s.settings.Resource.Name, s.mark.Settled, rows, size(s.settings.Memory), s.dedup.rows.Len(), size(needed))}
}

// restoresMore reports whether another takeover would restore more than this one did: settled has moved, so
// there is less to restore.
func (s *state) restoresMore() bool { return s.dedup.lacking > 0 && s.mark.Settled > s.settledBefore }

// size is a number of bytes as the configuration takes it, rounded up.
func size(bytes int) string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%dMiB", (bytes+mebibyte-1)/mebibyte)
}
