package registry

import (
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
	Incompatible               // 409: the schema breaks the subject's compatibility rule
	KeyChanged                 // the key subject holds another schema
	NotRegistered              // the schema or its subject is not there, and was not to be registered
	ReadOnly                   // the registry takes no new schema
	Unauthorized               // the registry refuses the user, the password or the token
	NotARegistry               // something else answers at that address
	NotAvro                    // the id is not one plain Avro schema
	Moved                      // it redirects, which is not followed
	Refused                    // any other answer: a bug of ours or theirs
)

// advice returns the meaning of the fault and the remedy.
func (f Fault) advice() string {
	return [...]string{
		Unreachable: "does not answer: expected a running registry at registry.url; `run` tries it again",
		Incompatible: "refuses the schema as incompatible with the one registered before: look at " +
			"`storestream schema check`, then change the schema file, or the subject's compatibility",
		KeyChanged: "holds another key schema: under a second schema id the same row would have two keys and " +
			"compaction would keep both; point registry.url at the registry that the topic was written with, or " +
			"publish to new topics (kafka.topic_prefix)",
		NotRegistered: "does not hold this schema: if it never did, register it (`storestream schema register`, " +
			"or registry.auto_register); if it lost it, put it back under its id",
		ReadOnly: "is read-only and does not hold this schema: register it at a registry that can be written, " +
			"or end the read-only mode",
		Unauthorized: "refuses the credentials: check registry.username and registry.password, or registry.token",
		NotARegistry: "is no schema registry: expected JSON of Confluent's API; check registry.url, " +
			"with its path if it has one (Apicurio: /apis/ccompat/v7)",
		NotAvro: "is not a plain Avro schema: expected one without references",
		Moved: "redirects, which is not followed, because the credentials would go with the request: if the " +
			"registry has moved there, set registry.url to its new address",
		Refused: "refuses",
	}[f]
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
	s := fmt.Sprintf("registry %s, %s: %s", e.URL, e.Subject, e.Fault.advice())
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

// isUnknownRequest returns whether the address does not know the request. Small registries and proxies may
// not.
func isUnknownRequest(err error) bool {
	reply, ok := errors.AsType[*sr.ResponseError](err)
	return ok && (reply.StatusCode == http.StatusNotFound || reply.StatusCode == http.StatusMethodNotAllowed)
}

// faultOf returns the kind of sr's error, and the rest of its message as an error.
func faultOf(err error) (Fault, error) {
	if reply, ok := errors.AsType[*sr.ResponseError](err); ok {
		return replyFault(reply), answer(reply)
	}
	if elsewhere, ok := errors.AsType[*redirectError](err); ok {
		return Moved, elsewhere
	}
	if errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) ||
		errors.As(err, new(*http.MaxBytesError)) {
		return NotARegistry, nil
	}
	return Unreachable, err
}

// redirectError is a redirect that was not followed. It does not tell the path, which may hold anything.
type redirectError struct{ to string }

func (e *redirectError) Error() string { return "it redirects to " + e.to }

// replyFault goes by the status and the code, never by the text.
func replyFault(reply *sr.ResponseError) Fault {
	switch code := reply.StatusCode; {
	case code == http.StatusConflict:
		return Incompatible
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return Unauthorized
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return Unreachable
	case reply.ErrorCode == sr.ErrOperationNotPermitted.Code:
		return ReadOnly
	case code == http.StatusNotFound && reply.ErrorCode/100 == 404:
		return NotRegistered
	case reply.ErrorCode == 0 || code == http.StatusNotFound:
		return NotARegistry
	default:
		return Refused
	}
}

// answer returns the registry's own message, cut short.
func answer(reply *sr.ResponseError) error {
	const most = 600
	text := strings.Join(strings.Fields(reply.Message), " ")
	if reply.ErrorCode == 0 {
		text = ""
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " ..."
	}
	return fmt.Errorf("it answered %d, code %d: %s", reply.StatusCode, reply.ErrorCode, text)
}
