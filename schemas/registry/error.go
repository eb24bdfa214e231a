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

// advice holds the meaning of each fault and the remedy. The observation stands before it.
var advice = [...]string{
	Unreachable: "cannot serve this now: `run` tries it again. If it stays so, look at the registry's log, " +
		"and whether registry.url is right",
	KeyChanged: "holds another key schema: under a second schema id the same row would have two keys and " +
		"compaction would keep both; point registry.url at the registry that the topic was written with, or " +
		"publish to new topics (kafka.topic_prefix)",
	NotRegistered: "does not hold this schema as plain Avro: if it never did, register it (`storestream " +
		"schema register`, or registry.auto_register); if it lost it, put it back under its id",
	Unauthorized: "refuses the credentials: perhaps registry.username, registry.password or registry.token is " +
		"wrong, or this user may not do this",
	NotARegistry: "does not answer as a schema registry: expected JSON of Confluent's API; perhaps " +
		"registry.url is another server's, or lacks its path (Apicurio: /apis/ccompat/v7)",
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
	s := fmt.Sprintf("registry %s, %s: ", e.URL, e.Subject)
	if e.Err != nil {
		s += e.Err.Error() + ": "
	}
	return s + "it " + advice[e.Fault]
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

// classes are the faults of answers, by status and code: the first that fits counts. Statuses of 500 and more
// are tried again, also without the code of a registry. A status below that without a code is a page of
// another server's, or of a proxy's.
var classes = []struct {
	from, to int // statuses
	code     int // the first three digits of a code, 0 for any, -1 for no code
	fault    Fault
}{
	{300, 399, 0, Moved},
	{401, 401, 0, Unauthorized}, {403, 403, 0, Unauthorized}, {407, 407, 0, Unauthorized},
	{404, 404, 404, NotRegistered},
	{408, 408, 0, Unreachable}, {425, 425, 0, Unreachable}, {429, 429, 0, Unreachable},
	{409, 409, 0, Refused}, {422, 422, 0, Refused}, // an incompatible or invalid schema
	// Unknown requests.
	{404, 406, 0, NotARegistry}, {415, 415, 0, NotARegistry}, {501, 501, 0, NotARegistry},
	{500, 599, 0, Unreachable},
	{400, 499, -1, NotARegistry},
}

// diagnose turns an error of sr into an *Error about subject. It goes by the status and the code, never by
// the text.
func (c *Client) diagnose(subject string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err // the caller gave up: that says nothing about the registry
	}
	reply, ok := errors.AsType[*sr.ResponseError](err)
	if !ok {
		fault := Unreachable
		if errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) ||
			errors.As(err, new(*http.MaxBytesError)) {
			fault = NotARegistry
		}
		return c.fault(fault, subject, err)
	}
	answer := fmt.Errorf("%s %s answered %d (code %d, %.600q)", reply.Method,
		strings.TrimPrefix(reply.URL, strings.TrimRight(c.url, "/")), reply.StatusCode, reply.ErrorCode,
		reply.Message)
	for _, a := range classes {
		if a.from <= reply.StatusCode && reply.StatusCode <= a.to && (a.code == 0 ||
			a.code == reply.ErrorCode/100 || a.code < 0 && reply.ErrorCode == 0) {
			return c.fault(a.fault, subject, answer)
		}
	}
	return c.fault(Refused, subject, answer)
}
