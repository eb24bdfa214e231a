package client

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/schemas"
)

// maxRows bounds the rows of one answer, for any page size: each takes memory beside its text.
const maxRows = 100_000

// Page is one answer of a data endpoint: its rows and the envelope around them. A number is -1 if
// the answer lacks it.
type Page struct {
	// Rows are the texts of the rows. They lie in the body of the answer.
	Rows [][]byte
	// Number is the page's own number, Size the rows per page in effect.
	Number, Size int
	// Count is the number of matching rows or that of this page: the service's document leaves it open.
	Count int
	// More is set if more pages follow.
	More bool
	// Unsure is set if the page has rows, and does not say whether more follow.
	Unsure bool
	// Date is the service's clock when it made the answer. MinInstant if the answer does not say.
	Date schemas.Instant
	// Age is how long before its request the answer was made, as far as it shows. Such an answer is from a
	// cache. Zero means that it was made for the request.
	Age time.Duration
}

var (
	// errCut means that the body ends before its JSON does. The connection broke, and only this shows it
	// (HTTP/1.0, some proxies).
	errCut = errors.New("the body ends in the middle of its JSON")
	// errNotJSON means that the body is not an object.
	errNotJSON = errors.New("the body is not a JSON object")
	// errFailed means that the answer calls itself an error, even if its status is 200.
	errFailed = errors.New("the answer says that the request failed")
	// byteOrderMark comes before the JSON of some services.
	byteOrderMark = []byte("\ufeff")
)

// openPage finds the rows in body, and the numbers around them, in either order of data and meta. It
// appends the rows to rows[:0].
//
// It only finds where values begin and end. The parser of each row decides whether that row is good JSON. A
// decoder for the whole body would refuse all of it for one NaN in one row (Python's encoder writes such),
// and a row that belongs in the dead letters would stop the stream.
//
// Case and signs in the names of members do not matter: has_more, hasMore. If a member comes twice, the last
// one counts, as in most readers of JSON, unless it would end a window: null for rows, no for has_more. A
// page without rows may have null for them (a nil slice of Go), or no data (some encoders leave out empty
// lists). Some encoders leave out false, so has_more may be missing, and some services send no meta with the
// last page. So an answer is a page if it has a list of rows, or a part of meta. If it says that it failed,
// it is an error even with status 200: it would be taken for the end of a window.
func openPage(body []byte, rows [][]byte) (Page, error) {
	p := Page{Rows: rows[:0], Number: -1, Size: -1, Count: -1}
	body = bytes.TrimPrefix(body, byteOrderMark)
	s := schemas.NewScanner(body)
	var meta, noArray []byte
	failed, listed := false, false
	for s.Open('{'); s.More('}'); {
		switch name := plain(s.Name()); {
		case name == "data" && s.Peek() == '[':
			noArray, p.Rows, listed = nil, p.Rows[:0], true
			for s.Open('['); s.More(']'); {
				row, _ := s.Value()
				if len(p.Rows) == maxRows {
					return p, errTooMuch
				}
				p.Rows = append(p.Rows, row)
			}
		case name == "data":
			noArray, _ = s.Value()
		case name == "meta":
			meta, _ = s.Value()
		default:
			value, _ := s.Value()
			failed = failed || saysFailed(name, value)
		}
	}
	switch {
	case s.Cut():
		return p, errCut
	case !s.Whole():
		return p, fmt.Errorf("%w: it is %s", errNotJSON, shape(body))
	case failed:
		return p, errFailed
	case noArray != nil && shape(noArray) != "null":
		return p, fmt.Errorf(`"data" is %s, expected an array of rows`, shape(noArray))
	}
	return p, p.readMeta(meta, listed)
}

// readMeta reads what meta says of the page. listed is set if the answer has a list of rows.
func (p *Page) readMeta(meta []byte, listed bool) error {
	s := schemas.NewScanner(meta)
	var more []byte
	for s.Open('{'); s.More('}'); {
		name := plain(s.Name())
		switch value, _ := s.Value(); name {
		case "page":
			p.Number = number(value)
		case "pagesize":
			p.Size = number(value)
		case "count":
			p.Count = number(value)
		case "hasmore":
			if yes, _ := boolean(more); !yes {
				more = value
			}
		}
	}
	var known bool
	p.More, known = boolean(more)
	p.Unsure = !known && len(p.Rows) > 0
	if shown := listed || max(p.Number, p.Size, p.Count) >= 0; !s.Whole() && !isAbsent(meta) ||
		!known && (!shown || !isAbsent(more)) {
		return fmt.Errorf(`the answer is no page: "meta" is %s, and "has_more" in it is %s, expected true or false`,
			shape(meta), shape(more))
	}
	return nil
}

// isAbsent reports whether a member is left out, or null.
func isAbsent(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// plain returns the name of a member in lower case, without its quotes and the signs between its words.
func plain(name []byte) string {
	return strings.NewReplacer(`"`, "", "_", "", "-", "").Replace(strings.ToLower(string(name)))
}

// saysFailed reports whether a member of the answer says that the request failed: success is false, or there
// is an error.
func saysFailed(name string, value []byte) bool {
	said, known := boolean(value)
	switch name {
	case "success":
		return known && !said
	case "error", "errors":
		none := strings.Trim(string(value), "\"{}[] \t\r\n")
		return none != "" && none != "null" && (!known || said)
	}
	return false
}

// number reads a number of the envelope as those of rows are read: 1000, 1000.0, 1e3 and "1000". It returns
// -1 if value is none.
func number(value []byte) int {
	n, err := strconv.ParseFloat(strings.Trim(string(value), `" `), 64)
	if err != nil || n != math.Trunc(n) || n < 0 || n > 1e12 {
		return -1
	}
	return int(n)
}

// boolean reads a boolean in every form that has one meaning.
func boolean(value []byte) (yes, known bool) {
	text := strings.ToLower(strings.Trim(string(value), `" `))
	yes = text == "true" || text == "t" || text == "yes" || text == "y" || number(value) == 1
	no := text == "false" || text == "f" || text == "no" || text == "n" || number(value) == 0
	return yes, yes || no
}

// shape says what value is, without showing it: it may hold personal data.
func shape(value []byte) string {
	value = bytes.TrimSpace(value)
	shapes := map[byte]string{'{': "an object", '[': "an array", '"': "a string", '<': "HTML or XML"}
	switch {
	case len(value) == 0:
		return "missing"
	case bytes.IndexByte(value[:min(len(value), 4)], 0) >= 0:
		return "text in UTF-16 or UTF-32, expected UTF-8"
	case string(value) == "null":
		return "null"
	}
	return cmp.Or(shapes[value[0]], "a number or a word")
}
