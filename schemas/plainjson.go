package schemas

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

// plainString is the string that begins at i, quotes included; false where it has a backslash, or a control
// character, which JSON does not allow.
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

// plainNumber is the number that begins at i, in JSON's grammar: no leading zeros, digits on both sides of a
// point.
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
