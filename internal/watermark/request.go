package watermark

import "github.com/storestream/storestream/schemas"

// Kind of a Request.
type Kind string

// The kinds of requests.
const (
	Reset   Kind = "reset"  // publish again every row with updated_at at or after To
	Sweeps  Kind = "sweep"  // compare the whole topic with the source and repair it
	Erases  Kind = "erase"  // delete Rows from the topic, once the source has them no longer
	Replays Kind = "replay" // publish again Rows, or the rows with updated_at from From on and before To
	Retries Kind = "retry"  // look up Rows, or all, that have dead letters, and publish those that can be
	Cancels Kind = "cancel" // end the replays and retries in hand
	Pauses  Kind = "pause"  // do not publish until To, or until it is resumed
	Resumes Kind = "resume" // end a pause
)

// maxRequestBytes bounds a record of the requests topic. The largest that the command line writes has a
// quarter of it.
const maxRequestBytes = 4 << 10

// Request asks something of the owner of a resource. The command line writes it to the requests topic, under
// the resource's name.
type Request struct {
	// ID is the record's offset: requests are applied in this order, each once.
	ID int64 `json:"-"`
	// Topic is the topic of the record, or "" if it was not read from one.
	Topic string `json:"-"`
	// UID is a random id.
	UID string `json:"uid"`
	// Resource is the key of the record.
	Resource string `json:"resource"`
	// Kind is `reset`, `sweep`, `erase`, `replay`, `retry`, `cancel`, `pause` or `resume`.
	Kind Kind `json:"kind"`
	// From is the first updated_at of a replay.
	From *schemas.Instant `json:"from,omitempty"`
	// To is the start of a reset, or the end of a replay or a pause. A replay's may be nil.
	To *schemas.Instant `json:"to,omitempty"`
	// Schema is the confirmed PostgreSQL schema of a reset. Another table or view of the resource's name is
	// right there. "" means the one before.
	Schema string `json:"schema,omitempty"`
	// ConfirmedDeletes is the number of deletions that are allowed even beyond the day's budget. If more are
	// due, a sweep or an erase deletes no row.
	ConfirmedDeletes int `json:"confirmed_deletes,omitempty"`
	// Rows lists the ids of an erase (20 at most), a replay or a retry (100). The limits are MostErased and
	// MostReplayed.
	Rows []int64 `json:"rows,omitempty"`
	// By is `user@host`, as the writer claims.
	By string `json:"by"`
	// At is when it was written.
	At schemas.Instant `json:"at"`
	// Why is the reason, one line of at most 200 bytes. The limit is MostWhy.
	Why string `json:"why,omitempty"`
}

// MostWhy limits the bytes of Request.Why.
const MostWhy = 200

// Kinds are all kinds of requests.
var Kinds = []Kind{Reset, Sweeps, Erases, Replays, Retries, Cancels, Pauses, Resumes}
