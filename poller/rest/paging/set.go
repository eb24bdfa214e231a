package paging

import "math"

// Set is a set of rows that the service can be asked for, page by page.
type Set struct {
	// Created is when the rows of the set were created. A set that does not fit a page is cut along it.
	Created Span
	// Growing is set if the set gains rows, and loses them only by deletions: the rows updated since a day.
	// Else it is shrinking: it loses rows, which are updated or deleted, and gains none: the rows updated on a
	// day that is over.
	Growing bool
	// Today is the last day for which the service is asked: it may refuse later ones. Zero means that there is
	// no such day.
	Today Day
	// Uncut is set if the set is not cut: the service cannot be asked for a part of it.
	Uncut bool
	// Once limits the reading to one pass, even if that does not show that the pass met every row.
	Once bool
	// Began is the time at which the reading begins, in the unit of Row.Updated, by the clock that stamps rows.
	// Of a growing set, rows that were updated since are left out when passes are compared.
	Began int64
}

// Answer is the service's answer to one question.
type Answer struct {
	// Rows are good until Next has returned once more.
	Rows []Row
	// More is set if more pages follow.
	More bool
	// Unsure is set if the page has rows, and the answer does not say whether more follow.
	Unsure bool
	// Count is how many rows the set has, or this page: services differ. -1 if it is absent.
	Count int
	// Size is how many rows a page has by the service's own word. -1 if it is absent.
	Size int
	// Beyond is set if the service refused a page above 0, or answered with another one. There is no such page
	// now.
	Beyond bool
	// Failed, if not empty, says why no good answer came, for people. Then the page is not known, unless Beyond
	// is set.
	Failed string
	// Doubt, if not empty, says why this answer proves nothing.
	Doubt string
}

// isLast reports whether the service says of this page that no more follow.
func (a Answer) isLast() bool { return !a.More && !a.Beyond }

// oldest returns the earliest time on the page. If it has none, that is the end of time.
func (a Answer) oldest() int64 {
	least := int64(math.MaxInt64)
	for _, row := range a.Rows {
		if row.Updated != NoTime {
			least = min(least, row.Updated)
		}
	}
	return least
}

// Row is the part of a row that paging needs.
type Row struct {
	// ID is the row's name, or a hash of its text if it has none. A row keeps it while it stays in the set.
	// Two rows that share one by chance are counted as one: then fewer were met than there are.
	ID uint64
	// Created is the day on which it was created, as far as known (else Past). It only helps to plan cuts.
	Created Day
	// Undated is set if the day was looked for, and the row has none. So it is in no part of a set.
	Undated bool
	// Updated is when it was last changed, in any unit that orders. NoTime if that is unusable.
	Updated int64
}

// NoTime is Updated of a row that has no usable time.
const NoTime = -1 << 63

// Outcome is the result of reading a set.
type Outcome struct {
	// Whole is set if every row that stayed in the set throughout was read. If not, Why says why, for people.
	Whole bool
	Why   string
	// Failed is set if the set is not whole, and a page of it got no good answer. ButRows is set if single rows
	// are all that Whole lacks, as far as one pass shows.
	Failed, ButRows bool
	// Rows is how many different rows were met, Requests how many answers it took.
	Rows, Requests int
	// Paged is set if the set did not fit one page.
	Paged bool
	// Passes is how many passes over several pages it took.
	Passes int
	// Last is the number of the last page, if Newest looked for it.
	Last int
}
