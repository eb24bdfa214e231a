package watermark

import "github.com/storestream/storestream/schemas"

// Deleted counts the rows that were deleted from the topic on one UTC day without a confirmation. It is part
// of the watermark, so a takeover or a restart does not reset the day's budget.
type Deleted struct {
	// Day and Rows are the UTC day and its unconfirmed deletions. Day is its first instant.
	Day  schemas.Instant `json:"day"`
	Rows int             `json:"rows"`
}

// On returns how many rows were deleted without a confirmation on the UTC day of now. Just before midnight it
// also returns a count of the next day, because the previous instance's clock may have been ahead.
func (d *Deleted) On(now schemas.Instant) int {
	if d != nil && (d.Day == now.Day() || d.Day == now.Add(aheadAtMost).Day()) {
		return d.Rows
	}
	return 0
}

// Plus returns d with one more row deleted without a confirmation. It does not change d, because transactions
// that were written before hold it.
func (d *Deleted) Plus(now schemas.Instant) *Deleted {
	if n := d.On(now); n > 0 {
		return &Deleted{Day: d.Day, Rows: n + 1}
	}
	return &Deleted{Day: now.Day(), Rows: 1}
}
