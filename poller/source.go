package poller

import (
	"context"
	"iter"
	"time"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Source reads one resource of the service. A Source belongs to one takeover of one resource: its memory
// between reads (horizons, snapshots, the order in which the service sorts) starts empty with a new owner.
//
// Read yields the batches of one read in the order in which it read them, and at most one error, after
// them. It may repeat a row. It never omits one that stayed visible throughout the read. Each batch says up
// to which instant the resource is now settled. The caller owns a batch that was yielded.
//
// If the caller breaks off, it has dropped the last batch. Then the source forgets its notes about that
// batch. The caller may ask for the next batch while it publishes the one before. After the batch with Done
// it asks for more only when it has published that one. So when yield returns true for that batch, the source
// may rely on its reads.
//
// The error is a *LostError (see there), ctx's cause if ctx was cancelled, a *BlockedError for a fault that
// only a person can mend, and any other error if another try may help: by then the source has made its own
// immediate retries.
type Source interface {
	Read(ctx context.Context, r Request) iter.Seq2[Batch, error]
}

// Kind is the purpose of a Request.
type Kind int

const (
	// Pass reads all rows that may have changed: those with updated_at at or after From.
	Pass Kind = iota
	// Full reads every row with one of IDs that was created or updated at or after From, along a dimension
	// that never changes (Postgres: id, in this order; REST: created_*). It settles nothing. Rows without a
	// usable updated_at are in it.
	Full
	// Lookup reads the rows named in Suspects once more, and maybe others. It settles nothing.
	Lookup
)

// Request names the rows to read.
type Request struct {
	Kind Kind
	// From is the instant at which a Pass starts: the watermark's settled. MinInstant: from the earliest row.
	From schemas.Instant
	// Passed, of a Pass in a replay, is where settled stood before. If earlier rows may appear again, although
	// a pass from From on would meet them, the read ends with a *LostError: the replay may be cancelled.
	Passed schemas.Instant
	// Cursor is the place at which a Pass that was cut short goes on. A batch of that pass named it. Nil means
	// From.
	Cursor *watermark.Cursor
	// Load is the place of a load that a Pass goes on with. A batch of a pass named it. nil means none.
	Load *watermark.Load
	// Rows is the number of rows that were published so far.
	Rows int64
	// Complete asks for a complete pass. A cheap one, which over REST meets every change since the pass before
	// it, is not enough.
	Complete bool
	// Floor, of a pass, covers the rows that need not be read again. The Done of the pass before named it.
	// nil means none.
	Floor *watermark.Floor
	// Identity identifies the table that was read before, as a Batch of a pass reported it. Nil if it is not
	// known. A pass compares it. Every read ends with a *BlockedError if it would take another table's rows for
	// those.
	Identity *watermark.Identity
	// Fields are the schema's fields that the source had, as the Done of an earlier pass said. nil means not
	// known. If one of them is gone, a read ends with a *BlockedError.
	Fields []string
	// Started is the caller's clock at the start of this read.
	Started schemas.Instant
	// Find, of a pass, fills in the published version of rows, and the Text of its Record. Any goroutine may
	// call it. Nil means that the source hands on every row with its Value.
	Find func([]Known)
	// Suspects are the rows of a Lookup.
	Suspects []Suspect
	// Everywhere, of a Lookup: if the days of a suspect do not show it, all rows are read, however long that
	// takes.
	Everywhere bool
}

// Suspect is a row to look at again: its id, and days on which a source that is read by day finds it
// (UpdatedAt, CreatedAt; MinInstant if unknown).
type Suspect = reconcile.Suspect

// Known is a row that a poller may know.
type Known = rowset.Noted

// Batch is a part of a read.
type Batch struct {
	Rows    []schemas.Record
	Rejects []schemas.Reject
	// Same are rows that the source has not parsed: each had the Text of the Version, which is not marked. They
	// were read with Rows, in any order.
	Same []Known
	// Nulls counts by field the values that were read as null though they are written otherwise, such as NaN.
	Nulls map[string]int
	// Final is set for each row whose version no later pass reads again, if that pass goes on from this
	// batch's Cursor or Load or from the Floor of this pass's Done. Then dedup need not remember it. nil means
	// no row. Only a source that has a Floor sets it.
	Final []bool
	// Age is the time since the oldest answer with these rows was made. A cache's answers may be old.
	Age time.Duration
	// Settled is the instant up to which the resource is settled once this batch and those before it are
	// published. Then no row with an earlier updated_at can appear any more. MinInstant means not known. It
	// never exceeds the range that was read.
	Settled schemas.Instant
	// Cursor is the place at which this pass goes on after this batch. Nil means Settled.
	Cursor *watermark.Cursor
	// Load is the place of the load after this batch. nil means that no load is in hand. A source changes it
	// behind the whole batch, or hands on the Load that it had.
	Load *watermark.Load
	// Identity, in a pass, identifies the table of these rows. Nil if the source has no identity.
	Identity *watermark.Identity
	// Dialect, in a pass over REST, has the known habits of the service (package dialect), or is nil.
	Dialect map[string]watermark.Proof
	// Failed, in a pass, is the newest request that failed and was stepped over, in words. "" means none.
	Failed string
	// Done comes with the last batch of a read.
	Done *Done
}

// Done says how far a complete read reached.
type Done struct {
	// Started is when the pass began (Request.Started, or Cursor.Started if it went on from a cursor).
	Started schemas.Instant
	// Complete is set for a pass that read from Request.From to the end. It met every row that was visible when
	// it began, also those that passes before it had met, so as_of becomes Started. A cheap pass over REST met
	// every change since the pass before it, and counts for lag alone. Complete is also set for a Full that met
	// every row, and for a Lookup that looked for every suspect, even those without a known day.
	Complete bool
	// Empty, of a Lookup: it met no row, and the source shows none at all, of any id or day. Such an answer
	// is likelier broken than true, so it does not show that a row was deleted.
	Empty bool
	// Floor, of a pass, covers the rows that it and the passes before it have met, for the next Request. nil
	// means that the source has no floor.
	Floor *watermark.Floor
	// Fields, of a pass, are the schema's fields that the source has, in the schema's order. nil means that
	// the pass did not show it.
	Fields []string
	// Delayed is the reason why settling is delayed, for the log and the page: "a transaction is open since
	// ...", "2026-11-20 cannot be closed: ...". "" means that it is not.
	Delayed string
}

// LostError ends a pass that cannot rely on earlier reads: the source cannot use the Floor or the Cursor,
// the database turned out to be another one, or its clock went back. Versions that were called final may be
// read again after all. The caller reads back the rows that were published since settled, and asks again
// with neither Floor nor Cursor. The source does not return the same error to that. If it does, and the
// caller has nothing left to give up, the error is a failure like others.
type LostError struct {
	Why string
	// From is the earliest updated_at of rows that may have changed. Settled goes back to it. MaxInstant
	// means that settled stays.
	From schemas.Instant
	// Sweep is set if rows may have changed that no pass meets. Then a sweep follows, and of the Identity
	// only the table's schema and kind are kept (Identity.Anew).
	Sweep bool
}

func (e *LostError) Error() string { return "what was read before does not count any more: " + e.Why }

// BlockedError blocks a resource until a person has repaired the cause. The poller shows it and tries again,
// seldom.
type BlockedError struct {
	What string // the fault, its object, the expectation, and the remedy
	Err  error  // the cause, or nil
	// Soon is set if the cause may be over at any moment, and another try costs little.
	Soon bool
	// Publishes is set if the rows that it names were left out, and the others of this read were yielded.
	Publishes bool
}

func (e *BlockedError) Error() string {
	if e.Err == nil {
		return e.What
	}
	return e.What + ": " + e.Err.Error()
}

func (e *BlockedError) Unwrap() error { return e.Err }
