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
	// UID is the request's own id, which is random.
	UID      string `json:"uid"`
	Resource string `json:"resource"`
	Kind     Kind   `json:"kind"`
	// From and To are those of a reset or a replay. Each of a replay's may be nil. To also ends a pause.
	From *schemas.Instant `json:"from,omitempty"`
	To   *schemas.Instant `json:"to,omitempty"`
	// Schema, of a reset, is the schema of PostgreSQL in which another table or view of the resource's name is
	// right. "": the one before.
	Schema string `json:"schema,omitempty"`
	// ConfirmedDeletes is how many rows a sweep or an erase may delete beyond the day's budget. An erase is
	// confirmed only if it confirms all its rows.
	ConfirmedDeletes int `json:"confirmed_deletes,omitempty"`
	// Rows are the ids of an erase, MostErased at most, or of a replay or retry, MostReplayed at most.
	Rows []int64         `json:"rows,omitempty"`
	By   string          `json:"by"` // user@host
	At   schemas.Instant `json:"at"`
	// Why is the reason that the user gave, a line of MostWhy bytes at most.
	Why string `json:"why,omitempty"`
}

// MostWhy limits the bytes of Request.Why.
const MostWhy = 200

// Kinds are all kinds of requests.
var Kinds = []Kind{Reset, Sweeps, Erases, Replays, Retries, Cancels, Pauses, Resumes}
