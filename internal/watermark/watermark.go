// Package watermark has the record of how far a resource has been published, which is written in the same
// transaction as the rows, and the requests that change it.
package watermark

import (
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/schemas"
)

// Version is the version of the JSON form. A reader refuses every other one. It rises when a member changes
// its name or its meaning, and does not when a member is added.
const Version = 2

// Watermark is the state of one resource: JSON under the resource's name in the watermark topic. There is no
// other state: all that a successor needs is here or in the data topic.
type Watermark struct {
	Version  int    `json:"version"`
	Resource string `json:"resource"`
	// Settled is the time before which every row has been published and no row can appear any more, by
	// updated_at. The overlap is already taken off. Reads start here. It is schemas.MinInstant at first.
	Settled schemas.Instant `json:"settled"`
	// AsOf is when the last complete pass began, by the clock of its instance. It is MinInstant at first.
	AsOf schemas.Instant `json:"as_of"`
	// FreshAsOf is when the last pass began that met every change since the pass before it. The lag counts from
	// there. A cheap pass over REST moves FreshAsOf alone: it is AsOf or later, unless a clock went back.
	FreshAsOf schemas.Instant `json:"fresh_as_of"`
	// Rows counts all rows that were ever published, including replays.
	Rows int64 `json:"rows"`
	// Request is the id (the offset in the requests topic) of the last request that was accepted, or -1.
	Request int64 `json:"request"`
	// RequestUID is that request's own id. If the topic of requests was created again, another request has the
	// same offset.
	RequestUID string `json:"request_uid,omitempty"`
	// Instance and Group wrote this.
	Instance string `json:"instance"`
	Group    string `json:"group"`

	// Cursor is where a pass that was cut short goes on. If it is nil, the next pass begins at Settled.
	Cursor *Cursor `json:"cursor,omitempty"`
	// Load is the place of the first part of a pass, which reads a table in the order of its blocks. Nil means
	// that no such load is in hand.
	Load *Load `json:"load,omitempty"`
	// Floor is the set of database transactions whose rows the passes so far have met. If it is nil, the next
	// pass reads everything from Settled on.
	Floor *Floor `json:"floor,omitempty"`
	// Identity identifies the table that was read so far. Nil if it is not known, and over REST.
	Identity *Identity `json:"identity,omitempty"`
	// Source is the source that the resource was read from, postgres or rest. It is "" before the first pass.
	Source string `json:"source,omitempty"`
	// DedupFrom is at or before the Kafka record time of every row that has to be remembered, except rows in
	// Future. It is MaxInstant if there is no such row. A successor rebuilds dedup from the first record of each
	// partition with that time or a later one, and passes over rows with an earlier updated_at.
	DedupFrom schemas.Instant `json:"dedup_from"`
	// Future are rows that were stamped far ahead of their writing. Each would pin DedupFrom for as long.
	Future []FutureRow `json:"future,omitempty"`
	// Replay is the replay in hand that a reset has begun, or nil.
	Replay *Replay `json:"replay,omitempty"`
	// Parts are the replays of parts and the retries that wait. The first one may be in hand.
	Parts []Part `json:"parts,omitempty"`
	// Results are those of the last requests, the newest last. Sweeps and erases have their own.
	Results []Result `json:"results,omitempty"`
	// Sweep is the sweep that waits or is in hand. It may be nil.
	Sweep *Sweep `json:"sweep,omitempty"`
	// LastSweep is when the last sweep was finished. It is MinInstant before the first one.
	LastSweep schemas.Instant `json:"last_sweep"`
	// Swept is the result of that sweep. It is nil before the first one.
	Swept *Swept `json:"swept,omitempty"`
	// Erase are the rows that requests want deleted from the topic. Erased are the last ones that were dealt
	// with.
	Erase  []Erase  `json:"erase,omitempty"`
	Erased []Erased `json:"erased,omitempty"`
	// Deleted is the used part of the day's budget of deletions. Nil until a row is deleted without a
	// confirmation.
	Deleted *Deleted `json:"deleted,omitempty"`
	// TopicID and Partitions are those of the data topic that this speaks of. Another id is another topic: a
	// first load begins. Another count would put one key into two partitions: the resource is blocked.
	TopicID    string `json:"topic_id"`
	Partitions int32  `json:"partitions"`
	// Ends are offsets, by partition of the data topic, that its log had reached when this was written. A log
	// that ends before them lost records, or is another one. Nil means unknown.
	Ends []int64 `json:"ends,omitempty"`
	// Fields are the schema's fields that the source had in the last complete pass, or before one in the first
	// pass, in the schema's order. Nil means unknown.
	Fields []string `json:"fields,omitempty"`
	// Dialect has the answers that the REST service has shown to the open questions of its document, by property
	// (package dialect). Nil if nothing is known, and in PostgreSQL.
	Dialect map[string]Proof `json:"dialect,omitempty"`
	// Policies are the policies for fields under which rows of the topic may have been published.
	Policies Policies `json:"privacy,omitempty"`
	// Pause is the pause that a person asked for, or nil. It may be over.
	Pause *Pause `json:"pause,omitempty"`
	// Trouble is why the resource is blocked or fails, or why settled stands still. Otherwise it is nil.
	Trouble *Trouble `json:"trouble,omitempty"`
	// Written is when this was written, by the clock of Instance. It tells a live neighbour from one long gone.
	Written schemas.Instant `json:"written"`
}

// Cursor is the last row of the last published chunk of a PostgreSQL pass, with the facts that the rest of
// the pass needs to settle the first part too. A cursor does not move Settled.
type Cursor struct {
	UpdatedAt schemas.Instant `json:"updated_at"`
	ID        int64           `json:"id"`
	// Xmin is the smallest snapshot xmin among the chunks read so far. HorizonTime and HorizonNext are the
	// latest horizon that may be used with all of them. All three are 0 if the source has no such thing.
	Xmin        uint64          `json:"xmin,omitempty"`
	HorizonTime schemas.Instant `json:"horizon_time,omitempty"`
	HorizonNext uint64          `json:"horizon_next,omitempty"`
	// Started is the instance's clock at the start of the pass: AsOf becomes it when the pass completes.
	Started schemas.Instant `json:"started"`
	// Floor is the floor that the whole pass will leave, or nil if it leaves none.
	Floor *Floor `json:"floor,omitempty"`
}

// Floor describes the rows of one PostgreSQL table that passes have met: every row stamped From or later
// whose writer is over in Snapshot. Rows that a pass reads above it have changed since. It belongs to the
// watermark's Identity and is dropped when that changes.
type Floor struct {
	// Snapshot is a pg_snapshot in its text form, xmin:xmax:running, with 64-bit ids. A standby does not list
	// running transactions. Its snapshot is xmin:xmin: and so shows less than it could.
	Snapshot string          `json:"snapshot"`
	From     schemas.Instant `json:"from"`
}

// Trouble is why a resource is blocked or fails, or why settled stands still, in words for people, and since
// when.
type Trouble struct {
	Why   string          `json:"why"`
	Since schemas.Instant `json:"since"`
	// Publishes is set if rows go on to be published. Without LeavesOut all are, and only settled stands still.
	Publishes bool `json:"publishes,omitempty"`
	// LeavesOut is set if the resource is blocked for the rows that Why names, and other rows go on.
	LeavesOut bool `json:"leaves_out,omitempty"`
	// Failing is set if polls fail although no limit is reached and no data contradict themselves, such as while
	// a server is down. With Publishes, requests of the first load fail, and it goes on beside them.
	Failing bool `json:"failing,omitempty"`
	// Until is when the next row that is deferred is looked at again. It is nil if no row is deferred.
	Until *schemas.Instant `json:"until,omitempty"`
}

// Blocked tells whether the resource is blocked: it publishes nothing, or not all.
func (h *Trouble) Blocked() bool { return h != nil && !h.Failing && (!h.Publishes || h.LeavesOut) }

// SettlingDelayed tells whether polls succeed, and settled stands still.
func (h *Trouble) SettlingDelayed() bool {
	return h != nil && h.Publishes && !h.LeavesOut && !h.Failing
}

// FutureRow is the published version of a row whose updated_at lay far ahead.
type FutureRow struct {
	ID        int64           `json:"id"`
	UpdatedAt schemas.Instant `json:"updated_at"`
	Hash      uint64          `json:"hash,string"` // schemas.Hash of the value
	// Old is set if it was published before the replay in hand. It then does not suppress an equal row.
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
	// Settled is where settled stood before the replay. Every copy of the service shows the same rows before it.
	Settled schemas.Instant `json:"settled"`
	// Ends are the data partitions' end offsets when it was accepted, by partition. The replay published only
	// the records from there on, so only those suppress an equal row. Otherwise, after a takeover in the middle,
	// the rest would count as published.
	Ends []int64 `json:"ends"`
	// Rows counts the rows that were published since it was accepted, including rows that changed meanwhile.
	Rows int64 `json:"rows"`
}

// Result is the result of a request that an owner has dealt with: of a replay of either kind, a retry, a
// cancel, a pause or a resume.
type Result struct {
	Request    int64           `json:"request"`
	RequestUID string          `json:"request_uid,omitempty"`
	Kind       Kind            `json:"kind"`
	From       schemas.Instant `json:"from"` // of a replay
	Began      schemas.Instant `json:"began"`
	Ended      schemas.Instant `json:"ended"`
	Rows       int64           `json:"rows"` // that it published
	// Left says which rows it has left, or why it did not act, or is "".
	Left string `json:"left,omitempty"`
}

// mostResults is how many results a watermark keeps.
const mostResults = 20

// End notes the result of a request.
func (w *Watermark) End(r Result) {
	w.Results = append(slices.Clone(w.Results[max(0, len(w.Results)+1-mostResults):]), r)
}

// ResultOf returns the result of a request, or nil if it is not known.
func (w *Watermark) ResultOf(request int64, uid string) *Result {
	for i := range w.Results {
		if r := &w.Results[i]; r.Request == request && r.RequestUID == uid {
			return r
		}
	}
	return nil
}

// Sweep is a sweep that was asked for or became due, and is not finished yet.
type Sweep struct {
	// Request is the request that it carries out, or -1 for a scheduled sweep. At is when it was accepted or
	// due.
	Request    int64           `json:"request"`
	RequestUID string          `json:"request_uid,omitempty"`
	At         schemas.Instant `json:"at"`
	// ConfirmedDeletes is how many rows this sweep may still delete beyond the day's budget, because the request
	// confirms so many.
	ConfirmedDeletes int `json:"confirmed_deletes,omitempty"`
	// From is the first id that is not compared yet, or nil at the start. Done is the result of the parts below
	// it.
	From *int64 `json:"from,omitempty"`
	Done *Swept `json:"done,omitempty"`
	// Tried is when an owner began that part, or nil if no owner has it in hand. It is written before the work
	// begins. So a successor that finds it knows that its predecessor died, maybe because of the sweep. Attempts
	// counts the tries in a row that did not end. NotBefore is when the next try may begin.
	Tried     *schemas.Instant `json:"tried,omitempty"`
	Attempts  int              `json:"attempts,omitempty"`
	NotBefore *schemas.Instant `json:"not_before,omitempty"`
	// Failure is how often and why the tries of that part failed, and when the next one begins, in words for
	// people. It stays until the part is done.
	Failure string `json:"failure,omitempty"`
}

// SweptSince returns when the last sweep was finished. If none was, it returns when the first one became due,
// or MinInstant if that is unknown.
func (w *Watermark) SweptSince() schemas.Instant {
	if w.LastSweep == schemas.MinInstant && w.Sweep != nil {
		return w.Sweep.At
	}
	return w.LastSweep
}

// ChangeSweep changes a copy of the sweep, because transactions that were written before hold the old one.
func (w *Watermark) ChangeSweep(change func(*Sweep)) {
	s := *w.Sweep
	change(&s)
	w.Sweep = &s
}

// ChangePart changes a copy of the first replay of a part, as ChangeSweep does of the sweep.
func (w *Watermark) ChangePart(change func(*Part)) {
	w.Parts = slices.Clone(w.Parts)
	change(&w.Parts[0])
}

// HandSweepOver takes the attempt in hand back, because an attempt that ends as planned does not count as a
// death.
func (w *Watermark) HandSweepOver() {
	if w.Sweep != nil && w.Sweep.Tried != nil {
		w.ChangeSweep(func(s *Sweep) { s.Tried, s.Attempts = nil, max(0, s.Attempts-1) })
	}
}

// aheadAtMost is how far the clock of one instance may be ahead of another's.
const aheadAtMost = time.Minute

// Swept is the result of a finished sweep.
type Swept struct {
	// Request is the request that it carried out, or -1 for a scheduled sweep.
	Request    int64           `json:"request"`
	RequestUID string          `json:"request_uid,omitempty"`
	Began      schemas.Instant `json:"began"`
	// SourceRows and TopicRows were compared. DeadLetters counts the source's rows that cannot be published.
	SourceRows  int `json:"source_rows"`
	TopicRows   int `json:"topic_rows"`
	DeadLetters int `json:"dead_letters"`
	// Missing rows are not in the topic, stale rows have another version there, extra rows are not in the
	// source.
	Missing int `json:"missing"`
	Stale   int `json:"stale"`
	Extra   int `json:"extra"`
	// Published counts the missing and stale rows that were published, Tombstones the extra rows that were
	// deleted.
	Published  int `json:"published"`
	Tombstones int `json:"tombstones"`
	// Early rows of the topic are from before resources.*.start, and were not compared.
	Early int `json:"early,omitempty"`
	// Left is why some differences were left as they are, or "".
	Left string `json:"left,omitempty"`
}

// mostLeft bounds Swept.Left of a sweep of many parts.
const mostLeft = 500

// Plus returns the result of s and the part after it.
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

// New returns the first watermark of a resource.
func New(resource string) Watermark {
	return Watermark{Version: Version, Resource: resource, Settled: schemas.MinInstant, AsOf: schemas.MinInstant,
		FreshAsOf: schemas.MinInstant, Request: -1, DedupFrom: schemas.MaxInstant, LastSweep: schemas.MinInstant,
		Written: schemas.MinInstant}
}
