package preflight

import (
	"errors"
	"fmt"
	"strings"

	"github.com/storestream/storestream/producer"
)

// Level says how much a finding matters.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Note    Level = "note" // to be known
	Warning Level = "warn" // works, and costs something
	Failure Level = "FAIL" // `run` will not work so
)

// Finding is one thing that was tried.
type Finding struct {
	Level Level `json:"level"`
	// Part is configuration, service, database, kafka, resources, registry, security or status.
	Part  string `json:"part"`
	About string `json:"about,omitempty"` // a resource, topic or subject; "" for the part as a whole
	Found string `json:"found"`           // one line
	Do    string `json:"do,omitempty"`    // the remedy
}

// findings are those of one part, in order.
type findings struct {
	part string
	all  []Finding
}

// add adds a finding about a resource, topic or subject; "" for the part as a whole. do is the remedy.
func (f *findings) add(l Level, about, do, format string, args ...any) {
	line := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") // joined errors have several lines
	f.all = append(f.all, Finding{Level: l, Part: f.part, About: about, Found: line, Do: do})
}

func (f *findings) ok(about, format string, args ...any) { f.add(OK, about, "", format, args...) }

func (f *findings) fail(about string, err error, do string) { f.add(Failure, about, do, "%s", err) }

// refused adds a *producer.RefusedError, and reports whether err is one.
func (f *findings) refused(about string, err error) bool {
	r, ok := errors.AsType[*producer.RefusedError](err)
	if ok {
		f.add(Failure, about, r.Do, "%s is %s, expected %s", r.Setting, r.Found, r.Expected)
	}
	return ok
}
