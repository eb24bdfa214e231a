package storefake

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is one thing that may go wrong with a data request.
type Fault string

// Faults that a request may meet.
const (
	NoFault         Fault = ""
	ServerError     Fault = "500"          // as the document has it
	ServerErrorHTML Fault = "500-html"     // from something in front of the service
	TooMany         Fault = "limited"      // as the rate limit in force answers, wherever the limit stands
	Unauthorized    Fault = "401"          // though the key is good
	Revoke          Fault = "revoke"       // the key is revoked, and the answer 401
	Truncated       Fault = "truncated"    // the connection closes in the middle of the body
	Cut             Fault = "cut"          // the body ends early, and calls itself complete
	Endless         Fault = "endless"      // rows without end
	Slow            Fault = "slow"         // the body comes in drops, Faults.SlowFor long in all
	Hang            Fault = "hang"         // no answer until the client gives up
	Reset           Fault = "reset"        // the connection is reset before an answer
	Redirect        Fault = "redirect"     // 302 to Faults.RedirectTo
	MoreForever     Fault = "more-forever" // the right rows, and has_more: true
	WrongDate       Fault = "wrong-date"   // the right rows, and a Date that is off by Faults.DateOff
)

var allFaults = []Fault{ServerError, ServerErrorHTML, TooMany, Unauthorized, Revoke, Truncated, Cut, Endless,
	Slow, Hang, Reset, Redirect, MoreForever, WrongDate}

// Faults says what goes wrong. The zero value: nothing.
type Faults struct {
	// Shares of the data requests that meet each fault, drawn from the seed.
	Shares map[Fault]float64
	// Choose, if set, decides before Shares do; NoFault leaves it to them. It is called from many goroutines,
	// and may call the Fake.
	Choose func(*http.Request) Fault
	// SlowFor is how long a slow body takes, by the machine's clock. Zero means 5 s.
	SlowFor time.Duration
	// DateOff is how far a wrong Date is ahead, or behind. Zero means an hour ahead.
	DateOff time.Duration
	// RedirectTo is the target of a redirect. If it is empty, the target is /elsewhere on this server, an HTML
	// page that counts as a request for "elsewhere".
	RedirectTo string
	// GarbledRows is the share of rows, by id, that break the document's contract, each in one way and always in
	// the same.
	GarbledRows float64
}

// Check reports every impossible setting of f, all at once.
func (f *Faults) Check() error {
	errs := []error{share("garbled rows", f.GarbledRows)}
	sum := 0.0
	for fault, s := range f.Shares {
		sum += s
		errs = append(errs, share(fmt.Sprintf("fault %q", fault), s))
		if !slices.Contains(allFaults, fault) {
			errs = append(errs, fmt.Errorf("fault %q: expected one of %q", fault, allFaults))
		}
	}
	if sum > 1 {
		errs = append(errs, fmt.Errorf("faults: the shares come to %v, expected at most 1", sum))
	}
	return errors.Join(errs...)
}

// draw is the fault that r meets; drawn is a number in [0, 1), drawn at most once.
func (f *Faults) draw(r *http.Request, drawn func() float64) Fault {
	if f.Choose != nil {
		if fault := f.Choose(r); fault != NoFault {
			return fault
		}
	}
	if len(f.Shares) == 0 {
		return NoFault
	}
	at := drawn()
	for _, fault := range allFaults { // in a fixed order, so that a seed means the same each time
		if at -= f.Shares[fault]; at < 0 {
			return fault
		}
	}
	return NoFault
}

// Garbling is a way in which a row over REST breaks the document's contract. The row in PostgreSQL stays
// good. Break that one by Update.
type Garbling string

// Garblings of a row.
const (
	NotGarbled   Garbling = ""
	NoID         Garbling = "no-id"
	TextID       Garbling = "text-id"       // "id": "abc"
	BadTimestamp Garbling = "bad-timestamp" // updated_at is not a timestamp
	NoTimestamp  Garbling = "no-timestamp"  // updated_at is null
	HugeMoney    Garbling = "huge-money"    // more digits than any decimal type has
	WordMoney    Garbling = "word-money"    // money that is no number; BadTimestamp where there is none
	NotAnObject  Garbling = "not-an-object"
)

var allGarblings = []Garbling{NoID, TextID, BadTimestamp, NoTimestamp, HugeMoney, WordMoney, NotAnObject}

// replaces returns the text that replaces the value of field i.
func (g Garbling) replaces(res *resource, i int) (string, bool) {
	if g == NotGarbled {
		return "", false
	}
	firstMoney := slices.IndexFunc(res.fields, func(f field) bool { return f.kind == money })
	updated := i == res.updated()
	switch g {
	case TextID:
		return `"abc"`, i == 0
	case BadTimestamp:
		return `"yesterday"`, updated
	case NoTimestamp:
		return `null`, updated
	case HugeMoney:
		return strings.Repeat("9", 60), i == firstMoney
	case WordMoney:
		return `"a lot"`, i == firstMoney || firstMoney < 0 && updated
	default:
		return "", false
	}
}
