package rest

import (
	"encoding/json"
	"errors"
	"fmt"
)

// envelope is what a data endpoint answers around its rows.
type envelope struct {
	rows [][]byte // each row's text, in the body
	page int      // -1 where it is not said
	size int      // -1 where it is not said
	// count is the number of matching rows or that of this page: the document leaves it open. -1 where it is not said.
	count int
	more  bool
}

var (
	// errCut: the body ends before its JSON does. The connection broke where nothing else shows it (HTTP/1.0, some proxies).
	errCut = errors.New("the body ends in the middle of its JSON")
	// errNotJSON: what came is not an object.
	errNotJSON = errors.New("the body is not a JSON object")
)

// openEnvelope finds the rows in body, whichever way round data and meta come.
//
// It only finds where values begin and end; whether a row is good JSON is asked row by row. A decoder for the whole body would
// refuse all of it for one NaN in one row (Python's encoder writes such), and one row would stop the stream that belongs into the dead letters.
func openEnvelope(body []byte, rows [][]byte) (envelope, error) {
	e := envelope{rows: rows[:0], page: -1, size: -1, count: -1}
	s := scanner{text: body}
	if s.peek() != '{' {
		if s.peek() == 0 {
			return e, errCut
		}
		return e, errNotJSON
	}
	var meta []byte
	hasData := false
	err := s.members('{', '}', func(name []byte) (err error) {
		if string(name) == `"data"` && s.peek() == '[' {
			hasData, e.rows = true, e.rows[:0]
			return s.members('[', ']', func([]byte) error {
				row, err := s.need()
				e.rows = append(e.rows, row)
				return err
			})
		}
		value, err := s.need()
		switch string(name) {
		case `"data"`:
			hasData = false
		case `"meta"`:
			meta = value
		}
		return err
	})
	if err != nil {
		return e, err
	}
	if s.peek() != 0 {
		return e, errNotJSON
	}
	if !hasData {
		return e, errors.New(`the answer has no array "data"`)
	}
	return e, e.readMeta(meta)
}

func (e *envelope) readMeta(meta []byte) error {
	var m struct {
		Page, Count *float64
		Size        *float64 `json:"page_size"`
		More        *bool    `json:"has_more"`
	}
	if err := json.Unmarshal(meta, &m); err != nil || m.More == nil {
		return errors.New(`the answer has no boolean "meta.has_more"`)
	}
	number := func(p *float64) int {
		if p == nil || *p < 0 || *p > 1e12 {
			return -1
		}
		return int(*p)
	}
	e.page, e.size, e.count, e.more = number(m.Page), number(m.Size), number(m.Count), *m.More
	return nil
}

// scanner walks over JSON text without judging it.
type scanner struct {
	text []byte
	at   int
}

// peek is the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// members calls each where a member's value begins, for every member of the object or array that comes next; each goes past it. name is nil in an array,
// and quoted.
func (s *scanner) members(opening, closing byte, each func(name []byte) error) error {
	s.peek()
	s.at++ // past what opens it, which the caller has seen
	for first := true; ; first = false {
		c := s.peek()
		switch {
		case c == closing:
			s.at++
			return nil
		case c == 0:
			return errCut
		case !first && c != ',':
			return fmt.Errorf("%w: expected a comma", errNotJSON)
		case !first:
			s.at++
		}
		name, err := s.name(opening == '{')
		if err != nil {
			return err
		}
		if err := each(name); err != nil {
			return err
		}
	}
}

// name goes past a member's name and the colon behind it, where members have names.
func (s *scanner) name(named bool) (name []byte, err error) {
	if !named {
		return nil, nil
	}
	if name = s.value(); name == nil {
		return nil, errCut
	}
	switch s.peek() {
	case ':':
		s.at++
		return name, nil
	case 0:
		return nil, errCut
	}
	return nil, fmt.Errorf("%w: expected a colon", errNotJSON)
}

// need is the value that comes next.
func (s *scanner) need() ([]byte, error) {
	value := s.value()
	switch {
	case value == nil:
		return nil, errCut
	case len(value) == 0:
		return nil, fmt.Errorf("%w: expected a value", errNotJSON)
	}
	return value, nil
}

// value is the text of the value that comes next, nil where the text ends within it.
func (s *scanner) value() []byte {
	s.peek()
	start, depth := s.at, 0
	for i := start; i < len(s.text); i++ {
		switch s.text[i] {
		case '"':
			if i = closingQuote(s.text, i); i < 0 {
				s.at = len(s.text)
				return nil
			}
			if depth == 0 {
				return s.upTo(start, i+1)
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what a number or a word stands in
				return s.upTo(start, i)
			}
			if depth--; depth == 0 {
				return s.upTo(start, i+1)
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.upTo(start, i)
			}
		}
	}
	s.at = len(s.text)
	return nil
}

func (s *scanner) upTo(start, end int) []byte {
	s.at = end
	return s.text[start:end]
}

// closingQuote is where the string that begins at i ends, -1 where the text ends within it. Byte by byte: most strings are shorter than a call of
// bytes.IndexByte pays for.
func closingQuote(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}
