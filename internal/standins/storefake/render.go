package storefake

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// renderer writes rows as JSON under the readings of one request.
type renderer struct {
	words   *dictionary
	read    *Readings
	garbled func(resource string, id int64) Garbling // nil: none
	seed    uint64
}

// appendListing writes the body of a data endpoint's answer.
func (r *renderer) appendListing(dst []byte, res *resource, p page, asked params, more bool) []byte {
	h := &r.read.Habits
	dst = append(h.begin(dst), '{')
	if h.Surplus {
		dst = append(r.appendMeta(dst, p, asked, more), `,"links":{"next":null},"pageable":{"sorted":true},`...)
		dst = r.appendData(dst, res, p)
		return append(dst, `"status":"ok"}`+"\n"...)
	}
	dst = r.appendMeta(r.appendData(dst, res, p), p, asked, more)
	return append(dst, "}\n"...)
}

// appendData writes the rows, and a comma.
func (r *renderer) appendData(dst []byte, res *resource, p page) []byte {
	h := &r.read.Habits
	switch {
	case len(p.rows) == 0 && h.Empty == EmptyAbsent:
		return dst
	case len(p.rows) == 0 && h.Empty == EmptyNull:
		return append(h.appendKey(dst, "data"), "null,"...)
	}
	dst = append(h.appendKey(dst, "data"), '[')
	for i, row := range p.rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.appendRow(dst, res, row)
	}
	return append(dst, "],"...)
}

// appendMeta writes the meta object of a page.
func (r *renderer) appendMeta(dst []byte, p page, asked params, more bool) []byte {
	h, count := &r.read.Habits, p.total
	if h.More == MoreNoMeta && !more {
		return append(h.appendKey(dst, "meta"), "null"...)
	}
	switch r.read.Count {
	case CountPage:
		count = len(p.rows)
	case CountEstimate:
		count = estimate(p.total, r.seed)
	}
	dst = append(h.appendKey(dst, "meta"), '{')
	dst = append(h.appendNumber(h.appendKey(dst, "page"), asked.page), ',')
	switch r.read.PageWord {
	case PageGranted:
		dst = append(h.appendNumber(h.appendKey(dst, "page_size"), asked.pageSize), ',')
	case PageAsked:
		dst = append(h.appendNumber(h.appendKey(dst, "page_size"), asked.asked), ',')
	}
	dst = h.appendNumber(h.appendKey(dst, "count"), count)
	return append(h.appendMore(dst, more), '}')
}

// estimate is a guess at n. It is the same for the same n, and now and then right.
func estimate(n int, seed uint64) int {
	return max(1, n+int(float64(n)*.4*(unit(int64(n), seed)-.5)))
}

// appendRow writes a row as the service would show it.
func (r *renderer) appendRow(dst []byte, res *resource, row []cell) []byte {
	garble := NotGarbled
	if r.garbled != nil {
		garble = r.garbled(res.name, int64(row[0]))
	}
	if garble == NotAnObject {
		return append(dst, `"garbled"`...)
	}
	dst = append(dst, '{')
	if r.read.ExtraFields {
		dst = append(dst, `"object":"row","labels":{"tier":"gold","ids":[1,2]},`...)
	}
	for i, f := range res.fields {
		if i == 0 && garble == NoID || r.lacks(res, f.name) ||
			row[i] == null && r.read.Habits.Nulls == NullAbsent {
			continue
		}
		dst = append(dst, f.key...)
		if text, ok := garble.replaces(res, i); ok {
			dst = append(append(dst, text...), ',')
			continue
		}
		dst = append(r.appendCell(dst, f, row[i]), ',')
	}
	if r.read.ExtraFields {
		return append(dst, `"_etag":"W/\"1\"","archived":false,"note":null}`...)
	}
	dst[len(dst)-1] = '}'
	return dst
}

// lacks says whether rows are shown without a field now.
func (r *renderer) lacks(res *resource, field string) bool {
	return slices.ContainsFunc(r.read.Without, func(name string) bool {
		return len(name) == len(res.name)+1+len(field) && strings.HasPrefix(name, res.name) &&
			strings.HasSuffix(name, field)
	})
}

func (r *renderer) appendCell(dst []byte, f field, c cell) []byte {
	h := &r.read.Habits
	if c == null {
		return append(dst, h.null(f.kind)...)
	}
	switch f.kind {
	case integer:
		return h.appendInteger(dst, f.name, int64(c))
	case instant:
		dst = append(dst, '"')
		return append(h.appendInstant(dst, c.time()), '"')
	case money:
		return r.appendMoney(dst, c)
	case coordinate:
		return strconv.AppendFloat(dst, c.float(), 'f', -1, 64)
	default:
		return appendText(dst, r.words.text(c))
	}
}

func (r *renderer) appendMoney(dst []byte, c cell) []byte {
	switch r.read.MoneyForm {
	case MoneyPadded:
		return appendPadded(dst, string(r.words.appendMoney(nil, c)))
	case MoneyString:
		return append(appendPadded(append(dst, '"'), string(r.words.appendMoney(nil, c))), '"')
	case MoneyExponent:
		return appendExponent(dst, string(r.words.appendMoney(nil, c)))
	case MoneyStripped:
		return appendStripped(dst, string(r.words.appendMoney(nil, c)))
	default:
		return r.words.appendMoney(dst, c)
	}
}

// appendPadded writes at least two decimals.
func appendPadded(dst []byte, s string) []byte {
	whole, fraction, _ := strings.Cut(s, ".")
	dst = append(append(append(dst, whole...), '.'), fraction...)
	for n := len(fraction); n < 2; n++ {
		dst = append(dst, '0')
	}
	return dst
}

// appendExponent writes the digits without a point, and a power of ten.
func appendExponent(dst []byte, s string) []byte {
	whole, fraction, _ := strings.Cut(s, ".")
	sign := ""
	if whole[0] == '-' {
		sign, whole = "-", whole[1:]
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		digits = "0"
	}
	dst = append(append(append(dst, sign...), digits...), 'e')
	return strconv.AppendInt(dst, int64(-len(fraction)), 10)
}

// appendStripped writes the shortest decimal, as Java's stripTrailingZeros().toString() does.
func appendStripped(dst []byte, s string) []byte {
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	digits := strings.TrimRight(s, "0")
	zeros := len(s) - len(digits)
	if zeros == 0 || strings.Contains(s, ".") || digits == "" || digits == "-" {
		return append(dst, s...)
	}
	first := 1 + len(digits) - len(strings.TrimPrefix(digits, "-"))
	power := zeros + len(digits) - first
	dst = append(dst, digits[:first]...)
	if len(digits) > first {
		dst = append(append(dst, '.'), digits[first:]...)
	}
	return strconv.AppendInt(append(dst, "E+"...), int64(power), 10)
}

func appendText(dst []byte, s string) []byte {
	plain := utf8.ValidString(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] != '"' && s[i] != '\\' && s[i] != 0x7f
	}
	if plain {
		return append(append(append(dst, '"'), s...), '"')
	}
	quoted, _ := json.Marshal(s) // of a string: cannot fail
	return append(dst, quoted...)
}
