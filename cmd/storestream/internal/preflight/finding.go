package preflight

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	// Level is `ok`, `note`, `warn` or `FAIL`.
	Level Level `json:"level"`
	// Part is configuration, service, database, kafka, resources, registry, security or status.
	Part string `json:"part"`
	// About is a resource, topic or connection. It is "" for the part as a whole.
	About string `json:"about,omitempty"`
	// Found is the finding, one line. That of a failure is the error of `run`, with its remedy.
	Found string `json:"found"`
	// Do is the remedy. A failure has it in Found.
	Do string `json:"do,omitempty"`
}

// findings are those of one part, in order. Equal findings count once.
type findings struct {
	part string
	all  []Finding
}

// add adds a finding about a resource, topic or connection; "" for the part as a whole. do is the remedy.
func (f *findings) add(l Level, about, do, format string, args ...any) {
	line := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") // an error may have several lines
	found := Finding{Level: l, Part: f.part, About: about, Found: line, Do: do}
	if !slices.Contains(f.all, found) {
		f.all = append(f.all, found)
	}
}

func (f *findings) ok(about, format string, args ...any) { f.add(OK, about, "", format, args...) }

// fail adds a failure for err, or for each of the errors that it joins. A refusal is about its topic: all
// resources share some topics, and what each of them is refused for these is one finding.
func (f *findings) fail(about string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			f.fail(about, one)
		}
		return
	}
	if refused, ok := errors.AsType[*producer.RefusedError](err); ok {
		about = refused.Topic
	}
	f.add(Failure, about, "", "%s", err)
}

// expiresSoon is how long before a certificate's end it is worth a warning.
const expiresSoon = 30 * 24 * time.Hour

// expiry warns of certificates that end soon.
func (f *findings) expiry(about string, certificates []*x509.Certificate) {
	for _, c := range certificates {
		if time.Until(c.NotAfter) < expiresSoon {
			f.add(Warning, about, "have it renewed", "the certificate of %q expires on %s", c.Subject.String(),
				c.NotAfter.UTC().Format(time.DateOnly))
		}
	}
}
