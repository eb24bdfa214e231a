package schemas

// scanPlain notes where the fields' values stand in a row of the usual kind: one object of numbers, literals and strings without
// escapes. false says only that raw is something else, good or bad: then scanAny decides. It takes nothing that scanAny does not take, and finds the same
// (FuzzRowParser), in a third of the time: a token costs jsontext more than the bytes in it.
func (p *RowParser) scanPlain(raw []byte) bool {
	clear(p.spans)
	i := skipSpace(raw, 0)
	if at(raw, i) != '{' {
		return false
	}
	i = skipSpace(raw, i+1)
	for next := 0; ; {
		name, ok := plainString(raw, i)
		if !ok {
			return false
		}
		field := p.lookUp(raw[i:name.end], next)
		i = skipSpace(raw, name.end)
		if at(raw, i) != ':' {
			return false
		}
		value, ok := plainValue(raw, skipSpace(raw, i+1))
		if !ok {
			return false
		}
		if field >= 0 {
			value.twice = p.spans[field].end > 0
			p.spans[field] = value
			next = field + 1
		}
		i = skipSpace(raw, value.end)
		switch at(raw, i) {
		case ',':
			i = skipSpace(raw, i+1)
		case '}':
			return skipSpace(raw, i+1) == len(raw)
		default:
			return false
		}
	}
}

// at is the byte at i, 0 behind the end.
func at(raw []byte, i int) byte {
	if i < len(raw) {
		return raw[i]
	}
	return 0
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// plainValue is the string, number or literal that begins at i.
func plainValue(raw []byte, i int) (span, bool) {
	switch c := at(raw, i); {
	case c == '"':
		return plainString(raw, i)
	case c == '-' || c-'0' <= 9:
		return plainNumber(raw, i)
	case c == 'n':
		return literal(raw, i, "null")
	case c == 't':
		return literal(raw, i, "true")
	case c == 'f':
		return literal(raw, i, "false")
	}
	return span{}, false
}

// plainString is the string that begins at i, quotes included. Not one with a backslash, nor with a control character, which JSON does not allow.
func plainString(raw []byte, i int) (span, bool) {
	s := span{start: i}
	if at(raw, i) != '"' {
		return s, false
	}
	var all byte
	for i++; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			s.end, s.ascii = i+1, all < 0x80
			return s, true
		case c == '\\' || c < ' ':
			return s, false
		default:
			all |= c
		}
	}
	return s, false
}

// plainNumber is the number that begins at i, in JSON's grammar: no leading zeros, digits on both sides of a point.
func plainNumber(raw []byte, i int) (span, bool) {
	s := span{start: i}
	if raw[i] == '-' {
		i++
	}
	whole, i := scanDigits(raw, i)
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return s, false
	}
	if at(raw, i) == '.' {
		var fraction []byte
		if fraction, i = scanDigits(raw, i+1); len(fraction) == 0 {
			return s, false
		}
	}
	if c := at(raw, i); c == 'e' || c == 'E' {
		if i++; at(raw, i) == '+' || at(raw, i) == '-' {
			i++
		}
		var exponent []byte
		if exponent, i = scanDigits(raw, i); len(exponent) == 0 {
			return s, false
		}
	}
	s.end = i
	return s, true
}

func literal(raw []byte, i int, word string) (span, bool) {
	end := i + len(word)
	return span{start: i, end: end}, end <= len(raw) && string(raw[i:end]) == word
}
