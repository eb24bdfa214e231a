package storefake

import "strconv"

// stretch is the part of a listing that a page holds. Where pages may be short or empty in the middle, the ones after them go on where they
// left off, so every row is on some page.
type stretch struct{ from, rows int }

// stretchOf page number n. Which pages fall short is the same on every request.
func stretchOf(read *Readings, seed uint64, n, size int) stretch {
	if read.EmptyPages == 0 && read.ShortPages == 0 {
		if n > maxPageNumber {
			return stretch{maxPageNumber, size}
		}
		return stretch{n * size, size}
	}
	s := stretch{}
	for i := 0; i <= min(n, maxPageNumber); i++ {
		s.from += s.rows
		switch at := unit(int64(i), seed); {
		case at < read.EmptyPages:
			s.rows = 0
		case at < read.EmptyPages+read.ShortPages:
			s.rows = size / 2
		default:
			s.rows = size
		}
	}
	return s
}

// maxPageNumber bounds the arithmetic; no listing has that many pages.
const maxPageNumber = 1 << 22

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
	if r.read.Count == CountPage {
		count = len(p.rows)
	}
	dst = strconv.AppendInt(append(dst, `],"meta":{"page":`...), int64(asked.page), 10)
	dst = strconv.AppendInt(append(dst, `,"page_size":`...), int64(asked.pageSize), 10)
	dst = strconv.AppendInt(append(dst, `,"count":`...), int64(count), 10)
	dst = strconv.AppendBool(append(dst, `,"has_more":`...), more)
	return append(dst, "}}\n"...)
}
