package watermark

import "github.com/storestream/storestream/schemas"

// Part is a replay of a part of a resource that is not finished yet: the rows of a range, or named ones. It
// has published the rows that have a record in the data topic from Ends on. Or it is a retry of named rows.
type Part struct {
	// Request is the id of its request.
	Request int64 `json:"request"`
	// RequestUID is the uid of its request.
	RequestUID string `json:"request_uid,omitempty"`
	// Kind is `replay` or `retry`.
	Kind Kind `json:"kind"`
	// At is when the owner accepted it.
	At schemas.Instant `json:"at"`
	// From is the first updated_at of its rows.
	From schemas.Instant `json:"from"`
	// To is the updated_at before which its rows end.
	To schemas.Instant `json:"to"`
	// IDs lists its only rows. Without them a retry is of all rows that have dead letters.
	IDs []int64 `json:"ids,omitempty"`
	// Ends holds the end offsets of the data partitions when it was accepted.
	Ends []int64 `json:"ends"`
	// Next is the first id that is not dealt with. It is nil at the start.
	Next *int64 `json:"next,omitempty"`
	// Rows is the number of rows published again.
	Rows int64 `json:"rows"`
	// Left is the number of rows that were not published. Of a retry, these are named rows without a dead letter.
	Left int64 `json:"left,omitempty"`
	// Of is the number of rows that it has at most. 0 means that they are not counted yet.
	Of int64 `json:"of,omitempty"`
	// Failure says why the last try failed, and when the next one begins.
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
