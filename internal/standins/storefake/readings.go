package storefake

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Readings is one reading of the points that the document leaves open. The zero value is the plainest:
// meta.count is the total, a page past the end is empty, an oversized page is capped, rows come by id, there
// is no limit, keys do not expire, and values are null only if they must be.
type Readings struct {
	Count    Count    // what meta.count counts
	HasMore  HasMore  // when meta.has_more is true
	PastEnd  PastEnd  // the answer to a page beyond the last
	Oversize Oversize // the answer to a page_size above 1000
	// MaxPage limits the rows of a page. meta.page_size shows it. Zero means 1000.
	MaxPage int
	// PageTurns is the number of data requests after which the number of rows granted a page changes: to
	// MaxPage, a half or a third of it. Zero keeps it.
	PageTurns int
	PageWord  PageWord // the value of meta.page_size
	// MaxPages limits the pages of a window: the last of them says has_more: false even if rows follow, and
	// meta.count goes on to count all. Zero means no limit.
	MaxPages int
	Order    Order
	// PermuteTies shuffles for each request the rows whose updated_at falls into the same second. It needs an
	// Order by updated_at.
	PermuteTies bool
	// EmptyPages and ShortPages are shares of the pages that are empty, or half full, although more rows follow.
	// They lose no row, because the next page continues after their last row.
	EmptyPages, ShortPages float64

	Limit Limit
	Keys  Keys

	MoneyForm   MoneyForm
	ExtraFields bool // fields that the document does not know, at both ends of a row
	// Without are fields that rows over REST do not have, such as "users.city": a field that vanishes, and
	// comes back when the list is shorter again. Store.RenameColumns does the same to PostgreSQL.
	Without []string
	// Nulls is the share of values that are null, of all fields but id, created_at and updated_at. It touches
	// rows generated or changed while it is set.
	Nulls float64
	// NewStatuses is the share of order states that the document does not name, of orders generated or moved on
	// while it is set.
	NewStatuses float64
	// Deletes is the share of traffic's changes that delete a row, UsedIDs the share of its new rows that get
	// the id of a row that was deleted.
	Deletes, UsedIDs float64

	NoDate bool // no Date header
	// DayOffset moves the service's midnight: with 2h its day starts at 22:00 UTC of the day before.
	DayOffset time.Duration
	// CreatedOffset moves the midnight of created_* further, and not that of updated_*: a service may file rows
	// by the shop's days, and their changes by UTC.
	CreatedOffset time.Duration
	// UpdatedToMidnight: updated_to takes in no more of its day than the first instant; CreatedToMidnight is the
	// same of created_to. Nothing says that a service reads both alike.
	UpdatedToMidnight, CreatedToMidnight bool
	// Delay hides a row until so long after its updated_at, by the service's clock. Until then no query shows
	// it, by its old values either.
	Delay time.Duration

	// Replicas is how many copies of the rows answer over REST, another one each time. Zero means none. The
	// last of them lags behind by ReplicaLag, by the service's clock, the first not at all, and the others lie
	// in between. A lone one lags. A copy lags behind whole transactions, and never goes back itself.
	Replicas   int
	ReplicaLag time.Duration
	Cache      Cache

	Habits   Habits
	Refusals []Refusal // the first that fits a request answers it
}

// Count says what meta.count counts.
type Count string

// What meta.count may mean.
const (
	CountTotal    Count = ""         // all matching rows
	CountPage     Count = "page"     // the rows of this page
	CountEstimate Count = "estimate" // up to a fifth more or less than all matching rows, and never none
)

// PageWord selects the value of meta.page_size.
type PageWord string

// The values of meta.page_size.
const (
	PageGranted PageWord = ""       // how many rows a page has at most
	PageAsked   PageWord = "asked"  // as many as were asked for, even if fewer are granted
	PageAbsent  PageWord = "absent" // the field is missing
)

// HasMore says when meta.has_more is true.
type HasMore string

// What meta.has_more may mean.
const (
	MoreFollows HasMore = ""       // more rows follow
	MoreFull    HasMore = "full"   // more rows follow, or this page is as long as a page can be
	MoreAlways  HasMore = "always" // it is never false
)

// PastEnd is the answer to a page beyond the last.
type PastEnd string

// Answers to a page beyond the last.
const (
	PastEndEmpty      PastEnd = ""     // 200 without rows
	PastEndBadRequest PastEnd = "400"  // invalid_param
	PastEndNotFound   PastEnd = "404"  // not_found
	PastEndLast       PastEnd = "last" // the last page once more
)

// Oversize is the answer to a page_size above 1000.
type Oversize string

// Answers to a page_size above 1000.
const (
	OversizeCapped  Oversize = ""
	OversizeRefused Oversize = "refused" // 400 invalid_param
)

// Order is the order of rows in a listing.
type Order string

// Orders that the service may list rows in. With ties, the id decides.
const (
	ByID          Order = ""
	ByUpdated     Order = "updated"      // oldest change first
	ByUpdatedDesc Order = "updated-desc" // newest change first
	ByPinned      Order = "pinned"       // some rows first, whatever happens to them, the rest as ByUpdated
	ByHash        Order = "hash"         // arbitrary, and always the same
	ByShuffle     Order = "shuffle"      // another on every request
)

// MoneyForm is how money is written in JSON.
type MoneyForm string

// Forms of money. The value is the same in each.
const (
	MoneyAsIs     MoneyForm = ""         // 49, 49.5, 59.990001678466797
	MoneyPadded   MoneyForm = "padded"   // 49.00, 49.50
	MoneyString   MoneyForm = "string"   // "49.00", "49.50"
	MoneyExponent MoneyForm = "exponent" // 49e0, 495e-1
	MoneyStripped MoneyForm = "stripped" // 49, 49.5, 1E+3: Java's stripTrailingZeros().toString()
)

// Limit is the rate limit on all requests together, by the machine's clock.
type Limit struct {
	PerSecond  float64 // 0 means no limit
	Burst      int     // requests at once. Zero means those of a second.
	Status     int     // one of limitStatuses. Zero means 429.
	RetryAfter RetryAfter
	HTML       bool // an HTML page for a body, as a gateway in front of the service would send
}

// limitStatuses are those with which services refuse for the rate.
var limitStatuses = []int{429, 503, 403, 420}

// RetryAfter is the form of the Retry-After header.
type RetryAfter string

// Forms of Retry-After.
const (
	RetryAfterSeconds RetryAfter = ""
	RetryAfterDate    RetryAfter = "date" // by the service's clock
	RetryAfterZero    RetryAfter = "zero"
	RetryAfterAbsent  RetryAfter = "absent"
)

// Keys says how long a key is good for. A key that is used up answers 401; the key endpoint then gives out a
// new one.
type Keys struct {
	Lifetime time.Duration // by the machine's clock. Zero means no end.
	Requests int           // data requests. Zero means any number.
}

// Cache is an HTTP cache in front of the data endpoints. It keeps answers that went well, by their URL.
type Cache struct {
	For     time.Duration // an answer is given for so long, by the service's clock. Zero means no cache.
	NoAge   bool          // no Age header; the Date of an answer from the cache is still that of its making
	NewDate bool          // the Date of such an answer is now: with NoAge nothing shows how old it is
	Deaf    bool          // a request's Cache-Control is not heeded
}

// known checks v, whose empty value goes by a name to people.
func known[T ~string](what string, v T, empty string, others ...T) error {
	if v == "" || slices.Contains(others, v) {
		return nil
	}
	return fmt.Errorf("%s %q: expected %s or one of %q", what, v, empty, others)
}

func share(what string, v float64) error {
	if v >= 0 && v <= 1 {
		return nil
	}
	return fmt.Errorf("%s %v: expected a share from 0 to 1", what, v)
}

// Check reports every impossible setting of r, all at once.
func (r *Readings) Check() error {
	errs := []error{
		known("count", r.Count, "total", CountPage, CountEstimate),
		known("page-word", r.PageWord, "granted", PageAsked, PageAbsent),
		known("has-more", r.HasMore, "follows", MoreFull, MoreAlways),
		known("past-end", r.PastEnd, "empty", PastEndBadRequest, PastEndNotFound, PastEndLast),
		known("oversize", r.Oversize, "capped", OversizeRefused),
		known("order", r.Order, "id", ByUpdated, ByUpdatedDesc, ByPinned, ByHash, ByShuffle),
		known("money", r.MoneyForm, "as-is", MoneyPadded, MoneyString, MoneyExponent, MoneyStripped),
		known("retry-after", r.Limit.RetryAfter, "seconds", RetryAfterDate, RetryAfterZero, RetryAfterAbsent),
		share("nulls", r.Nulls), share("new-statuses", r.NewStatuses), share("deletes", r.Deletes),
		share("used-ids", r.UsedIDs), share("empty-pages", r.EmptyPages), share("short-pages", r.ShortPages),
	}
	errs = append(errs, r.Habits.check())
	for i := range r.Refusals {
		errs = append(errs, r.Refusals[i].check())
	}
	for _, name := range r.Without {
		if _, _, ok := fieldNamed(name); !ok {
			errs = append(errs,
				fmt.Errorf("without %q: expected a resource and a field but id, such as users.city", name))
		}
	}
	if r.Replicas < 0 || r.Replicas > maxReplicas || r.Replicas == 0 && r.ReplicaLag > 0 {
		errs = append(errs, fmt.Errorf("replicas %d with a lag of %v: expected 1 to %d, or 0 and no lag",
			r.Replicas, r.ReplicaLag, maxReplicas))
	}
	if r.MaxPage < 0 || r.MaxPage > maxPageSize {
		errs = append(errs, fmt.Errorf("max-page %d: expected 1 to %d, or 0 for the document's %d", r.MaxPage,
			maxPageSize, maxPageSize))
	}
	if r.EmptyPages+r.ShortPages > 0.9 {
		errs = append(errs,
			fmt.Errorf("empty-pages and short-pages together %v: expected at most 0.9, or a listing has no end",
				r.EmptyPages+r.ShortPages))
	}
	if s := r.Limit.Status; s != 0 && !slices.Contains(limitStatuses, s) {
		errs = append(errs, fmt.Errorf("limit-status %d: expected one of %d", s, limitStatuses))
	}
	if r.Limit.PerSecond < 0 || r.Limit.Burst < 0 || r.Keys.Lifetime < 0 || r.Keys.Requests < 0 || r.Delay < 0 ||
		r.MaxPages < 0 || r.PageTurns < 0 || r.ReplicaLag < 0 || r.Cache.For < 0 {
		errs = append(errs, errors.New("a limit, a number of pages or requests, a key's lifetime, a delay, a lag "+
			"or the time of a cache is negative: expected 0 for none, or more"))
	}
	return errors.Join(errs...)
}
