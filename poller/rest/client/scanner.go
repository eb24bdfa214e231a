package client

import "fmt"

// scanner steps over JSON text without checking the values in it.
type scanner struct {
	text []byte
	at   int
}

// peek returns the next byte that is not white space, 0 at the end.
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

// open steps into the object that the text begins with.
func (s *scanner) open() error {
	switch s.peek() {
	case '{':
		s.at++
		return nil
	case 0:
		return errCut
	}
	return errNotJSON
}

// member steps over the name of the next member of an object, and over the colon. The name is quoted. It is
// nil at the end of the object.
func (s *scanner) member(first bool) (name []byte, err error) {
	if end, err := s.next('}', first); end || err != nil {
		return nil, err
	}
	if name, err = s.value(); err != nil {
		return nil, err
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

// elements steps over the array that comes next, and appends the text of each of its elements to list.
func (s *scanner) elements(list [][]byte) ([][]byte, error) {
	s.at++
	for first := true; ; first = false {
		if end, err := s.next(']', first); end || err != nil {
			return list, err
		}
		value, err := s.value()
		switch {
		case err != nil:
			return list, err
		case len(list) == maxRows:
			return list, errManyRows
		}
		list = append(list, value)
	}
}

// next steps to the next part of an object or array, over the comma before it. end is set if there is none.
func (s *scanner) next(closing byte, first bool) (end bool, err error) {
	switch c := s.peek(); {
	case c == closing:
		s.at++
		return true, nil
	case c == 0:
		return false, errCut
	case !first && c != ',':
		return false, fmt.Errorf("%w: expected a comma", errNotJSON)
	case !first:
		s.at++
	}
	return false, nil
}

// value returns the text of the value that comes next.
func (s *scanner) value() ([]byte, error) {
	s.peek()
	start, depth := s.at, 0
	for i := start; i < len(s.text); i++ {
		end := -1
		switch s.text[i] {
		case '"':
			if i = closingQuote(s.text, i); i < 0 {
				return nil, errCut
			}
			if depth == 0 {
				end = i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of the object or array that a number or a word stands in
				end = i
			} else if depth--; depth == 0 {
				end = i + 1
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				end = i
			}
		}
		if end == start {
			return nil, fmt.Errorf("%w: expected a value", errNotJSON)
		}
		if end > start {
			s.at = end
			return s.text[start:end], nil
		}
	}
	return nil, errCut
}

// closingQuote returns where the string that begins at i ends, -1 if the text ends within it. It goes byte
// by byte: most strings are too short for a call of bytes.IndexByte to pay off.
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
