package paging

import "math"

// Motion is how a set may change while it is read.
type Motion int

const (
	// Shrinking sets have rows that leave (they are updated, or deleted), and none that comes: what was updated
	// on a day that is over.
	Shrinking Motion = iota
	// Growing sets have rows that come and, deletions apart, none that leaves: what was updated since a day.
	Growing
)

// Set is a set of rows that the service can be asked for, page by page.
type Set struct {
	// Created is when the rows of the set were created: the set is cut along it where pages do not suffice.
	Created Span
	Motion  Motion
	// Like is the day of which this set has the rows, for cuts that suit one day often suit the next; Past: it
	// is like no other.
	Like Day
	// Once: the set is read in one pass, even where that does not show that the pass met every row.
	Once bool
	// Touching: rows that were created at the end of a part are in the next one, too.
	Touching bool
	// Began is the time at which the reading begins, in the unit of Row.Updated, by the clock that stamps rows.
	// Of a growing set, rows that were updated since are left out when passes are compared.
	Began int64
}

// Answer is what the service said to one request.
type Answer struct {
	// Rows are good until the next question.
	Rows []Row
	// More: more pages follow.
	More bool
	// Count is how many rows the set has, or this page: services differ (see Counts). -1 where it is absent.
	Count int
	// Size is how many rows a page has by the service's own word; -1 where it is absent.
	Size int
	// Beyond: the service refused a page above 0, or answered with another one. There is no such page now.
	Beyond bool
	// Doubt, if not empty, says why this answer proves nothing.
	Doubt string
}

// Counts says what the service's count is worth.
type Counts int

const (
	// ExactCounts are how many rows a set has, or a page. A set is not taken for whole where its last page
	// contradicts them.
	ExactCounts Counts = iota
	// EstimatedCounts are about as many: they show where to look for the last page, and nothing else.
	EstimatedCounts
	// IgnoredCounts are not looked at.
	IgnoredCounts
)

// isLast: the service says of this page that no more follow.
func (a Answer) isLast() bool { return !a.More && !a.Beyond }

// oldest is the earliest time on the page; the end of time where it has none.
func (a Answer) oldest() int64 {
	least := int64(math.MaxInt64)
	for _, row := range a.Rows {
		if row.Updated != NoTime {
			least = min(least, row.Updated)
		}
	}
	return least
}

// Row is what paging looks at in a row.
type Row struct {
	// ID is the row's name, or a hash of its text where it has none. A row keeps it while it stays in the set.
	// Two rows that share one by chance are counted as one: then fewer were met than there are.
	ID uint64
	// Created is the day on which it was created, as far as known (else Past). It only helps to plan cuts.
	Created Day
	// Undated: it was looked for that day, and has none. So it is in no part of a set.
	Undated bool
	// Updated is when it was last changed, in any unit that orders; NoTime where it is unusable.
	Updated int64
}

// NoTime is Updated of a row that has no usable time.
const NoTime = -1 << 63

// Outcome is what the reading of a set came to.
type Outcome struct {
	// Whole: every row that stayed in the set throughout was read. Why says why not, for people.
	Whole bool
	Why   string
	// Final: it is not whole for a reason that a smaller set would have as well.
	Final bool
	// Rows is how many different rows were met, Requests how many answers it took.
	Rows, Requests int
	// Paged is set if the set did not fit one page.
	Paged bool
	// Passes is how many passes over several pages it took.
	Passes int
	// Last is the number of the last page, if Newest looked for it.
	Last int

	counted int // by the service, at most, during a forward pass; -1: it did not
}

func (o *Outcome) join(part Outcome) {
	o.Rows += part.Rows
	o.Requests += part.Requests
	o.Paged = o.Paged || part.Paged
	if !part.Whole && o.Whole {
		o.Whole, o.Why, o.Final = false, part.Why, part.Final
	}
}
