package client

import "fmt"

// scanner steps over JSON text without checking the values in it.
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

// members calls each where a member's value begins, for every member of the object or array that comes next;
// each steps over the value. name is quoted, and nil in an array.
func (s *scanner) members(opening, closing byte, each func(name []byte) error) error {
	s.peek()
	s.at++ // the caller has seen the bracket that opens it
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

// name steps over a member's name and the colon behind it, where members have names.
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

// closingQuote is where the string that begins at i ends, -1 where the text ends within it. It goes byte by
// byte: most strings are too short for a call of bytes.IndexByte to pay off.
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
