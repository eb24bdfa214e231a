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
	// Version is 2.
	Version int `json:"version"`
	// Resource is the key of the record.
	Resource string `json:"resource"`
	// Settled is the updated_at before which every row is published and no row can appear. The overlap is
	// already taken off. Reads start here. It is schemas.MinInstant at first.
	Settled schemas.Instant `json:"settled"`
	// AsOf is when the last complete pass began. The clock is that of its instance. It is MinInstant at first.
	AsOf schemas.Instant `json:"as_of"`
	// FreshAsOf is when the last pass began that met every change. These are the changes since the pass
	// before it. The lag counts from FreshAsOf. A cheap pass over REST moves it alone. So it is AsOf or
	// later, unless a clock went back.
	FreshAsOf schemas.Instant `json:"fresh_as_of"`
	// Rows is the number of rows published since the last first load began, replays included.
	Rows int64 `json:"rows"`
	// Request and RequestUID are id and uid of the last accepted request, or -1. The id is the offset in the
	// requests topic. If that topic was created again, another request has the same offset.
	Request    int64  `json:"request"`
	RequestUID string `json:"request_uid,omitempty"`
	// Instance and Group are the writer of this and its consumer group.
	Instance string `json:"instance"`
	Group    string `json:"group"`

	// Cursor is where an interrupted PostgreSQL pass continues. If it is nil, the next pass begins at Settled.
	Cursor *Cursor `json:"cursor,omitempty"`
	// Load is the position of a first load by blocks (PostgreSQL). Nil means that no such load is in hand.
	Load *Load `json:"load,omitempty"`
	// Floor describes PostgreSQL rows that need no second reading. If it is nil, the next pass reads everything
	// from Settled on.
	Floor *Floor `json:"floor,omitempty"`
	// Identity identifies the PostgreSQL table. It is nil if it is not known, and over REST.
	Identity *Identity `json:"identity,omitempty"`
	// Source is `postgres` or `rest`. It is "" before the first pass.
	Source string `json:"source,omitempty"`
	// DedupFrom is the record time from which a takeover restores deduplication. It is at or before the
	// record time of every row that has to be remembered, except rows in Future, and MaxInstant if there is
	// no such row. A successor reads from the first record of each partition with that time or a later one,
	// and passes over rows with an earlier updated_at.
	DedupFrom schemas.Instant `json:"dedup_from"`
	// Future lists rows with an updated_at over an hour ahead. It has 64 at most, each the published version.
	// Each would pin DedupFrom for as long.
	Future []FutureRow `json:"future,omitempty"`
	// Replay is the replay in hand of a reset.
	Replay *Replay `json:"replay,omitempty"`
	// Parts lists waiting replays of parts, and retries, 5 at most. The first one may be in hand.
	Parts []Part `json:"parts,omitempty"`
	// Results lists the last 20 results, newest last. Sweeps and erases have their own.
	Results []Result `json:"results,omitempty"`
	// Sweep is the waiting or running sweep.
	Sweep *Sweep `json:"sweep,omitempty"`
	// LastSweep is when the last sweep ended. It is MinInstant before the first one.
	LastSweep schemas.Instant `json:"last_sweep"`
	// Swept is the result of the last sweep.
	Swept *Swept `json:"swept,omitempty"`
	// Erase lists rows that wait to be erased.
	Erase []Erase `json:"erase,omitempty"`
	// Erased lists the last 20 results of erases.
	Erased []Erased `json:"erased,omitempty"`
	// Deleted is the used part of the day's deletion budget. It is nil until a row is deleted without a
	// confirmation.
	Deleted *Deleted `json:"deleted,omitempty"`
	// TopicID and Partitions are the id and partition count of the data topic. Another id is another topic: a
	// first load begins. Another count would put one key into two partitions: the resource is blocked.
	TopicID    string `json:"topic_id"`
	Partitions int32  `json:"partitions"`
	// Ends holds a reached offset of each data partition. A log that ends before it lost records, or is another
	// one. Nil means unknown.
	Ends []int64 `json:"ends,omitempty"`
	// Fields lists schema fields that the source had. They are those of the last complete pass, or of the time
	// before one in the first pass, in the schema's order. Nil means unknown.
	Fields []string `json:"fields,omitempty"`
	// Dialect holds answers of the service, by the names of `store.dialect`. It is nil for PostgreSQL, and while
	// no answer is known. Package dialect has the questions.
	Dialect map[string]Proof `json:"dialect,omitempty"`
	// Policies lists fingerprints of privacy policies that published rows may have.
	Policies Policies `json:"privacy,omitempty"`
	// Pause is the pause that a person requested. It may be over.
	Pause *Pause `json:"pause,omitempty"`
	// Trouble is why it is blocked, failing, or settling is delayed. Otherwise it is nil.
	Trouble *Trouble `json:"trouble,omitempty"`
	// Written is when this was written. The clock is that of Instance. It distinguishes a live neighbor from one
	// that ended long ago.
	Written schemas.Instant `json:"written"`
}

// Cursor is the last row of the last published chunk of a PostgreSQL pass, with the facts that the rest of
// the pass needs to settle the first part too. A cursor does not move Settled.
type Cursor struct {
	// UpdatedAt and ID are those of the last published row.
	UpdatedAt schemas.Instant `json:"updated_at"`
	ID        int64           `json:"id"`
	// Xmin, HorizonTime and HorizonNext are the smallest xmin of the pass, and its horizon. The horizon is the
	// latest that may be used with all snapshots so far, as its time and next transaction id. All three are 0 if
	// the source has no such thing.
	Xmin        uint64          `json:"xmin,omitempty"`
	HorizonTime schemas.Instant `json:"horizon_time,omitempty"`
	HorizonNext uint64          `json:"horizon_next,omitempty"`
	// Started is when the pass began. AsOf becomes this time when the pass completes.
	Started schemas.Instant `json:"started"`
	// Floor is the floor after the complete pass. It is nil if the pass leaves none.
	Floor *Floor `json:"floor,omitempty"`
}

// Floor describes the rows of one PostgreSQL table that passes have met: every row stamped From or later
// whose writer is over in Snapshot. Rows that a pass reads above it have changed since. It belongs to the
// watermark's Identity and is dropped when that changes.
type Floor struct {
	// Snapshot and From are a `pg_snapshot`, and the updated_at from which it applies. Rows of transactions that
	// ended in the snapshot were read. Its form is xmin:xmax:running, with 64-bit ids. A standby does not list
	// running transactions. Its snapshot is xmin:xmin: and so shows less than it could.
	Snapshot string          `json:"snapshot"`
	From     schemas.Instant `json:"from"`
}

// Trouble is why a resource is blocked or fails, or why settled stands still, in words for people, and since
// when.
type Trouble struct {
	// Why is the reason, in words.
	Why string `json:"why"`
	// Since is when the trouble began. The reason may have been another one then.
	Since schemas.Instant `json:"since"`
	// Publishes is set if rows are still published. Without LeavesOut all are, and only settled stands still.
	Publishes bool `json:"publishes,omitempty"`
	// LeavesOut is set if it is blocked only for rows that Why names. Other rows are published.
	LeavesOut bool `json:"leaves_out,omitempty"`
	// Failing is set if polls fail and are tried again. A server may be down. No limit is reached and no data
	// contradict themselves. With Publishes, requests of the first load fail, and the other polls continue.
	Failing bool `json:"failing,omitempty"`
	// Until is when a deferred row gets its second look. It is that of the next such row, and nil if no row is
	// deferred.
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
	// ID and UpdatedAt are those of the row.
	ID        int64           `json:"id"`
	UpdatedAt schemas.Instant `json:"updated_at"`
	// Hash is a hash of the published value. schemas.Hash computes it.
	Hash uint64 `json:"hash,string"`
	// Old is set if it was published before the replay in hand. It then does not suppress an equal row.
	Old bool `json:"old,omitempty"`
}

// Replay is an accepted reset that is not finished yet.
type Replay struct {
	// Request and RequestUID are id and uid of its request.
	Request    int64  `json:"request"`
	RequestUID string `json:"request_uid,omitempty"`
	// From is the updated_at from which rows are published again.
	From schemas.Instant `json:"from"`
	// At is when the owner accepted it. The first complete pass after it finishes the replay.
	At schemas.Instant `json:"at"`
	// Settled is the settled time at acceptance. Every copy of the service shows the same rows before it.
	Settled schemas.Instant `json:"settled"`
	// Ends holds the end offsets of the data partitions at that time. The replay published only the records from
	// there on, so only those suppress an equal row. Otherwise, after a takeover in the middle, the rest would
	// count as published.
	Ends []int64 `json:"ends"`
	// Rows is the number of rows published since. Rows that changed meanwhile count too.
	Rows int64 `json:"rows"`
}

// Result is the result of a request that an owner has dealt with: of a replay of either kind, a retry, a
// cancel, a pause or a resume.
type Result struct {
	// Request, RequestUID and Kind are those of the request.
	Request    int64  `json:"request"`
	RequestUID string `json:"request_uid,omitempty"`
	Kind       Kind   `json:"kind"`
	// From is the start of a replay.
	From schemas.Instant `json:"from"`
	// Began and Ended are when the owner accepted and finished it.
	Began schemas.Instant `json:"began"`
	Ended schemas.Instant `json:"ended"`
	// Rows is the number of rows published for it.
	Rows int64 `json:"rows"`
	// Left says which rows were left, or why it was refused. It is "" if there is nothing to say.
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
	// Request and RequestUID are id and uid of its request. Without one they are -1 and "".
	Request    int64  `json:"request"`
	RequestUID string `json:"request_uid,omitempty"`
	// At is when it was accepted or became due.
	At schemas.Instant `json:"at"`
	// ConfirmedDeletes is the largest number of deletions that the request confirmed.
	ConfirmedDeletes int `json:"confirmed_deletes,omitempty"`
	// From and Done are the first id not yet compared, and the result before it. From is nil at the start.
	From *int64 `json:"from,omitempty"`
	Done *Swept `json:"done,omitempty"`
	// Tried is when the try in hand began. It is nil if no owner has the sweep in hand. It is written before the
	// work begins. So a successor that finds it knows that its predecessor died, maybe because of the sweep.
	Tried *schemas.Instant `json:"tried,omitempty"`
	// Attempts and NotBefore are the unfinished tries, and the time of the next. Attempts counts tries in a row.
	Attempts  int              `json:"attempts,omitempty"`
	NotBefore *schemas.Instant `json:"not_before,omitempty"`
	// Failure is why the last try failed. It also says how often tries failed, and when the next one begins. It
	// stays until the part is done.
	Failure string `json:"failure,omitempty"`
}

// SweptSince returns when the last sweep was finished. Before the first one is finished, it returns when that
// became due, or MinInstant if that is unknown.
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
	// Request and RequestUID are id and uid of its request. Without one they are -1 and "".
	Request    int64  `json:"request"`
	RequestUID string `json:"request_uid,omitempty"`
	// Began is when the sweep began.
	Began schemas.Instant `json:"began"`
	// SourceRows and TopicRows are the numbers of compared rows.
	SourceRows int `json:"source_rows"`
	TopicRows  int `json:"topic_rows"`
	// DeadLetters is the number of source rows that cannot be published.
	DeadLetters int `json:"dead_letters"`
	// Missing, Stale and Extra are the rows missing, outdated and extra in the topic. An extra row is not in the
	// source.
	Missing int `json:"missing"`
	Stale   int `json:"stale"`
	Extra   int `json:"extra"`
	// Published and Tombstones are the rows repaired, and those deleted. Missing and stale rows are
	// published, and extra ones deleted.
	Published  int `json:"published"`
	Tombstones int `json:"tombstones"`
	// Early is the number of rows before `resources.*.start`, which were not compared.
	Early int `json:"early,omitempty"`
	// Left is why some differences were left. It is "" if the sweep left no difference.
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
