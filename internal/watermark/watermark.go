// Package watermark holds what storestream knows about how far a resource has been published: the record that
// is written in the same transaction as the rows it speaks of, and the requests that change it.
package watermark

import (
	"strings"
	"time"

	"github.com/storestream/storestream/schemas"
)

// Version is the version of the JSON form. A reader refuses a higher one: a newer storestream wrote it.
const Version = 1

// Watermark is the state of one resource: JSON under the resource's name in the watermark topic. Everything
// that a successor needs is here or in the data topic. There is no other state.
type Watermark struct {
	Version  int    `json:"version"`
	Resource string `json:"resource"`
	// Settled: every row with an earlier updated_at has been published, and none can appear there any more (the
	// overlap is already taken off). Reads start here. schemas.MinInstant before anything was settled.
	Settled schemas.Instant `json:"settled"`
	// AsOf is when the last complete pass began, by the clock of the instance that made it. MinInstant: none
	// yet.
	AsOf schemas.Instant `json:"as_of"`
	// Rows counts the rows published in all, replays included.
	Rows int64 `json:"rows"`
	// Request is the id (the offset in the requests topic) of the last request accepted, -1 for none.
	Request int64 `json:"request"`
	// RequestUID is that request's own id. Where the topic of requests was made anew, another request has the
	// same offset.
	RequestUID string `json:"request_uid,omitempty"`
	// Instance and Group wrote this.
	Instance string `json:"instance"`
	Group    string `json:"group"`

	// Cursor is where a pass that was cut short goes on; nil: at Settled.
	Cursor *Cursor `json:"cursor,omitempty"`
	// Floor says what the passes so far have met, by the database's transactions; nil: read everything from
	// Settled.
	Floor *Floor `json:"floor,omitempty"`
	// Identity identifies the table that was read so far. Nil if it is not known, and over REST.
	Identity *Identity `json:"identity,omitempty"`
	// Source is what the resource was read from, postgres or rest. "": nobody noted it.
	Source string `json:"source,omitempty"`
	// DedupFrom is at or before the Kafka record time of every row that has to be remembered, but for those in
	// Future; MaxInstant: there is none. A successor rebuilds dedup from the first record of each partition with
	// that time or a later one, and passes over rows with an earlier updated_at.
	DedupFrom schemas.Instant `json:"seen_from"`
	// Future are rows that were stamped far ahead of their writing. Each would pin DedupFrom for as long.
	Future []FutureRow `json:"future,omitempty"`
	// Replay is the replay in hand, Replayed the last one that was finished; nil if there is none.
	Replay   *Replay   `json:"replay,omitempty"`
	Replayed *Replayed `json:"replayed,omitempty"`
	// Sweep is the sweep asked for or in hand, nil if none.
	Sweep *Sweep `json:"sweep,omitempty"`
	// LastSweep is when the last sweep was finished; MinInstant: never.
	LastSweep schemas.Instant `json:"last_sweep"`
	// Swept is what that sweep came to, nil if none was finished.
	Swept *Swept `json:"swept,omitempty"`
	// Erase are rows that somebody asked to be deleted from the topic, and Erased the last of those that were
	// dealt with.
	Erase  []Erase  `json:"erase,omitempty"`
	Erased []Erased `json:"erased,omitempty"`
	// Deleted is the used part of the day's budget of deletions. Nil until a row is deleted without a
	// confirmation.
	Deleted *Deleted `json:"deleted,omitempty"`
	// TopicID and Partitions are those of the data topic that this speaks of. Another id is another topic: a
	// first load begins. Another count would put one key into two partitions: the resource is on hold.
	TopicID    string `json:"topic_id"`
	Partitions int32  `json:"partitions"`
	// Ends are offsets, by partition of the data topic, that its log had reached when this was written. A log
	// that ends before lost records, or is another one. nil: nobody noted them.
	Ends []int64 `json:"ends,omitempty"`
	// Fields are the schema's fields that the source had in the last complete pass, in the schema's order. nil:
	// nobody knows.
	Fields []string `json:"fields,omitempty"`
	// Dialect is what answers of the REST service have shown of the questions that its document leaves open, by
	// property (package dialect). Nil if nothing is known, and in PostgreSQL.
	Dialect map[string]Proof `json:"dialect,omitempty"`
	// Policies are those for fields under which rows of the topic may have been published.
	Policies Policies `json:"privacy,omitempty"`
	// Held says why the resource is on hold or fails, or why settled stands still; nil: none is so.
	Held *Held `json:"held,omitempty"`
	// Written is when this was written, by the clock of Instance. It tells a live neighbour from one long gone.
	Written schemas.Instant `json:"written"`
}

// Cursor is the last row of the last published chunk of a Postgres pass, and what the settle rule needs so
// that the rest of the pass settles what the first part read. Settled does not move by it.
type Cursor struct {
	UpdatedAt schemas.Instant `json:"updated_at"`
	ID        int64           `json:"id"`
	// Xmin is the smallest snapshot xmin among the chunks read so far. HorizonTime and HorizonNext are the
	// best horizon that counts for all of them (in the JSON it is still called a mark, as it once was). All
	// three are 0 where the source has no such thing.
	Xmin        uint64          `json:"xmin,omitempty"`
	HorizonTime schemas.Instant `json:"mark_time,omitempty"`
	HorizonNext uint64          `json:"mark_next,omitempty"`
	// Started is the instance's clock at the start of the pass: AsOf becomes it when the pass completes.
	Started schemas.Instant `json:"started"`
	// Floor is the floor that the pass will leave when the rest of it was read. Nil if it leaves no floor.
	Floor *Floor `json:"floor,omitempty"`
}

// Floor says what has been met of one PostgreSQL table: every row stamped From or later whose writer is over
// in Snapshot. The rows that a pass reads above it have changed since. It belongs to the watermark's
// Identity, and is dropped when that changes.
type Floor struct {
	// Snapshot is a pg_snapshot in its text form, xmin:xmax:running, with 64-bit ids. Where the server does not
	// list what runs (a standby), it is xmin:xmin: and so shows less than it could.
	Snapshot string          `json:"snapshot"`
	From     schemas.Instant `json:"from"`
}

// Held is why a resource is on hold or fails, or why settled stands still, in words for people, and since
// when.
type Held struct {
	Why   string          `json:"why"`
	Since schemas.Instant `json:"since"`
	// Publishes: rows go on to be published; without LeavesOut all do, and only settled stands still.
	Publishes bool `json:"publishes,omitempty"`
	// LeavesOut: the resource is on hold for the rows that Why names, and the others go on.
	LeavesOut bool `json:"leaves_out,omitempty"`
	// Failing: no limit is reached and nothing contradicts itself, but polls fail, as while a server is down.
	Failing bool `json:"failing,omitempty"`
	// Until is when the next of the rows that are held back is looked at again; nil: no row is.
	Until *schemas.Instant `json:"until,omitempty"`
}

// OnHold tells whether the resource is on hold: it publishes nothing, or not all.
func (h *Held) OnHold() bool { return h != nil && !h.Failing && (!h.Publishes || h.LeavesOut) }

// StandsStill tells whether polls succeed, and settled stands still.
func (h *Held) StandsStill() bool { return h != nil && h.Publishes && !h.LeavesOut }

// FutureRow is what was published of a row whose updated_at lay far ahead.
type FutureRow struct {
	ID        int64           `json:"id"`
	UpdatedAt schemas.Instant `json:"updated_at"`
	Hash      uint64          `json:"hash,string"` // schemas.Hash of the value
	// Old: it was published before the replay in hand, so it does not suppress an equal row.
	Old bool `json:"old,omitempty"`
}

// Replay is an accepted reset that is not finished yet.
type Replay struct {
	Request    int64           `json:"request"`
	RequestUID string          `json:"request_uid,omitempty"`
	From       schemas.Instant `json:"from"`
	// At is when the replay was accepted, by the instance's clock. The first complete pass after it finishes the
	// replay.
	At schemas.Instant `json:"at"`
	// Settled is where settled stood before: of what it had passed every copy of the service shows the same.
	Settled schemas.Instant `json:"settled"`
	// Ends are the data partitions' end offsets when it was accepted, by partition. The replay published only
	// the records from there on, so only those suppress an equal row. Else, after a takeover in the middle, the
	// rest would count as published.
	Ends []int64 `json:"ends"`
	// Rows were published since it was accepted, rows that changed meanwhile too.
	Rows int64 `json:"rows"`
}

// Replayed is what a replay came to.
type Replayed struct {
	Request    int64           `json:"request"`
	RequestUID string          `json:"request_uid,omitempty"`
	From       schemas.Instant `json:"from"`
	Began      schemas.Instant `json:"began"`
	Ended      schemas.Instant `json:"ended"`
	Rows       int64           `json:"rows"`
}

// Sweep is a sweep that was asked for or became due, and is not finished yet.
type Sweep struct {
	// Request is the one that it carries out, -1 for a scheduled sweep; At is when that was accepted, or due.
	Request    int64           `json:"request"`
	RequestUID string          `json:"request_uid,omitempty"`
	At         schemas.Instant `json:"at"`
	// ConfirmedDeletes is how many rows this sweep may still delete beyond the day's budget, because the request
	// confirms so many.
	ConfirmedDeletes int `json:"confirmed_deletes,omitempty"`
	// From is the first id that is not compared yet; nil: none is. Done is what the parts below came to.
	From *int64 `json:"from,omitempty"`
	Done *Swept `json:"done,omitempty"`
	// Rounds counts how often the part that begins at From was repaired and begun anew.
	Rounds int `json:"rounds,omitempty"`
	// Tried is when an owner began that part; nil: none has it in hand. It is written before the work begins.
	// So an owner that finds it knows that its predecessor died, maybe of the sweep. Attempts counts how often
	// that was tried in a row without coming to an end, and NotBefore is when it may be tried again.
	Tried     *schemas.Instant `json:"tried,omitempty"`
	Attempts  int              `json:"attempts,omitempty"`
	NotBefore *schemas.Instant `json:"not_before,omitempty"`
}

// SweptSince is when the last sweep was finished or, where none was, since when the first one is due;
// MinInstant: neither is known.
func (w *Watermark) SweptSince() schemas.Instant {
	if w.LastSweep == schemas.MinInstant && w.Sweep != nil {
		return w.Sweep.At
	}
	return w.LastSweep
}

// CameTo says that result is of this sweep. Where the topic of requests was made anew, another one's request
// has the same id.
func (s *Sweep) CameTo(result Swept) bool {
	return s != nil && s.Request == result.Request && s.RequestUID == result.RequestUID
}

// ChangeSweep changes a copy of the sweep: transactions that were written before hold the old one.
func (w *Watermark) ChangeSweep(change func(*Sweep)) {
	s := *w.Sweep
	change(&s)
	w.Sweep = &s
}

// HandSweepOver takes the attempt in hand back, for it ends as planned: it does not count as a death. It says
// whether there was one.
func (w *Watermark) HandSweepOver() bool {
	if w.Sweep == nil || w.Sweep.Tried == nil {
		return false
	}
	w.ChangeSweep(func(s *Sweep) { s.Tried, s.Attempts = nil, max(0, s.Attempts-1) })
	return true
}

// aheadAtMost is how far the clock of one instance may be ahead of another's.
const aheadAtMost = time.Minute

// KnownAsOf is AsOf, and MinInstant where that lies in the future of now: the clock of whoever wrote it was
// ahead, so nobody knows when that pass began.
func (w *Watermark) KnownAsOf(now schemas.Instant) schemas.Instant {
	if w.AsOf > now.Add(aheadAtMost) {
		return schemas.MinInstant
	}
	return w.AsOf
}

// SweepLeft says whether the last sweep left some of what differed as it is.
func (w *Watermark) SweepLeft() bool { return w.Swept != nil && w.Swept.Left != "" }

// SweepFound is how many rows the last sweep found to differ.
func (w *Watermark) SweepFound() (missing, stale, extra int) {
	if w.Swept == nil {
		return 0, 0, 0
	}
	return w.Swept.Missing, w.Swept.Stale, w.Swept.Extra
}

// Swept is what a finished sweep came to.
type Swept struct {
	// Request is the request that it carried out, -1 for a scheduled sweep.
	Request    int64           `json:"request"`
	RequestUID string          `json:"request_uid,omitempty"`
	Began      schemas.Instant `json:"began"`
	// SourceRows and TopicRows were compared; DeadLetters of the source's rows cannot be published.
	SourceRows  int `json:"source_rows"`
	TopicRows   int `json:"topic_rows"`
	DeadLetters int `json:"dead_letters"`
	// What differed: the topic lacked a row, had another version, had a row that the source has not.
	Missing int `json:"missing"`
	Stale   int `json:"stale"`
	Extra   int `json:"extra"`
	// Published of the missing and stale rows were published, Tombstones of the extra ones written.
	Published  int `json:"published"`
	Tombstones int `json:"tombstones"`
	// Early rows of the topic are from before resources.*.start, and were not compared.
	Early int `json:"early,omitempty"`
	// Left says why some of it was left as it is, "" if nothing was.
	Left string `json:"left,omitempty"`
}

// mostLeft bounds Swept.Left of a sweep of many parts.
const mostLeft = 500

// Plus is what s and the part after it came to.
func (s Swept) Plus(part Swept) Swept {
	s.SourceRows += part.SourceRows
	s.TopicRows += part.TopicRows
	s.DeadLetters += part.DeadLetters
	s.Missing += part.Missing
	s.Stale += part.Stale
	s.Extra += part.Extra
	s.Published += part.Published
	s.Tombstones += part.Tombstones
	s.Early += part.Early
	switch {
	case part.Left == "" || strings.HasSuffix(s.Left, "..."):
	case s.Left == "":
		s.Left = part.Left
	case len(s.Left)+len(part.Left) > mostLeft:
		s.Left += "; ..."
	default:
		s.Left += "; " + part.Left
	}
	return s
}

// New is the watermark of a resource of which nothing is known.
func New(resource string) Watermark {
	return Watermark{Version: Version, Resource: resource, Settled: schemas.MinInstant, AsOf: schemas.MinInstant,
		Request: -1, DedupFrom: schemas.MaxInstant, LastSweep: schemas.MinInstant, Written: schemas.MinInstant}
}
