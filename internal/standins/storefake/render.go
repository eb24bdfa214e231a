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
	garbled func(resource string, id int64) Garbling // nil if every row is good
	seed    uint64
}

// appendListing writes the body of a data endpoint's answer.
func (r *renderer) appendListing(dst []byte, res *resource, p page, asked params, more bool) []byte {
	dst = append(dst, `{"data":[`...)
	for i, row := range p.rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.appendRow(dst, res, row)
	}
	count := p.total
	switch r.read.Count {
	case CountPage:
		count = len(p.rows)
	case CountEstimate:
		count = estimate(p.total, r.seed)
	}
	dst = strconv.AppendInt(append(dst, `],"meta":{"page":`...), int64(asked.page), 10)
	switch r.read.PageWord {
	case PageGranted:
		dst = strconv.AppendInt(append(dst, `,"page_size":`...), int64(asked.pageSize), 10)
	case PageAsked:
		dst = strconv.AppendInt(append(dst, `,"page_size":`...), int64(asked.asked), 10)
	}
	dst = strconv.AppendInt(append(dst, `,"count":`...), int64(count), 10)
	dst = strconv.AppendBool(append(dst, `,"has_more":`...), more)
	return append(dst, "}}\n"...)
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
		if i == 0 && garble == NoID || r.lacks(res, f.name) {
			continue
		}
		dst = append(dst, f.key...)
		if text, ok := garble.replaces(res, i); ok {
			dst = append(append(dst, text...), ',')
			continue
		}
		dst = append(r.appendCell(dst, f.kind, row[i]), ',')
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

func (r *renderer) appendCell(dst []byte, k kind, c cell) []byte {
	if c == null {
		return append(dst, "null"...)
	}
	switch k {
	case integer:
		return strconv.AppendInt(dst, int64(c), 10)
	case instant:
		dst = append(dst, '"')
		return append(appendInstant(dst, c), '"')
	case money:
		return r.appendMoney(dst, c)
	case coordinate:
		return strconv.AppendFloat(dst, c.float(), 'f', -1, 64)
	default:
		return appendText(dst, r.words.text(c))
	}
}

// appendInstant writes YYYY-MM-DDThh:mm:ssZ, the second that c lies in.
func appendInstant(dst []byte, c cell) []byte {
	return c.time().AppendFormat(dst, "2006-01-02T15:04:05Z")
}

func (r *renderer) appendMoney(dst []byte, c cell) []byte {
	switch r.read.MoneyForm {
	case MoneyPadded:
		return appendPadded(dst, string(r.words.appendMoney(nil, c)))
	case MoneyString:
		return append(appendPadded(append(dst, '"'), string(r.words.appendMoney(nil, c))), '"')
	case MoneyExponent:
		return appendExponent(dst, string(r.words.appendMoney(nil, c)))
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
