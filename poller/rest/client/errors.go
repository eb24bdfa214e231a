package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/httpclient"
	"github.com/storestream/storestream/poller"
)

// RequestError is a request that the service refuses, or to which no good answer came. Its text states what
// was asked for, what came and how long it took, and only then what that may mean.
type RequestError struct {
	Path, Query string
	// Status is that of the answer. Zero means that none came.
	Status int
	// Code is the service's machine-readable error code, "" if the body has none. Message is its text for
	// people, without what may be personal data (see shown).
	Code, Message string
	// Rate is set if the service refuses the request for the rate of requests.
	Rate bool
	// Tries is how often the request was sent in vain, Took how long the last try took.
	Tries int
	Took  time.Duration
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
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	// The time is coarse: a reason that changes with each poll would be written and logged anew.
	took := "less than 5s"
	if e.Took >= 5*time.Second {
		took = e.Took.Truncate(5 * time.Second).String()
	}
	if e.Tries > 1 {
		text += fmt.Sprintf(" (tried %d times, the last took %s)", e.Tries, took)
	} else {
		text += fmt.Sprintf(" (took %s)", took)
	}
	if e.Status == http.StatusNotFound && e.Code == "" || errors.Is(e.Err, errNotJSON) {
		text += ". Perhaps store.base_url is not the service (it ends with the version, such as /v1)"
	}
	return text
}

func (e *RequestError) Unwrap() error { return e.Err }

// ForRate reports whether the service refused the request for the rate of requests. That passes.
func (e *RequestError) ForRate() bool { return e.Rate }

// aboutKey reports whether the service may have refused the key. Some answer 403, or 200 with the document's
// code.
func (e *RequestError) aboutKey() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Code == "unauthorized"
}

// rateCode matches the codes of errors that are about the rate of requests.
var rateCode = regexp.MustCompile(`(?i)rate.?limit|throttl|too.?many.?req|quota|slow.?down`)

// aboutRate reports whether an answer is a refusal for the rate. Only an answer that says so is: a resource
// that is refused for another reason would slow down all others. Many services say with each answer how many
// requests are left, so only none left counts. 400, 401 and 404 have another meaning whatever their headers.
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
	return ok && failed.ForRate()
}

// Refusal returns the refusal of a request that err stands for: if the request is repeated unchanged, it will
// be refused again. It returns nil if err is another error. A BlockedError may have a refusal as its cause,
// but that one refused another request: the one for a key.
func Refusal(err error) *RequestError {
	failed, ok := errors.AsType[*RequestError](err)
	if ok && !errors.As(err, new(*poller.BlockedError)) && failed.Err == nil && !failed.ForRate() &&
		failed.Status < http.StatusInternalServerError {
		return failed
	}
	return nil
}

const (
	// maxWords limits the words of a message that are shown.
	maxWords = 40
	// maxCodes limits the codes of one body that are looked at. The status may stand before the code.
	maxCodes = 4
)

var (
	// code and message match what services say of an error, wherever it stands in the body. A code is a word of
	// a program, or a short number. RFC 9457 has title and detail.
	code = regexp.MustCompile(`(?i)"(?:error|type|(?:error_?)?code)"\s*:\s*` +
		`("[a-z_.-]{1,58}\d{0,6}"|"?\d{1,6}"?\s*[,}])`)
	text = regexp.MustCompile(`(?i)"(?:message|detail|msg|(?:error_?)?description|title|error)"\s*:\s*` +
		`("(?:[^"\\]|\\.)* (?:[^"\\]|\\.)*")`)
	// quoted matches what a message quotes, but for a number in brackets.
	quoted = regexp.MustCompile("\"[^\"]*(\"|$)|\\B'[^']*('|$)|`[^`]*(`|$)|\\([^)]*(\\)|$)|" +
		"\\[\\d*[^]\\d][^]]*(]|$)|\\{[^}]*(}|$)|<[^>]*(>|$)")
	shownWord = regexp.MustCompile(`^(\d{1,6}|\d{4,5}-\d\d-\d\d|[-+]|[a-z]{1,20}(['_-][a-z]{1,20}){0,3}|A|An|` +
		`Bad|Cannot|Could|Data|Database|Date|Error|Exception|Failed|Forbidden|Found|Gateway|Internal|Invalid|` +
		`Limit|Many|Maximum|Missing|No|Not|Only|Out|Page|Query|Rate|Request|Requests|Result|SQL|Server|Service|` +
		`The|There|This|Timeout|Too|Unable|Unavailable|Unexpected|Unknown|Value|Window|Year)$`)
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

// shown returns what may be shown of a message. A message may quote a row: its names, addresses, e-mail
// addresses, telephone numbers. Those are quoted, or have capital letters, long numbers or other signs. So a
// word is shown if it is all lower case, or one of the few with a capital letter that errors begin with, and
// a number if it is short or a date. The others become "…". A rule of this kind is not sure if a message has
// a name in lower case without quotes. A secret that a message repeats is hidden by rotation.Hidden.
func shown(message string) string {
	words := strings.Fields(quoted.ReplaceAllString(message, " … "))
	words = words[:min(len(words), maxWords)]
	for i, word := range words {
		if !shownWord.MatchString(strings.Trim(word, "[].,:;!?")) {
			words[i] = "…"
		}
	}
	words = slices.CompactFunc(words, func(a, b string) bool { return a == "…" && b == "…" })
	return strings.Join(words, " ")
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
