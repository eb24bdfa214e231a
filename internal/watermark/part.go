package watermark

import "github.com/storestream/storestream/schemas"

// Part is a replay of a part of a resource that is not finished yet: the rows of a range, or named ones. It
// has published the rows that have a record in the data topic from Ends on. Or it is a retry of named rows.
type Part struct {
	// Request, RequestUID and Kind are those of its request.
	Request    int64  `json:"request"`
	RequestUID string `json:"request_uid,omitempty"`
	Kind       Kind   `json:"kind"`
	// At is when the owner accepted it.
	At schemas.Instant `json:"at"`
	// From and To are the bounds of the updated_at of its rows, To excluded.
	From schemas.Instant `json:"from"`
	To   schemas.Instant `json:"to"`
	// IDs lists its only rows. Without them a retry is of all rows that have dead letters.
	IDs []int64 `json:"ids,omitempty"`
	// Ends holds the end offsets of the data partitions at that time.
	Ends []int64 `json:"ends"`
	// Next is the first id that is not dealt with. It is nil at the start.
	Next *int64 `json:"next,omitempty"`
	// Rows, Left and Of are the numbers of published, skipped and all rows. Left of a retry are named rows
	// without a dead letter. Of is the most that there can be, and 0 before they are counted.
	Rows int64 `json:"rows"`
	Left int64 `json:"left,omitempty"`
	Of   int64 `json:"of,omitempty"`
	// Failure is why the last try failed. It also says when the next one begins.
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
