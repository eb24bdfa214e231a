package watermark

import "github.com/storestream/storestream/schemas"

// Part is a replay of a part of a resource that is not finished yet: the rows of a range, or named ones. It
// has published the rows that have a record in the data topic from Ends on. Or it is a retry of named rows.
type Part struct {
	Request    int64           `json:"request"`
	RequestUID string          `json:"request_uid,omitempty"`
	Kind       Kind            `json:"kind"` // Replays or Retries
	At         schemas.Instant `json:"at"`
	// From and To bound the updated_at of its rows, To not included.
	From schemas.Instant `json:"from"`
	To   schemas.Instant `json:"to"`
	// IDs are the only rows of it, if not nil. Without them a retry is of all rows that have dead letters.
	IDs []int64 `json:"ids,omitempty"`
	// Ends are the data partitions' end offsets when it was accepted, by partition.
	Ends []int64 `json:"ends"`
	// Next is the first id that is not dealt with yet, or nil at the start.
	Next *int64 `json:"next,omitempty"`
	// Rows were published again, Left ones were not. Left of a retry are named rows without a dead letter. It
	// has Of rows at most; 0: they are not counted yet.
	Rows int64 `json:"rows"`
	Left int64 `json:"left,omitempty"`
	Of   int64 `json:"of,omitempty"`
	// Failure is why the last try failed, and when the next one begins, in words for people.
	Failure string `json:"failure,omitempty"`
}

const (
	// MostReplayed limits the ids of a request for a replay or a retry.
	MostReplayed = 100
	// MostParts limits the replays of parts that wait or are in hand. Further ones are refused.
	MostParts = 5
)

// PartOf returns the replay that r asks for. ends are the end offsets of the data topic.
func PartOf(r Request, at schemas.Instant, ends []int64) Part {
	p := Part{Request: r.ID, RequestUID: r.UID, At: at, From: schemas.MinInstant, To: schemas.MaxInstant,
		Ends: ends, Kind: r.Kind}
	if len(r.Rows) > 0 {
		p.IDs = r.Rows
	}
	if r.From != nil {
		p.From = *r.From
	}
	if r.To != nil {
		p.To = *r.To
	}
	return p
}

// Ended returns the result of p. left says in words which rows it leaves, or is "".
func (p *Part) Ended(at schemas.Instant, left string) Result {
	return Result{Request: p.Request, RequestUID: p.RequestUID, Kind: p.Kind, From: p.From, Began: p.At,
		Ended: at, Rows: p.Rows, Left: left}
}
