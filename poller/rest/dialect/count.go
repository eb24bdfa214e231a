package dialect

// Estimate is the one value of Count.
const Estimate = "estimate"

// Count asks whether meta.count is exact. No answer can prove that a count is exact, and package paging holds
// each count against the rows that it meets. So it is only set. While it is unknown, a count is taken for
// exact, of all rows or of the page. If a day's count contradicts its rows, the day stays open, and the
// reason names the count.
var Count = &Property{
	Name:     "count",
	Question: "Is meta.count exact or an estimate?",
	OnlySet:  true,
	Means: map[string]string{
		Estimate: "a count only shortens the search for the last page",
	},
}
