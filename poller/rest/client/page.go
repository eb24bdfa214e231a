package client

import (
	"encoding/json"
	"errors"
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
	// Date is the service's clock when it made the answer. MinInstant if the answer does not say.
	Date schemas.Instant
	// Age is how long before its request the answer was made, as far as it shows. Such an answer is from a
	// cache. Zero means that it was made for the request.
	Age time.Duration
}

var (
	// errCut: the body ends before its JSON does. The connection broke, and only this shows it (HTTP/1.0, some
	// proxies).
	errCut = errors.New("the body ends in the middle of its JSON")
	// errNotJSON: the body is not an object.
	errNotJSON = errors.New("the body is not a JSON object")
)

// openPage finds the rows in body, and the numbers around them, in either order of data and meta. It
// appends the rows to rows[:0].
//
// It only finds where values begin and end. The parser of each row decides whether that row is good JSON. A
// decoder for the whole body would refuse all of it for one NaN in one row (Python's encoder writes such),
// and a row that belongs in the dead letters would stop the stream.
func openPage(body []byte, rows [][]byte) (Page, error) {
	p := Page{Rows: rows[:0], Number: -1, Size: -1, Count: -1}
	s := schemas.NewScanner(body)
	var meta []byte
	hasData := false
	for s.Open('{'); s.More('}'); {
		switch name := string(s.Name()); {
		case name == `"data"` && s.Peek() == '[':
			hasData, p.Rows = true, p.Rows[:0]
			for s.Open('['); s.More(']'); {
				row, _ := s.Value()
				if len(p.Rows) == maxRows {
					return p, errTooMuch
				}
				p.Rows = append(p.Rows, row)
			}
		case name == `"meta"`:
			meta, _ = s.Value()
		default:
			hasData = hasData && name != `"data"`
			_, _ = s.Value()
		}
	}
	switch {
	case s.Cut():
		return p, errCut
	case !s.Whole():
		return p, errNotJSON
	case !hasData:
		return p, errors.New(`the answer has no array "data"`)
	}
	return p, p.readMeta(meta)
}

func (p *Page) readMeta(meta []byte) error {
	var m struct {
		Page, Count *float64
		Size        *float64 `json:"page_size"`
		More        *bool    `json:"has_more"`
	}
	if err := json.Unmarshal(meta, &m); err != nil || m.More == nil {
		return errors.New(`the answer has no boolean "meta.has_more"`)
	}
	number := func(n *float64) int {
		if n == nil || *n < 0 || *n > 1e12 {
			return -1
		}
		return int(*n)
	}
	p.Number, p.Size, p.Count, p.More = number(m.Page), number(m.Size), number(m.Count), *m.More
	return nil
}
