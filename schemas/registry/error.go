package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

// Fault is the kind of an Error.
type Fault int

// The kinds of errors. Only Unreachable goes away by waiting.
const (
	Unreachable   Fault = iota // no answer, or one that says "not now"
	KeyChanged                 // the key subject holds another schema
	NotRegistered              // the schema or its subject is not there, or is no plain Avro
	Unauthorized               // the registry refuses the user, the password or the token
	NotARegistry               // something else answers at that address
	Moved                      // it redirects, which is not followed
	Refused                    // any other answer: an incompatible schema, or a registry that takes none
)

// advice holds the meaning of each fault and the remedy.
var advice = [...]string{
	Unreachable: "does not answer: expected a running registry at registry.url; `run` tries it again",
	KeyChanged: "holds another key schema: under a second schema id the same row would have two keys and " +
		"compaction would keep both; point registry.url at the registry that the topic was written with, or " +
		"publish to new topics (kafka.topic_prefix)",
	NotRegistered: "does not hold this schema as plain Avro: if it never did, register it (`storestream " +
		"schema register`, or registry.auto_register); if it lost it, put it back under its id",
	Unauthorized: "refuses the credentials: check registry.username and registry.password, or registry.token",
	NotARegistry: "is no schema registry: expected JSON of Confluent's API; check registry.url, " +
		"with its path if it has one (Apicurio: /apis/ccompat/v7)",
	Moved: "redirects, which is not followed, because the credentials would go with the request: if the " +
		"registry has moved, set registry.url to its new address",
	Refused: "refuses the schema: look at `storestream schema check`, then change the schema file, the " +
		"subject's compatibility, or the mode of a registry that is read-only",
}

// Error says why the registry did not do what we asked.
type Error struct {
	Fault Fault
	// Subject is what we asked about: a subject, or a schema id.
	Subject string
	// URL is the registry's address, without credentials.
	URL string
	// Err is the cause, nil if Fault is all that is known.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("registry %s, %s: %s", e.URL, e.Subject, advice[e.Fault])
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable returns whether err may go away by waiting: the registry is down, overloaded or between leaders.
func Retryable(err error) bool { return HasFault(err, Unreachable) }

// AsAWhole returns whether err is about the registry as a whole, and not about one subject.
func AsAWhole(err error) bool { return HasFault(err, Unreachable, Unauthorized, NotARegistry, Moved) }

// HasFault returns whether err is an *Error of one of these kinds.
func HasFault(err error, kinds ...Fault) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(kinds, e.Fault)
}

// diagnose turns an error of sr into an *Error about subject. It goes by the status and the code, never by
// the text.
func (c *Client) diagnose(subject string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err // the caller gave up: that says nothing about the registry
	}
	reply, ok := errors.AsType[*sr.ResponseError](err)
	if !ok {
		if errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) ||
			errors.As(err, new(*http.MaxBytesError)) {
			return c.fault(NotARegistry, subject, nil)
		}
		return c.fault(Unreachable, subject, err)
	}
	fault := Refused
	switch code := reply.StatusCode; {
	case code < 400:
		fault = Moved
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		fault = Unauthorized
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		fault = Unreachable
	case code == http.StatusNotFound && reply.ErrorCode/100 == 404:
		fault = NotRegistered
	case reply.ErrorCode == 0 || code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		fault = NotARegistry
	}
	text := ""
	if reply.ErrorCode != 0 {
		text = strings.Join(strings.Fields(reply.Message), " ")
	}
	return c.fault(fault, subject,
		fmt.Errorf("it answered %d, code %d: %.600s", reply.StatusCode, reply.ErrorCode, text))
}
