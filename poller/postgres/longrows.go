package postgres

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/storestream/storestream/schemas"
)

// A row may hold a value of 1 GB, and one of 8 MiB is more than any record may have. Such a row must not take
// this process down, and reading the others must not become dearer for it. So:
//
//   - A connection takes no message of more than maxMessage. A longer one ends it, before memory is taken.
//   - The chunk is then read again with a SELECT list that leaves out what is too long, and says how long it
//     was (cutLong). The row becomes a dead letter.
//   - It stays with that list for guardTime after the last such row: a poll that meets the row again would
//     else break a connection each time.
const (
	// maxRow is the most bytes of a row's texts: a record has no room for more.
	maxRow = 8 << 20
	// maxMessage is maxRow and room for what is around it.
	maxMessage = maxRow + 1<<20
	guardTime  = 10 * time.Minute
	// widthColumn is a name that no table has.
	widthColumn = "storestream_row_bytes"
)

// cutLong is t with a SELECT list that leaves out the long values of rows of more than maxRow. One more
// column says which: the place and the bytes of each, as in 3:209715200,5:8388608. NULL: it is whole.
// octet_length of a text reads only its head, also where it is compressed or stored out of line. That is its
// length in the database's encoding, though: where that is not UTF-8 the text has to be converted.
func (t *table) cutLong() *table {
	lengths := map[int]string{} // by column: the SQL of how many bytes the value has, as text
	var sum []string
	for i, c := range t.columns {
		name := pgx.Identifier{c.Name}.Sanitize()
		switch {
		case c.IsText():
			lengths[i] = fmt.Sprintf("CASE WHEN getdatabaseencoding() IN ('UTF8', 'SQL_ASCII') "+
				"THEN octet_length(%[1]s) ELSE octet_length(convert_to(%[1]s, 'UTF8')) END", name)
			sum = append(sum, "coalesce("+lengths[i]+"::bigint, 0)")
		case c.IsUserType(): // the binary form of some is several times as long
			lengths[i] = "octet_length(" + name + "::text)"
			sum = append(sum, "8 * coalesce("+lengths[i]+"::bigint, 0)")
		}
	}
	if len(sum) == 0 {
		return t
	}
	var list, cut []string
	for i, c := range t.columns {
		name := pgx.Identifier{c.Name}.Sanitize()
		if length, ok := lengths[i]; ok {
			// If the sum is too large, at least one value has more than its share of it.
			long := fmt.Sprintf("%s > %d AND %s > %d", widthColumn, maxRow, length, maxRow/8/len(sum))
			list = append(list, fmt.Sprintf("CASE WHEN %s THEN NULL ELSE %s END", long, name))
			cut = append(cut, fmt.Sprintf("CASE WHEN %s THEN '%d:' || %s END", long, i, length))
			continue
		}
		list = append(list, name)
	}
	list = append(list, "nullif(concat_ws(',', "+strings.Join(cut, ", ")+"), '')")
	g := *t
	g.list = strings.Join(list, ", ")
	g.name += " CROSS JOIN LATERAL (SELECT " + strings.Join(sum, " + ") + " AS " + widthColumn +
		" OFFSET 0) AS w" // OFFSET 0: computed once a row, not in each place that names it
	g.columns = append(t.columns[:len(t.columns):len(t.columns)], schemas.Column{OID: oidText})
	g.cuts = true
	return &g
}

// decode makes a record or a reject of a row of t. cut: some of it was left out.
func (t *table) decode(v [][]byte) (record schemas.Record, reject *schemas.Reject, cut bool) {
	if t.cuts {
		last := len(v) - 1
		said := v[last]
		if v = v[:last]; said != nil {
			return record, t.decoder.TooLong(v, leftOut(said, len(v)), maxRow), true
		}
	}
	record, reject = t.decoder.Decode(v)
	return record, reject, false
}

// leftOut reads the last column of cutLong's list: by column how many bytes were left out, 0 for none.
func leftOut(said []byte, columns int) []int {
	left := make([]int, columns)
	for one := range bytes.SplitSeq(said, []byte(",")) {
		place, length, _ := strings.Cut(string(one), ":")
		if i, err := strconv.Atoi(place); err == nil && i < columns {
			left[i], _ = strconv.Atoi(length)
		}
	}
	return left
}
