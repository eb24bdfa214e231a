package storefake

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Refusal is a kind of request that the service cannot serve, or does not want to.
type Refusal struct {
	Of     []string // the resources, empty for all
	What   Question
	Limit  int
	Status int // 0 gives no answer until the client gives up
}

// Question is the part of a request that a Refusal depends on.
type Question string

// The parts of a request that a Refusal may depend on.
const (
	PastRows   Question = "past"   // a page that reaches beyond row Limit of its listing
	HeavyPages Question = "rows"   // a page that holds more than Limit rows
	HoldsRow   Question = "row"    // a page that holds the row whose id is Limit
	BeforeYear Question = "before" // a date in a year before Limit
	AfterYear  Question = "after"  // a date in a year after Limit
	Future     Question = "future" // a date more than Limit days after today, by the service's clock
)

var questions = []Question{PastRows, HeavyPages, HoldsRow, BeforeYear, AfterYear, Future}

// silence is a Status of 0 as ParseRefusal reads it.
const silence = "silence"

// ParseRefusal reads question:limit=status, such as past:10000=422 or rows:500=silence. With users/ before it
// only users are meant.
func ParseRefusal(text string) (Refusal, error) {
	question, status, ok := strings.Cut(text, "=")
	what, limit, hasLimit := strings.Cut(question, ":")
	f := Refusal{What: Question(what)}
	if resource, of, is := strings.Cut(what, "/"); is {
		f.Of, f.What = []string{resource}, Question(of)
	}
	var limitErr, statusErr error
	f.Limit, limitErr = strconv.Atoi(limit)
	if status != silence {
		f.Status, statusErr = strconv.Atoi(status)
	}
	if !ok || !hasLimit || limitErr != nil || statusErr != nil {
		return f, fmt.Errorf("refuse %q: expected a question, a limit and a status, such as past:10000=422", text)
	}
	return f, f.check()
}

// String writes f as ParseRefusal reads it, but for the resources.
func (f *Refusal) String() string {
	status := silence
	if f.Status > 0 {
		status = strconv.Itoa(f.Status)
	}
	return fmt.Sprintf("%s:%d=%s", f.What, f.Limit, status)
}

// Code is the machine-readable code of the answer, in those forms of errors that have one.
func (f *Refusal) Code() string { return string(f.What) + "_refused" }

// check reports every impossible setting of f.
func (f *Refusal) check() error {
	var errs []error
	if !slices.Contains(questions, f.What) {
		errs = append(errs, fmt.Errorf("refuse %q: expected one of %q", f.What, questions))
	}
	if f.Limit < 0 || f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		errs = append(errs, fmt.Errorf("refuse %s: expected a limit from 0 on, and a status from 400 to 599 or %s",
			f, silence))
	}
	for _, name := range f.Of {
		if !slices.Contains(Names(), name) {
			errs = append(errs, fmt.Errorf("refuse %s of %q: expected one of %q", f.What, name, Names()))
		}
	}
	return errors.Join(errs...)
}

// asks says whether f refuses the request that l answers, and which parameter is at fault.
func (f *Refusal) asks(values url.Values, l *listed, today time.Time) (param string, yes bool) {
	switch f.What {
	case PastRows:
		return "page", (l.asked.page+1)*l.asked.pageSize > f.Limit
	case HeavyPages:
		return "page_size", len(l.rows) > f.Limit
	case HoldsRow:
		return "", slices.ContainsFunc(l.rows, func(row []cell) bool { return row[0] == cell(f.Limit) })
	}
	for _, name := range []string{"created_from", "created_to", "updated_from", "updated_to"} {
		date, err := time.Parse(time.DateOnly, values.Get(name))
		if err != nil {
			continue // absent: parseParams has checked the others
		}
		if f.What == BeforeYear && date.Year() < f.Limit || f.What == AfterYear && date.Year() > f.Limit ||
			f.What == Future && date.After(today.AddDate(0, 0, f.Limit)) {
			return name, true
		}
	}
	return "", false
}

// refusal returns the failure that replaces the listing l, or nil.
func (x *exchange) refusal(res *resource, l *listed) *failure {
	today := x.server.clock.Now().UTC().Add(x.read.DayOffset).Truncate(24 * time.Hour)
	for _, f := range x.read.Refusals {
		if len(f.Of) > 0 && !slices.Contains(f.Of, res.name) {
			continue
		}
		param, yes := f.asks(x.r.URL.Query(), l, today)
		if yes && f.Status == 0 {
			x.hang()
		}
		if yes {
			return &failure{f.Status, f.Code(), refusalTexts[f.What], param}
		}
	}
	return nil
}

// refusalTexts are the services' words, nearly as public ones have them.
var refusalTexts = map[Question]string{
	PastRows:   "the result window is too large",
	HeavyPages: "the upstream server took too long to answer",
	HoldsRow:   "the request could not be served",
	BeforeYear: "the date is out of range: too early",
	AfterYear:  "the date is out of range: too late",
	Future:     "the date must not be in the future",
}
