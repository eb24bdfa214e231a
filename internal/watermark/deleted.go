package watermark

import "github.com/storestream/storestream/schemas"

// Deleted counts the rows that were deleted from the topic on one UTC day without a confirmation. It is part
// of the watermark, so a takeover or a restart does not begin the day's budget anew.
type Deleted struct {
	// Day is the first instant of that day.
	Day  schemas.Instant `json:"day"`
	Rows int             `json:"rows"`
}

// DeletedOn is how many rows were deleted without a confirmation on the UTC day of now. Just before midnight
// the next day counts too: the clock of the instance before may have been ahead.
func (w *Watermark) DeletedOn(now schemas.Instant) int {
	if d := w.Deleted; d != nil && (d.Day == now.Day() || d.Day == now.Add(aheadAtMost).Day()) {
		return d.Rows
	}
	return 0
}

// CountDeleted counts a row that is deleted without a confirmation. It makes a new Deleted, because
// transactions that were written before hold the old one.
func (w *Watermark) CountDeleted(now schemas.Instant) {
	d := Deleted{Day: now.Day(), Rows: w.DeletedOn(now) + 1}
	if d.Rows > 1 {
		d.Day = w.Deleted.Day
	}
	w.Deleted = &d
}
