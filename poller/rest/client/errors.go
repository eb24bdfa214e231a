package client

import (
	"cmp"
	_ "embed" // ordinary
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/poller"
)

// RequestError is a request that the service refuses, or that got no good answer. Its text states the request
// and the answer, and only then a guess at the cause. The same fault has the same text in each poll: another
// text would be written and logged again.
type RequestError struct {
	Path, Query string
	// Status is that of the answer. Zero means that none came.
	Status int
	// Code is the service's machine-readable error code, "" if the body has none. Message is its text for
	// people, without personal data (see shown).
	Code, Message string
	// Rate is set if the service refuses the request for the rate of requests.
	Rate bool
	// Slow is half of the timeout if the answer took longer than that. It is zero if the answer took less.
	Slow time.Duration
	// Err is why no answer came, or why a 200 cannot be used. Nil if the status says it.
	Err error
}

func (e *RequestError) Error() string {
	text := e.Path
	if e.Query != "" {
		text += "?" + e.Query
	}
	if e.Status != 0 {
		text += strings.TrimRight(fmt.Sprintf(" answered %d %s", e.Status,
			cmp.Or(e.Code, http.StatusText(e.Status))), " ")
	}
	if e.Message != "" {
		text += fmt.Sprintf(" (%q)", e.Message)
	}
	if e.Slow != 0 && e.Status != 0 {
		text += fmt.Sprintf(" after more than %s", e.Slow)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Status == http.StatusNotFound && e.Code == "" || errors.Is(e.Err, errNotJSON) {
		text += ". Perhaps store.base_url is not the service (it ends with the version, such as /v1)"
	}
	return text
}

func (e *RequestError) Unwrap() error { return e.Err }

// aboutKey reports whether the service may have refused the key. Some answer 403, or 200 with the document's
// code.
func (e *RequestError) aboutKey() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Code == "unauthorized"
}

// rateCode matches the codes of errors that are about the rate of requests.
var rateCode = regexp.MustCompile(`(?i)rate.?limit|throttl|too.?many.?req|quota|slow.?down`)

// aboutRate reports whether an answer refuses a request for the rate. It needs a clear sign, because a
// refusal for another reason would slow down all other resources. Many services send with each answer how
// many requests are left, so only zero is a sign. With a 400, a 401 or a 404 the headers are no sign, because
// these have another meaning.
func aboutRate(status int, code string, h http.Header) bool {
	switch {
	case status == http.StatusTooManyRequests, rateCode.MatchString(code):
		return true
	case status == http.StatusServiceUnavailable:
		return h.Get("Retry-After") != ""
	}
	none := h.Get("RateLimit-Remaining") == "0" || h.Get("X-RateLimit-Remaining") == "0"
	return unclear(status) && (none || h.Get("Retry-After") != "")
}

// RefusedForRate reports whether err is a request that was refused for the rate as often as it was tried.
func RefusedForRate(err error) bool {
	failed, ok := errors.AsType[*RequestError](err)
	return ok && failed.Rate
}

// Refusal returns the refusal of a request that err stands for: if the request is repeated unchanged, it will
// be refused again. It returns nil if err is another error. A BlockedError may have a refusal as its cause,
// but that one refused another request: the one for a key.
func Refusal(err error) *RequestError {
	failed, ok := errors.AsType[*RequestError](err)
	if ok && !errors.As(err, new(*poller.BlockedError)) && failed.Err == nil && !failed.Rate &&
		failed.Status < http.StatusInternalServerError {
		return failed
	}
	return nil
}

// Failure returns the failure of a request to path that err stands for, if it may depend on the request's
// parameters. Then the same request may fail again while the service answers others. Failure returns nil if
// err is about the rate, the key or the address, if no connection was made, or if the caller has ended the
// request.
func Failure(err error, path string) *RequestError {
	failed, ok := errors.AsType[*RequestError](err)
	if !ok || failed.Path != path || failed.Rate || failed.Status == http.StatusUnauthorized ||
		errors.As(err, new(*httpclient.RedirectError)) {
		return nil
	}
	if broken, ok := errors.AsType[*net.OpError](err); ok && broken.Op == "dial" {
		return nil
	}
	return failed
}

const (
	// maxMessage limits the part of a message that is shown, in bytes.
	maxMessage = 300
	// maxCodes limits the codes of one body that are looked at. The status may stand before the code.
	maxCodes = 4
)

// ordinary are the words of a message that are shown: those of the document and of common frameworks,
// databases and gateways. No word that is also a usual name of a person or a place belongs there.
//
//go:embed ordinary.txt
var ordinary string

var (
	// code and text match the code and the message of an error anywhere in the body. A code is a word of a
	// program, or a short number. RFC 9457 has title and detail. Nest has a list of messages.
	code = regexp.MustCompile(`(?i)"(?:error|type|(?:error_?)?code)"\s*:\s*` +
		`("[a-z_.-]{1,58}\d{0,6}"|"?\d{1,6}"?\s*[,}])`)
	text = regexp.MustCompile(`(?i)"(?:message|detail|msg|(?:error_?)?description|title|error)"\s*:\s*\[?\s*` +
		`("(?:[^"\\]|\\.)* (?:[^"\\]|\\.)*")`)
	// words matches the words of a message, with the signs that may be within a word.
	words = regexp.MustCompile("[^\\s=<>()\\[\\]{}\":;!?/&|`]+")
	// numeral matches a limit, a number of rows, a day or an error's number.
	numeral = regexp.MustCompile(`^(\d{1,6}|\d{1,3},\d{3}|\d{4,5}-\d\d-\d\d)$`)
	// masks matches masked words that follow each other.
	masks = regexp.MustCompile(`…(\W*…)+`)
)

// explain takes the service's code and message out of the body of an error. A gateway has plain text.
func (e *RequestError) explain(body []byte) {
	body = body[:min(len(body), maxNote)]
	for _, found := range code.FindAllSubmatch(body, maxCodes) {
		if said := strings.Trim(string(found[1]), "\",} \t\r\n"); said != strconv.Itoa(e.Status) {
			e.Code = cmp.Or(e.Code, said)
		}
	}
	message := ""
	if found := text.FindSubmatch(body); found != nil {
		_ = json.Unmarshal(found[1], &message)
	} else if shape(body) == "a number or a word" {
		message = string(body)
	}
	e.Message = shown(message)
}

// shown returns the part of a message that may be shown. A message may quote a row, with names, addresses or
// telephone numbers. So each word that is not ordinary becomes "…", in upper and in lower case. So does a
// number, unless it begins the message or follows an ordinary word. rotation.Hidden hides secrets.
func shown(message string) string {
	after := true // the word before is no number, and shown
	message = words.ReplaceAllStringFunc(message[:min(len(message), maxMessage)], func(word string) string {
		bare := strings.Trim(word, "'.,+-*_")
		number := numeral.MatchString(bare)
		switch common := slices.Contains(strings.Fields(ordinary), strings.ToLower(bare)); {
		case bare == "":
			return word
		case common, number && after:
			after = common
			return word
		}
		after = false
		return "…"
	})
	return strings.Join(strings.Fields(masks.ReplaceAllString(message, "…")), " ")
}

// maxRedirects limits the redirects that one request follows.
const maxRedirects = 3

// stayHere follows a redirect within the service's own address: frameworks send requests on to the path with
// a slash at its end, or without. It follows none elsewhere, because the key would go with the request.
func stayHere(req *http.Request, via []*http.Request) error {
	to, own := req.URL, via[0].URL
	same := to.Scheme == own.Scheme && to.Host == own.Host
	if same && len(via) <= maxRedirects {
		return nil
	}
	return &httpclient.RedirectError{To: to.Scheme + "://" + to.Host, Often: same}
}
